/* See gcs_options.h. An option goes before the environment. */
#include "store/gcs_options.h"

#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/mem.h"
#include "store/cred.h"

#define S(name, field)                                                                             \
    {                                                                                              \
        name, OPTION_STRING, offsetof(struct gcs_options, field), 0, 0                             \
    }
#define M(name, field)                                                                             \
    {                                                                                              \
        name, OPTION_MAYBE, offsetof(struct gcs_options, field), 0, 0                              \
    }
#define A(name, field)                                                                             \
    {                                                                                              \
        name, OPTION_ANY, offsetof(struct gcs_options, field), 0, 0                                \
    }

/* The first spelling of each is the one that suggestions should name. */
static const struct option_spec specs[] = {
    A("token", said.token),
    S("access_token", bearer),
    M("anon", anonymous),
    M("skip_signature", anonymous),
    M("google_skip_signature", anonymous),
    S("service_account", file),
    S("service_account_path", file),
    S("google_service_account", file),
    S("google_service_account_path", file),
    S("application_credentials", file),
    S("google_application_credentials", file),
    S("service_account_key", text),
    S("google_service_account_key", text),
    S("key", id),
    S("access_key_id", id),
    S("secret", secret),
    S("secret_access_key", secret),
    S("project", said.project),
    S("project_id", said.project),
    A("requester_pays", said.requester_pays),
    S("user_project", said.user_project),
    S("userProject", said.user_project),
    S("access", said.access),
    S("endpoint_url", endpoint),
    S("endpoint", endpoint),
    S("base_url", endpoint),
    S("google_base_url", endpoint),
    M("allow_http", said.allow_http),
    REMOTE_OPTIONS(struct gcs_options, remote),
};

/* gcsfs's token: a word for a kind of credential, a file, an access token, or a file's contents. */
static int read_word(struct gcs_options *o, const char *token, const char *shown,
                     struct hr_error *e)
{
    if (!strcmp(token, "anon") || !strcmp(token, "anonymous")) {
        if (o->anonymous == MAYBE_NO)
            return error_set(e, HR_EINVAL, "%s: token=\"anon\" and anon=false contradict", shown);
        o->anonymous = MAYBE_YES;
    } else if (!strcmp(token, "google_default")) {
        o->anonymous = MAYBE_NO; /* gcsfs asks the chain and is content with nothing less */
    } else if (!strcmp(token, "cloud")) {
        o->anonymous = MAYBE_NO;
        o->metadata_only = true;
    } else if (!strcmp(token, "browser") || !strcmp(token, "cache")) {
        return error_set(e, HR_EUNSUPPORTED,
                         "%s: token=\"%s\" is not supported; run `gcloud auth application-default "
                         "login` and use \"google_default\"",
                         shown, token);
    } else if (!strncmp(token, "ya29.", 5)) { /* what Google's access tokens begin with */
        o->bearer = token;
    } else if (strchr(token, '/') || strchr(token, '.')) {
        o->file = token;
    } else {
        return error_set(
            e, HR_EINVAL,
            "%s: storage option token must be \"anon\", \"google_default\", \"cloud\", "
            "the path of a JSON file or its contents; an access token goes into "
            "access_token",
            shown);
    }
    return 0;
}

static int read_token(struct gcs_options *o, const char *shown, struct arena *a, struct hr_error *e)
{
    const struct json *token = o->said.token;
    struct buf text;
    if (!token)
        return 0;
    if (json_str(token))
        return read_word(o, json_str(token), shown, e);
    if (token->type != JSON_OBJECT)
        return error_set(e, HR_EINVAL,
                         "%s: storage option token must be a string or an object, not %s", shown,
                         json_type_name(token));
    buf_init(&text);
    json_write(token, &text);
    o->text = text.failed ? NULL : arena_strdup(a, text.data);
    if (text.data)
        explicit_bzero(text.data, text.cap);
    buf_dispose(&text);
    return o->text ? 0 : error_nomem(e, a->total, "options");
}

