/* What a profile of ~/.aws says: keys, a role to assume with another profile's credentials (or
 * those of environment, container or instance), a web identity.
 *
 * Roles form chains: the source of one may be a role itself. The way back to the keys is walked
 * by recursion, with the names on the way in a list, so that a circle is found. */
#include <stdio.h>
#include <string.h>

#include "store/cred_aws_in.h"

#define ROLES_MAX 8

struct chain { /* the profiles on the way, newest first */
    const char *profile;
    const struct chain *from;
    int length;
};

static int of_profile(struct aws *a, const struct aws_files *f, const struct chain *at,
                      struct cred_value *v, struct hr_error *e);

/* ---- keys in files --------------------------------------------------------------------------- */

static int keys(const struct ini_section *s, const char *path, const char *p, struct cred_value *v,
                struct hr_error *e)
{
    const char *id = ini_get(s, "aws_access_key_id");
    const char *secret = ini_get(s, "aws_secret_access_key");
    const char *token = ini_get(s, "aws_security_token");
    if (!token)
        token = ini_get(s, "aws_session_token");
    if (!id)
        return 0;
    if (!secret)
        return error_set(e, HR_EINVAL,
                         "%s: profile \"%s\" has an aws_access_key_id but no "
                         "aws_secret_access_key",
                         path, p);
    TRY(cred_value_set(v, id, secret, token && *token ? token : NULL, 0, e));
    return 1;
}

/* ---- roles ----------------------------------------------------------------------------------- */

static bool is_role(const struct aws_files *f, const char *p)
{
    return aws_profile_get(f, p, "role_arn") && !aws_profile_get(f, p, "web_identity_token_file");
}

static bool has_keys(const struct aws_files *f, const char *p)
{
    return aws_profile_get(f, p, "aws_access_key_id") ||
           aws_profile_get(f, p, "aws_secret_access_key");
}

/* credential_source: where a role's own credentials come from, without a profile. */
static int of_source(struct aws *a, const char *p, const char *name, struct cred_value *v,
                     struct hr_error *e)
{
    static const struct {
        const char *name;
        int (*ask)(struct aws *, struct cred_value *, struct buf *, struct hr_error *);
    } sources[] = {{"Environment", aws_environment},
                   {"EcsContainer", aws_container},
                   {"Ec2InstanceMetadata", aws_instance}};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        if (strcmp(sources[i].name, name) != 0)
            continue;
        struct buf why;
        buf_init(&why);
        int rc = sources[i].ask(a, v, &why, e);
        if (rc == 0)
            rc = error_set(e, HR_ESTORE, "profile \"%s\": credential_source %s has none: %s", p,
                           name, why.size ? why.data : "nothing there");
        buf_dispose(&why);
        return rc;
    }
    return error_set(e, HR_EINVAL,
                     "profile \"%s\": credential_source \"%.40s\" is not one of Environment, "
                     "EcsContainer, Ec2InstanceMetadata",
                     p, name);
}

static int circle(const struct chain *at, const char *source, struct hr_error *e)
{
    struct buf names;
    buf_init(&names);
    for (const struct chain *c = at; c; c = c->from)
        buf_printf(&names, "\"%s\" <- ", c->profile);
    int rc = error_set(e, HR_EINVAL, "source_profile runs in a circle: %s\"%s\"",
                       names.failed ? "" : names.data, source);
    buf_dispose(&names);
    return rc;
}

