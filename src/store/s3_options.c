/* See s3_options.h. An option goes before the environment, and that before the profile. */
#include "store/s3_options.h"

#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "store/cred.h"
#include "store/cred_aws.h"
#include "store/cred_s3_env.h"

#define S(name, field)                                                                             \
    {                                                                                              \
        name, OPTION_STRING, offsetof(struct s3_options, field), 0, 0                              \
    }
#define M(name, field)                                                                             \
    {                                                                                              \
        name, OPTION_MAYBE, offsetof(struct s3_options, field), 0, 0                               \
    }
#define O(name, field)                                                                             \
    {                                                                                              \
        name, OPTION_OBJECT, offsetof(struct s3_options, field), 0, 0                              \
    }

/* The first spelling of each is the one that suggestions should name. */
static const struct option_spec specs[] = {
    M("anon", anonymous),
    M("skip_signature", anonymous),
    M("aws_skip_signature", anonymous),
    S("key", id),
    S("access_key_id", id),
    S("aws_access_key_id", id),
    S("secret", secret),
    S("secret_access_key", secret),
    S("aws_secret_access_key", secret),
    S("token", token),
    S("session_token", token),
    S("aws_session_token", token),
    S("aws_token", token),
    S("profile", profile),
    S("aws_profile", profile),
    S("endpoint_url", endpoint),
    S("endpoint", endpoint),
    S("aws_endpoint", endpoint),
    S("aws_endpoint_url", endpoint),
    S("region", region),
    S("region_name", region),
    S("default_region", region),
    S("aws_region", region),
    S("aws_default_region", region),
    M("requester_pays", requester_pays),
    M("request_payer", requester_pays),
    M("aws_request_payer", requester_pays),
    M("virtual_hosted_style_request", virtual_hosted),
    M("virtual_hosted_style", virtual_hosted),
    M("aws_virtual_hosted_style_request", virtual_hosted),
    S("addressing_style", addressing),
    M("use_ssl", use_ssl),
    M("allow_http", allow_http),
    M("aws_allow_http", allow_http),
    O("client_kwargs", client),
    O("config_kwargs", config),
    REMOTE_OPTIONS(struct s3_options, remote),
};
/* boto3.client(…) */
static const struct option_spec client_specs[] = {
    S("endpoint_url", endpoint),
    S("region_name", region),
    S("aws_access_key_id", id),
    S("aws_secret_access_key", secret),
    S("aws_session_token", token),
    M("use_ssl", use_ssl),
    S("verify", remote.ca_file),
    {"", OPTION_FOREIGN, offsetof(struct s3_options, remote.others), FOREIGN_CLIENT, 0},
};
/* botocore.Config(…) */
static const struct option_spec config_specs[] = {
    O("s3", config_s3),
    S("region_name", region),
    {"", OPTION_FOREIGN, offsetof(struct s3_options, remote.others), FOREIGN_CONFIG, 0},
};
static const struct option_spec config_s3_specs[] = {
    S("addressing_style", addressing),
};
#define COUNT(table) (sizeof(table) / sizeof *(table))

static int read_nested(struct s3_options *o, const char *shown, struct arena *a, struct hr_error *e)
{
    const char *client = arena_printf(a, "%s: client_kwargs", shown);
    const char *inner = arena_printf(a, "%s: config_kwargs", shown);
    if (!client || !inner)
        return error_nomem(e, 256, "options");
    TRY(options_object(o->client, client, client_specs, COUNT(client_specs), o, e));
    TRY(options_object(o->config, inner, config_specs, COUNT(config_specs), o, e));
    return options_object(o->config_s3, inner, config_s3_specs, COUNT(config_s3_specs), o, e);
}

static int read_style(struct s3_options *o, const char *shown, struct hr_error *e)
{
    static const char *const names[] = {"auto", "path", "virtual"};
    const char *name = o->addressing;
    o->style = S3_STYLE_AUTO;
    if (o->virtual_hosted != MAYBE_UNSAID)
        name = o->virtual_hosted == MAYBE_YES ? "virtual" : "path";
    for (size_t i = 0; name && i < COUNT(names); i++) {
        if (strcasecmp(name, names[i]))
            continue;
        o->style = (enum s3_style)i;
        return 0;
    }
    return !name ? 0
                 : error_set(e, HR_EINVAL, "%s: addressing_style must be auto, path or virtual",
                             shown);
}

static int check_keys(const struct s3_options *o, const char *shown, struct hr_error *e)
{
    const struct {
        const char *name, *value;
    } parts[] = {{"key", o->id}, {"secret", o->secret}, {"token", o->token}};
    for (size_t i = 0; i < COUNT(parts); i++)
        if (cred_fault(parts[i].value))
            return error_set(e, HR_EINVAL, "%s: the storage option %s %s", shown, parts[i].name,
                             cred_fault(parts[i].value));
    if (!o->id == !o->secret && (o->id || !o->token))
        return o->id && o->anonymous == MAYBE_YES
                   ? error_set(e, HR_EINVAL, "%s: give either anon or key and secret, not both",
                               shown)
                   : 0;
    return error_set(e, HR_EINVAL, "%s: the storage option %s without %s", shown,
                     o->id       ? "key"
                     : o->secret ? "secret"
                                 : "token",
                     o->id       ? "secret"
                     : o->secret ? "key"
                                 : "key and secret");
}

/* What the options leave open. */
static int read_surroundings(struct s3_options *o, struct arena *a, struct hr_error *e)
{
    struct aws_settings aws = {0};
    struct s3_env env;
    /* Anonymous access to public data must not fail on a profile that is not there. */
    if (o->anonymous != MAYBE_YES)
        TRY(aws_settings_read(o->profile, a, &aws, e));
    else if (aws_settings_read(o->profile, a, &aws, NULL) < 0)
        aws = (struct aws_settings){0};
    TRY(s3_env_read(&env, a, e));
    if (!o->endpoint)
        o->endpoint = aws.endpoint_url ? aws.endpoint_url : env.endpoint;
    if (!o->region)
        o->region = aws.region;
    if (!o->remote.ca_file)
        o->remote.ca_file = aws.ca_file;
    if (o->requester_pays == MAYBE_UNSAID)
        o->requester_pays = env.requester_pays;
    if (o->anonymous == MAYBE_UNSAID && !o->id && env.anonymous == MAYBE_YES)
        o->anonymous = MAYBE_YES;
    if (o->virtual_hosted == MAYBE_UNSAID && !o->addressing)
        o->virtual_hosted = env.virtual_hosted;
    if (!o->addressing)
        o->addressing = aws.addressing_style;
    return 0;
}

int s3_options_read(struct s3_options *o, const char *json, const struct store_env *env,
                    const char *shown, struct arena *a, struct hr_error *e)
{
    *o = (struct s3_options){.id = NULL};
    remote_options_init(&o->remote, env);
    TRY(options_parse(json, shown, specs, COUNT(specs), o, a, e));
    TRY(read_nested(o, shown, a, e));
    TRY(check_keys(o, shown, e));
    if (o->endpoint && !*o->endpoint)
        return error_set(e, HR_EINVAL, "%s: the storage option endpoint_url is empty", shown);
    TRY(read_surroundings(o, a, e));
    TRY(read_style(o, shown, e));
    if (o->region && !s3_region_ok(o->region, strlen(o->region)))
        return error_set(e, HR_EINVAL,
                         "%s: \"%s\" is no name of a region; they look like eu-west-1", shown,
                         o->region);
    return remote_options_check(&o->remote, shown, e);
}
