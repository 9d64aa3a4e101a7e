/* See cred_aws.h: the chain, explicit keys and the environment; what else a store wants to know. */
#include "store/cred_aws.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "store/cred_aws_in.h"

const char *aws_dns_suffix(const char *region)
{
    static const struct {
        const char *prefix, *suffix;
    } partitions[] = {
        {"cn-", "amazonaws.com.cn"}, {"us-isob-", "sc2s.sgov.gov"},  {"us-isof-", "csp.hci.ic.gov"},
        {"us-iso-", "c2s.ic.gov"},   {"eu-isoe-", "cloud.adc-e.uk"}, {"eusc-", "amazonaws.eu"},
    };
    for (size_t i = 0; region && i < sizeof partitions / sizeof *partitions; i++)
        if (!strncmp(region, partitions[i].prefix, strlen(partitions[i].prefix)))
            return partitions[i].suffix;
    return "amazonaws.com";
}

/* ---- what else environment and profile say --------------------------------------------------- */

static const char *copy(struct arena *a, const char *s, bool *failed)
{
    const char *c = s ? arena_strdup(a, s) : NULL;
    *failed |= s && !c;
    return c;
}

static const char *either(const char *a, const char *b)
{
    return a ? a : b;
}

static int read_settings(const struct aws_user *u, const struct aws_files *f, struct arena *a,
                         struct aws_settings *out, struct hr_error *e)
{
    bool failed = false;
    const char *region = either(aws_env(u, "AWS_REGION"), aws_env(u, "AWS_DEFAULT_REGION"));
    TRY(aws_user_check(u, f, e));
    out->region = copy(a, either(region, aws_profile_get(f, u->profile, "region")), &failed);
    out->ca_file =
        copy(a, either(aws_env(u, "AWS_CA_BUNDLE"), aws_profile_get(f, u->profile, "ca_bundle")),
             &failed);
    size_t n = 0;
    const char *style = ini_nested(aws_config_section(f, u->profile), "s3", "addressing_style", &n);
    if (style && !(out->addressing_style = arena_strndup(a, style, n)))
        failed = true;
    TRY(aws_endpoint(u, f, u->profile, "s3", a, &out->endpoint_url, e));
    return failed ? error_nomem(e, a->total, "the AWS settings") : 0;
}

int aws_settings_read(const char *profile, struct arena *a, struct aws_settings *out,
                      struct hr_error *e)
{
    struct aws_user u;
    struct aws_files f = {.has_config = false};
    *out = (struct aws_settings){0};
    int rc = aws_user_init(&u, profile, e);
    if (rc == 0)
        rc = aws_files_read(&f, &u, e);
    if (rc == 0)
        rc = read_settings(&u, &f, a, out, e);
    aws_files_dispose(&f);
    aws_user_dispose(&u);
    return rc;
}

/* ---- providers ------------------------------------------------------------------------------- */

static int given(struct aws *a, struct cred_value *v, struct buf *why, struct hr_error *e)
{
    (void)why;
    TRY(cred_value_set(v, a->given.id, a->given.secret, a->given.token, 0, e));
    return 1;
}

