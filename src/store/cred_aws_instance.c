/* The metadata service of an EC2 instance, version 2: a token by PUT, the role's name, the role's
 * credentials. Where the service does not know tokens it is asked without, as botocore does,
 * unless AWS_EC2_METADATA_V1_DISABLED. All stores of a process ask it as one (shared.h). */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "store/cred_aws_in.h"

#define ROLES      "/latest/meta-data/iam/security-credentials/"
#define TOKEN_LIFE "21600"
#define EXTENDED_S 600

struct instance {
    struct aws *aws;
    struct arena arena;
    const char *endpoint; /* without a '/' at its end */
    struct buf token, body;
    int status;
};

static int find_endpoint(struct instance *i, struct hr_error *e)
{
    const struct aws_user *u = &i->aws->user;
    struct aws_files f;
    int rc = aws_files_read(&f, u, e);
    const char *mode = aws_env(u, "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE");
    const char *url = aws_env(u, "AWS_EC2_METADATA_SERVICE_ENDPOINT");
    if (rc == 0 && !url)
        url = aws_profile_get(&f, u->profile, "ec2_metadata_service_endpoint");
    if (rc == 0 && !mode)
        mode = aws_profile_get(&f, u->profile, "ec2_metadata_service_endpoint_mode");
    if (!url || !*url)
        url =
            mode && !strcasecmp(mode, "ipv6") ? "http://[fd00:ec2::254]" : "http://169.254.169.254";
    size_t n = strlen(url);
    while (n && url[n - 1] == '/')
        n--;
    i->endpoint = arena_strndup(&i->arena, url, n);
    aws_files_dispose(&f);
    return rc < 0 ? rc : i->endpoint ? 0 : error_nomem(e, n, "a request");
}

/* 0: the body is there. */
static int ask(struct instance *i, const char *method, const char *path, const char *name,
               struct hr_error *e)
{
    const char *url = arena_printf(&i->arena, "%s%s%s", i->endpoint, path, name);
    const char *first[] = {"X-aws-ec2-metadata-token-ttl-seconds", TOKEN_LIFE, NULL};
    const char *later[] = {"X-aws-ec2-metadata-token", i->token.data, NULL};
    struct meta_ask ask = {
        .method = method,
        .url = url,
        .headers = !strcmp(method, "PUT") ? first
                   : i->token.size        ? later
                                          : NULL,
        .neighbour = true,
    };
    if (!url)
        return error_nomem(e, i->arena.total, "a request");
    return meta_request(i->aws->meta, &ask, &i->status, &i->body, e);
}

/* SHARED_VALUE: there is a service, with or without a token; SHARED_NONE, SHARED_SILENT: there is
 * none. */
static int get_token(struct instance *i, struct buf *why, struct hr_error *e)
{
    int rc = ask(i, "PUT", "/latest/api/token", "", e);
    if (rc == 0) {
        if (!i->body.size || strpbrk(i->body.data, "\r\n"))
            return error_set(e, HR_ESTORE, "%s: a token that is none", i->endpoint);
        return buf_add(&i->token, i->body.data, i->body.size) < 0
                   ? error_nomem(e, i->body.size, "a token")
                   : SHARED_VALUE;
    }
    if (rc != HR_ESTORE)
        return rc;
    if (i->status == 403 || i->status == 404 || i->status == 405) {
        if (!aws_env_true(&i->aws->user, "AWS_EC2_METADATA_V1_DISABLED"))
            return SHARED_VALUE;
        buf_printf(why, "%s: no tokens (status %d), and version 1 is disabled", i->endpoint,
                   i->status);
    } else if (i->status) {
        buf_printf(why, "%s: status %d", i->endpoint, i->status);
    } else {
        buf_printf(why, "%s: no answer", i->endpoint);
        return SHARED_SILENT;
    }
    return SHARED_NONE;
}

/* The instance's service may be unable to renew for a while; what it gives is then honoured longer
 * than it says. */
static void extend(struct cred_value *v)
{
    int64_t now = (int64_t)time(NULL);
    if (v->until && v->until <= now)
        v->until = now + EXTENDED_S;
}

static int read_role(struct instance *i, const char *where, struct cred_value *v,
                     struct hr_error *e)
{
    static const struct aws_json_names names = {
        "AccessKeyId", "SecretAccessKey", "Token", "Expiration", true, true};
    struct json *answer;
    TRY(json_parse(&i->arena, i->body.data, i->body.size, where, &answer, e));
    const char *code = json_str(json_get(answer, "Code"));
    const char *message = json_str(json_get(answer, "Message"));
    if (code && strcmp(code, "Success") != 0)
        return error_set(e, HR_ESTORE, "%s: %.60s: %.120s", where, code, message ? message : "");
    int rc = aws_json_value(answer, &names, where, v, e);
    if (rc > 0)
        extend(v);
    return rc;
}

static int fetch(void *arg, struct cred_value *v, struct buf *why, struct hr_error *e)
{
    struct instance *i = arg;
    int rc = get_token(i, why, e);
    if (rc != SHARED_VALUE)
        return rc;
    rc = ask(i, "GET", ROLES, "", e);
    if (rc == HR_ESTORE && i->status >= 400 && i->status < 500 && i->status != 429) {
        if (i->status == 404)
            buf_puts(why, "no role is attached to this instance");
        else /* services of other kinds have this address, too */
            buf_printf(why, "%s: status %d", i->endpoint, i->status);
        return 0;
    }
    TRY(rc);
    i->body.data[strcspn(i->body.data, "\r\n")] = 0;
    if (!i->body.data[0]) {
        buf_puts(why, "no role is attached to this instance");
        return 0;
    }
    const char *role = arena_strdup(&i->arena, i->body.data);
    const char *where = arena_printf(&i->arena, "%s" ROLES "%s", i->endpoint, role ? role : "");
    if (!role || !where)
        return error_nomem(e, i->arena.total, "a request");
    TRY(ask(i, "GET", ROLES, role, e));
    return read_role(i, where, v, e);
}

int aws_instance(struct aws *a, struct cred_value *v, struct buf *why, struct hr_error *e)
{
    struct instance i = {.aws = a};
    if (aws_env_true(&a->user, "AWS_EC2_METADATA_DISABLED")) {
        buf_puts(why, "AWS_EC2_METADATA_DISABLED is set");
        return 0;
    }
    arena_init(&i.arena);
    int rc = find_endpoint(&i, e);
    const char *key = rc < 0 ? NULL : arena_printf(&i.arena, "instance %s", i.endpoint);
    if (rc == 0 && !key)
        rc = error_nomem(e, i.arena.total, "a request");
    if (rc == 0)
        rc = shared_ask(a->shared, key, &a->seen_instance, fetch, &i, v, why, e);
    secret_wipe(&i.token);
    secret_wipe(&i.body);
    arena_dispose(&i.arena);
    return rc;
}