/* At most one kind of credential. */
static int check_one(const struct gcs_options *o, const char *shown, struct hr_error *e)
{
    const struct {
        bool given;
        const char *name;
    } kinds[] = {{o->id, "key"},
                 {o->bearer, "access_token"},
                 {o->file, "service_account"},
                 {o->text, "service_account_key"},
                 {o->metadata_only, "token=\"cloud\""},
                 {o->anonymous == MAYBE_YES, "anon"}};
    const char *first = NULL;
    const char *fault = cred_fault(o->id) ? cred_fault(o->id) : cred_fault(o->secret);
    if (fault)
        return error_set(e, HR_EINVAL, "%s: the storage option %s %s", shown,
                         cred_fault(o->id) ? "key" : "secret", fault);
    if (!o->id != !o->secret)
        return error_set(e, HR_EINVAL, "%s: the storage option %s without %s", shown,
                         o->id ? "key" : "secret", o->id ? "secret" : "key");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!kinds[i].given)
            continue;
        if (first)
            return error_set(e, HR_EINVAL, "%s: give either %s or %s, not both", shown, first,
                             kinds[i].name);
        first = kinds[i].name;
    }
    for (const char *p = o->bearer ? o->bearer : ""; *p; p++)
        if (*p <= ' ' || *p > '~')
            return error_set(e, HR_EINVAL, "%s: storage option access_token is no token", shown);
    return 0;
}

static bool is_project(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-.:";
    return *name && !name[strspn(name, allowed)];
}

/* gcsfs: true, with the option project; or the project itself. */
static int read_payer(struct gcs_options *o, const char *shown, struct hr_error *e)
{
    const struct json *pays = o->said.requester_pays;
    o->payer = o->said.user_project;
    if (pays && pays->type != JSON_BOOL && !json_str(pays))
        return error_set(e, HR_EINVAL,
                         "%s: storage option requester_pays must be true, false or the name of a "
                         "project, not %s",
                         shown, json_type_name(pays));
    if (pays && json_str(pays) && !o->payer)
        o->payer = json_str(pays);
    if (pays && pays->type == JSON_BOOL && pays->boolean && !o->payer)
        o->payer = o->said.project ? o->said.project : o->env.project;
    if (pays && pays->type == JSON_BOOL && pays->boolean && !o->payer)
        return error_set(e, HR_EINVAL,
                         "%s: requester_pays needs the project that pays; give the storage option "
                         "project",
                         shown);
    if (o->payer && !is_project(o->payer))
        return error_set(e, HR_EINVAL, "%s: \"%.60s\" is no ID of a project", shown, o->payer);
    return 0;
}

/* What the options leave open. */
static int read_surroundings(struct gcs_options *o, struct arena *a, struct hr_error *e)
{
    bool said = o->id || o->bearer || o->file || o->text || o->metadata_only;
    TRY(gcs_env_read(&o->env, a, e));
    if (o->anonymous == MAYBE_UNSAID && !said && o->env.anonymous == MAYBE_YES)
        o->anonymous = MAYBE_YES;
    if (o->endpoint || !o->env.emulator)
        return 0;
    /* Emulators know nobody, and what is secret is not shown to them. */
    o->emulator = true;
    if (o->anonymous == MAYBE_UNSAID && !said)
        o->anonymous = MAYBE_YES;
    o->endpoint = strstr(o->env.emulator, "://") ? o->env.emulator
                                                 : arena_printf(a, "http://%s", o->env.emulator);
    return o->endpoint ? 0 : error_nomem(e, 64, "options");
}

int gcs_options_read(struct gcs_options *o, const char *json, const struct store_env *env,
                     const char *shown, struct arena *a, struct hr_error *e)
{
    static const char *const accesses[] = {"read_only", "read_write", "full_control"};
    *o = (struct gcs_options){.id = NULL};
    remote_options_init(&o->remote, env);
    TRY(options_parse(json, shown, specs, sizeof specs / sizeof *specs, o, a, e));
    TRY(read_token(o, shown, a, e));
    TRY(check_one(o, shown, e));
    TRY(read_surroundings(o, a, e));
    TRY(read_payer(o, shown, e));
    bool known = !o->said.access; /* reading is all that is done; no scope is larger than that */
    for (size_t i = 0; o->said.access && i < 3; i++)
        known |= !strcmp(o->said.access, accesses[i]);
    if (!known)
        return error_set(e, HR_EINVAL, "%s: storage option access must be read_only", shown);
    return remote_options_check(&o->remote, shown, e);
}