/* The credentials that sign for the role of profile at->profile. */
static int of_source_profile(struct aws *a, const struct aws_files *f, const struct chain *at,
                             const char *source, struct cred_value *v, struct hr_error *e)
{
    struct chain next = {source, at, at->length + 1};
    bool seen = false;
    if (!aws_profile_exists(f, source))
        return error_set(e, HR_EINVAL, "profile \"%s\": its source_profile \"%s\" does not exist",
                         at->profile, source);
    for (const struct chain *c = at; c; c = c->from)
        seen |= !strcmp(c->profile, source);
    /* A profile may hold both a role and the keys that assume it. */
    bool itself = !at->from && !strcmp(at->profile, source) && has_keys(f, source);
    if ((seen && !itself) || next.length > ROLES_MAX)
        return circle(at, source, e);
    int rc = of_profile(a, f, &next, v, e);
    if (rc == 0)
        rc = error_set(e, HR_EINVAL, "profile \"%s\": its source_profile \"%s\" has no credentials",
                       at->profile, source);
    return rc;
}

static const char *sts_region(struct aws *a, const struct aws_files *f)
{
    const char *names[] = {"AWS_REGION", "AWS_DEFAULT_REGION"};
    const char *region = a->region;
    for (size_t i = 0; i < 2 && !region; i++)
        region = aws_env(&a->user, names[i]);
    return region ? region : aws_profile_get(f, a->user.profile, "region");
}

static int assume(struct aws *a, const struct aws_files *f, const struct chain *at,
                  struct cred_value *v, struct hr_error *e)
{
    const char *p = at->profile, *source = aws_profile_get(f, p, "source_profile");
    const char *named = aws_profile_get(f, p, "credential_source");
    struct cred_value with = {0};
    struct arena scratch;
    if (!source == !named)
        return error_set(e, HR_EINVAL,
                         "profile \"%s\" has a role_arn and %s source_profile %s "
                         "credential_source",
                         p, source ? "both" : "neither", source ? "and" : "nor");
    if (aws_profile_get(f, p, "mfa_serial"))
        return error_set(e, HR_EUNSUPPORTED,
                         "profile \"%s\" wants an MFA code, which cannot be asked for here: get "
                         "session credentials first (aws sts get-session-token, or a "
                         "credential_process)",
                         p);
    TRY(source ? of_source_profile(a, f, at, source, &with, e) : of_source(a, p, named, &with, e));
    arena_init(&scratch);
    struct aws_role_request r = {
        .arn = aws_profile_get(f, p, "role_arn"),
        .session = aws_profile_get(f, p, "role_session_name"),
        .external_id = aws_profile_get(f, p, "external_id"),
        .duration = aws_profile_get(f, p, "duration_seconds"),
        .region = sts_region(a, f),
        .source = &with,
    };
    int rc = aws_endpoint(&a->user, f, a->user.profile, "sts", &scratch, &r.endpoint, e);
    if (rc == 0)
        rc = aws_sts(a, &r, v, e);
    cred_value_clear(&with);
    arena_dispose(&scratch);
    return rc;
}

/* ---- web identity ---------------------------------------------------------------------------- */

static int web_identity(struct aws *a, const struct aws_files *f, const char *p, bool environment,
                        struct cred_value *v, struct buf *why, struct hr_error *e)
{
    static const char *const names[][2] = {
        {"AWS_WEB_IDENTITY_TOKEN_FILE", "web_identity_token_file"},
        {"AWS_ROLE_ARN", "role_arn"},
        {"AWS_ROLE_SESSION_NAME", "role_session_name"}};
    const char *values[3];
    for (size_t i = 0; i < 3; i++) {
        values[i] = environment ? aws_env(&a->user, names[i][0]) : NULL;
        if (!values[i])
            values[i] = aws_profile_get(f, p, names[i][1]);
    }
    if (!values[0]) {
        if (why)
            buf_printf(why, "%s is not set", environment ? names[0][0] : names[0][1]);
        return 0;
    }
    if (!values[1])
        return error_set(e, HR_EINVAL,
                         "there is a web identity token, but neither AWS_ROLE_ARN nor "
                         "role_arn in profile \"%s\"",
                         p);
    struct buf token;
    struct arena scratch;
    buf_init(&token);
    arena_init(&scratch);
    int rc = secret_read(values[0], &token);
    if (rc < 0)
        rc = error_set(e, HR_ESTORE, "the web identity token %s: %s", values[0], strerror(-rc));
    while (token.size && strchr(" \t\r\n", token.data[token.size - 1]))
        token.data[--token.size] = 0;
    if (rc == 0 && !token.size)
        rc = error_set(e, HR_ESTORE, "the web identity token %s is empty", values[0]);
    struct aws_role_request r = {
        .arn = values[1],
        .session = values[2],
        .region = sts_region(a, f),
        .token = token.data,
    };
    if (rc == 0)
        rc = aws_endpoint(&a->user, f, a->user.profile, "sts", &scratch, &r.endpoint, e);
    if (rc == 0)
        rc = aws_sts(a, &r, v, e);
    secret_wipe(&token);
    arena_dispose(&scratch);
    return rc;
}