int aws_environment(struct aws *a, struct cred_value *v, struct buf *why, struct hr_error *e)
{
    const struct aws_user *u = &a->user;
    const char *id = aws_env(u, "AWS_ACCESS_KEY_ID"), *secret = aws_env(u, "AWS_SECRET_ACCESS_KEY");
    const char *token = either(aws_env(u, "AWS_SECURITY_TOKEN"), aws_env(u, "AWS_SESSION_TOKEN"));
    const char *end = aws_env(u, "AWS_CREDENTIAL_EXPIRATION");
    int64_t until = 0;
    if (!id) {
        buf_puts(why, "AWS_ACCESS_KEY_ID is not set");
        return 0;
    }
    if (!secret)
        return error_set(e, HR_EINVAL, "AWS_ACCESS_KEY_ID is set, but not AWS_SECRET_ACCESS_KEY");
    const struct {
        const char *name, *value;
    } parts[] = {
        {"AWS_ACCESS_KEY_ID", id}, {"AWS_SECRET_ACCESS_KEY", secret}, {"AWS_SESSION_TOKEN", token}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (cred_fault(parts[i].value))
            return error_set(e, HR_EINVAL, "%s %s", parts[i].name, cred_fault(parts[i].value));
    if (end && !aws_time(end, &until))
        return error_set(e, HR_EINVAL, "AWS_CREDENTIAL_EXPIRATION is no time: \"%.40s\"", end);
    TRY(cred_value_set(v, id, secret, token, until, e));
    return 1;
}

int aws_json_value(const struct json *o, const struct aws_json_names *names, const char *where,
                   struct cred_value *v, struct hr_error *e)
{
    const char *id = json_str(json_get(o, names->id));
    const char *secret = json_str(json_get(o, names->secret));
    const char *token = names->token ? json_str(json_get(o, names->token)) : NULL;
    const struct json *end = json_get(o, names->until);
    const char *missing = !id || !*id                         ? names->id
                          : !secret || !*secret               ? names->secret
                          : names->must_token && !token       ? names->token
                          : names->must_end && !json_str(end) ? names->until
                                                              : NULL;
    int64_t until = 0;
    if (missing)
        return error_set(e, HR_ESTORE, "%s: the answer has no \"%s\"", where, missing);
    if (end && end->type != JSON_NULL && (!json_str(end) || !aws_time(json_str(end), &until)))
        return error_set(e, HR_ESTORE, "%s: \"%s\" is no time", where, names->until);
    TRY(cred_value_set(v, id, secret, token && *token ? token : NULL, until, e));
    return 1;
}

/* ---- the chain ------------------------------------------------------------------------------- */

/* cred.h calls with the chain's own argument; each provider is written for struct aws. */
#define PROVIDER(call)                                                                             \
    static int ask_##call(void *arg, struct cred_value *v, struct buf *why, struct hr_error *e)    \
    {                                                                                              \
        return call(arg, v, why, e);                                                               \
    }
PROVIDER(given)
PROVIDER(aws_environment)
PROVIDER(aws_role)
PROVIDER(aws_web_identity)
PROVIDER(aws_profile)
PROVIDER(aws_container)
PROVIDER(aws_instance)

static void add(struct aws *a, const char *name,
                int (*fetch)(void *, struct cred_value *, struct buf *, struct hr_error *))
{
    a->chain[a->n++] = (struct cred_provider){name, fetch};
}

static int make_chain(struct aws *a)
{
    const struct aws_user *u = &a->user;
    const char *role = arena_printf(&a->user.arena, "role of profile %s", u->profile);
    const char *profile = arena_printf(&a->user.arena, "profile %s", u->profile);
    if (!role || !profile)
        return -1;
    if (a->given.id) {
        add(a, "the given key", ask_given);
        return 0;
    }
    if (!u->explicit)
        add(a, "environment", ask_aws_environment);
    add(a, role, ask_aws_role);
    add(a, "web identity", ask_aws_web_identity);
    add(a, profile, ask_aws_profile);
    add(a, "container", ask_aws_container);
    add(a, "instance metadata", ask_aws_instance);
    return 0;
}

static void release(void *arg)
{
    struct aws *a = arg;
    meta_free(a->meta);
    shared_unref(a->shared);
    cred_value_clear(&a->given);
    aws_user_dispose(&a->user);
    mem_free(a);
}

static void stop(void *arg)
{
    struct aws *a = arg;
    atomic_store(&a->stopped, true);
    if (a->meta)
        meta_stop(a->meta);
}

static int init(struct aws *a, const struct aws_config *c, struct hr_error *e)
{
    TRY(aws_user_init(&a->user, c->profile, e));
    if (c->id && !c->secret)
        return error_set(e, HR_EINVAL, "%s: an access key needs its secret", c->what);
    if (c->id)
        TRY(cred_value_set(&a->given, c->id, c->secret, c->token, 0, e));
    if (c->region && !(a->region = arena_strdup(&a->user.arena, c->region)))
        return error_nomem(e, strlen(c->region), "a credential");
    if (make_chain(a) < 0)
        return error_nomem(e, a->user.arena.total, "a credential");
    if (c->id)
        return 0;
    a->shared = c->shared ? shared_ref(c->shared) : shared_new(e);
    if (!a->shared)
        return HR_ENOMEM;
    const struct meta_config meta = {.net = c->net, .policy = c->policy, .ca_file = c->ca_file};
    return meta_new(&meta, &a->meta, e);
}

int cred_aws_new(const struct aws_config *c, struct cred **out, struct hr_error *e)
{
    *out = NULL;
    struct aws *a = mem_zalloc(sizeof *a);
    if (!a)
        return error_nomem(e, sizeof *a, "a credential");
    int rc = init(a, c, e);
    struct cred_config config = {
        .chain = a->chain,
        .n = a->n,
        .arg = a,
        .release = release,
        .stop = stop,
        .ready = c->ready,
        .ready_arg = c->ready_arg,
        .what = c->what,
        .anonymous = c->anonymous,
        .n_late = c->late_machine && !c->id ? 1 : 0, /* the instance, which stands last */
        .log = c->log,
        .log_arg = c->log_arg,
    };
    if (rc == 0 && !(*out = cred_new(&config, e)))
        rc = HR_ENOMEM;
    if (rc < 0)
        release(a);
    return rc;
}