/* ---- a profile as a whole -------------------------------------------------------------------- */

/* SSO, keys, a process: the order is botocore's. */
static int own(struct aws *a, const struct aws_files *f, const char *p, struct cred_value *v,
               struct hr_error *e)
{
    int rc = aws_sso(a, f, p, v, e);
    if (!rc)
        rc = keys(ini_section(&f->credentials, NULL, p), f->credentials_path, p, v, e);
    if (!rc && aws_profile_get(f, p, "login_session"))
        return error_set(e, HR_EUNSUPPORTED,
                         "profile \"%s\" is one of `aws login`, whose sessions are not read here; "
                         "give it a line: credential_process = aws configure "
                         "export-credentials --profile %s --format process",
                         p, p);
    if (!rc)
        rc = aws_process(a, f, p, v, e);
    return rc ? rc : keys(aws_config_section(f, p), f->config_path, p, v, e);
}

static int of_profile(struct aws *a, const struct aws_files *f, const struct chain *at,
                      struct cred_value *v, struct hr_error *e)
{
    const char *p = at->profile;
    if (is_role(f, p) && !has_keys(f, p))
        return assume(a, f, at, v, e);
    int rc = web_identity(a, f, p, false, v, NULL, e);
    return rc ? rc : own(a, f, p, v, e);
}

/* ---- as the chain asks ----------------------------------------------------------------------- */

static int read_files(struct aws *a, struct aws_files *f, struct hr_error *e)
{
    TRY(aws_files_read(f, &a->user, e));
    return aws_user_check(&a->user, f, e);
}

int aws_role(struct aws *a, struct cred_value *v, struct buf *why, struct hr_error *e)
{
    struct aws_files f;
    struct chain at = {a->user.profile, NULL, 1};
    int rc = read_files(a, &f, e);
    if (rc == 0 && is_role(&f, at.profile))
        rc = assume(a, &f, &at, v, e);
    else if (rc == 0)
        buf_puts(why, "no role_arn");
    aws_files_dispose(&f);
    return rc;
}

int aws_web_identity(struct aws *a, struct cred_value *v, struct buf *why, struct hr_error *e)
{
    struct aws_files f;
    int rc = read_files(a, &f, e);
    if (rc == 0)
        rc = web_identity(a, &f, a->user.profile, !a->user.explicit, v, why, e);
    aws_files_dispose(&f);
    return rc;
}

int aws_profile(struct aws *a, struct cred_value *v, struct buf *why, struct hr_error *e)
{
    struct aws_files f;
    int rc = read_files(a, &f, e);
    if (rc == 0)
        rc = own(a, &f, a->user.profile, v, e);
    if (rc == 0 && (f.has_config || f.has_credentials))
        buf_printf(why, "nothing for it in %s%s%s", f.has_config ? f.config_path : "",
                   f.has_config && f.has_credentials ? " and " : "",
                   f.has_credentials ? f.credentials_path : "");
    else if (rc == 0)
        buf_printf(why, "no %s, no %s", f.config_path, f.credentials_path);
    aws_files_dispose(&f);
    return rc;
}
