/* See cred_azure.h: the chain, and what is given as it is. */
#include "store/cred_azure.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/json.h"
#include "base/mem.h"
#include "store/cred_azure_in.h"

bool azure_is_loopback(const char *url)
{
    const char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    size_t n = strcspn(host, "/?#");
    if (memchr(host, '@', n) || memchr(host, '\\', n))
        return false;
    if (!strncmp(host, "[::1]", 5))
        return n == 5 || host[5] == ':';
    n = strcspn(host, ":/?#");
    if (n == 9 && !strncasecmp(host, "localhost", 9))
        return true;
    return n > 4 && !strncmp(host, "127.", 4) && strspn(host, "0123456789.") == n;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Numbers come as numbers or as strings. */
static bool seconds(const struct json *v, int64_t *out)
{
    const char *text = json_str(v);
    char *end;
    if (json_int64(v, out))
        return *out > 0;
    if (!text || !isdigit((unsigned char)*text))
        return false;
    *out = strtoll(text, &end, 10);
    return !*end && *out > 0 && *out < INT64_MAX / 2000;
}

int azure_token(struct arena *a, const struct buf *body, const char *where, struct cred_value *v,
                struct hr_error *e)
{
    struct json *answer;
    int64_t until, life;
    TRY(json_parse(a, body->data ? body->data : "", body->size, where, &answer, e));
    const char *token = json_str(json_get(answer, "access_token"));
    if (!token || !*token || strpbrk(token, "\r\n"))
        return error_set(e, HR_ESTORE, "%s: the answer has no \"access_token\"", where);
    if (seconds(json_get(answer, "expires_in"), &life) && life < INT32_MAX)
        until = (int64_t)time(NULL) + life;
    else if (!seconds(json_get(answer, "expires_on"), &until))
        return error_set(e, HR_ESTORE, "%s: the answer does not say how long its token is valid",
                         where);
    TRY(cred_value_set(v, NULL, NULL, token, until, e));
    return 1;
}

static void copy_line(char *out, size_t room, const char *text)
{
    size_t n = 0;
    for (; text && text[n] && n + 1 < room && text[n] != '\r' && text[n] != '\n'; n++)
        out[n] = (unsigned char)text[n] < ' ' || (unsigned char)text[n] > 126 ? '?' : text[n];
    out[n] = 0;
}

int azure_refusal(struct arena *a, const struct buf *body, const char *where, int rc,
                  struct hr_error *e)
{
    struct json *answer;
    char code[64], more[240];
    if (rc != HR_ESTORE || !body->size ||
        json_parse(a, body->data, body->size, where, &answer, NULL) < 0)
        return rc;
    const struct json *error = json_get(answer, "error");
    if (!json_str(error))
        return rc;
    copy_line(code, sizeof code, json_str(error));
    copy_line(more, sizeof more, json_str(json_get(answer, "error_description")));
    return error_set(e, rc, "%s%s%s (%s)", code, *more ? ": " : "", more, where);
}

/* ---- what is given as it is ------------------------------------------------------------------ */

static int key_of(const struct azure *a, const struct azure_login *l, struct cred_value *v,
                  struct hr_error *e)
{
    TRY(cred_value_set(v, a->account, l->key, NULL, 0, e));
    return 1;
}

static int sas_of(const struct azure *a, const struct azure_login *l, struct cred_value *v,
                  struct hr_error *e)
{
    const char *sas = *l->sas == '?' ? l->sas + 1 : l->sas;
    TRY(cred_value_set(v, a->account, NULL, sas, 0, e));
    return 1;
}

static int token_of(const struct azure_login *l, struct cred_value *v, struct hr_error *e)
{
    TRY(cred_value_set(v, NULL, NULL, l->token, 0, e));
    return 1;
}

static int given(struct azure *a, struct cred_value *v, struct buf *why, struct hr_error *e)
{
    const struct azure_login *l = &a->given;
    (void)why;
    return l->token ? token_of(l, v, e) : l->key ? key_of(a, l, v, e) : sas_of(a, l, v, e);
}

static int environment(struct azure *a, struct cred_value *v, struct buf *why, struct hr_error *e)
{
    const struct azure_login *l = &a->found;
    if (l->token || l->key)
        return l->token ? token_of(l, v, e) : key_of(a, l, v, e);
    buf_puts(why, "no AZURE_STORAGE_KEY of this account");
    return 0;
}

static int environment_sas(struct azure *a, struct cred_value *v, struct buf *why,
                           struct hr_error *e)
{
    if (a->found.sas)
        return sas_of(a, &a->found, v, e);
    buf_puts(why, "no AZURE_STORAGE_SAS_TOKEN of this account");
    return 0;
}

/* ---- the chain ------------------------------------------------------------------------------- */

/* cred.h calls with the chain's own argument; each provider is written for struct azure. */
#define PROVIDER(call)                                                                             \
    static int ask_##call(void *arg, struct cred_value *v, struct buf *why, struct hr_error *e)    \
    {                                                                                              \
        return call(arg, v, why, e);                                                               \
    }
PROVIDER(given)
PROVIDER(environment)
PROVIDER(environment_sas)
PROVIDER(azure_workload)
PROVIDER(azure_client)
PROVIDER(azure_machine)

static void add(struct azure *a, const char *name,
                int (*fetch)(void *, struct cred_value *, struct buf *, struct hr_error *))
{
    a->chain[a->n++] = (struct cred_provider){name, fetch};
}

static bool make_chain(struct azure *a)
{
    const struct azure_login *l = &a->given;
    if (l->token || l->key)
        add(a, l->token ? "the given token" : "the given account key", ask_given);
    else if (l->token_file)
        add(a, "the given workload identity", ask_azure_workload);
    else if (l->client_secret)
        add(a, "the given client secret", ask_azure_client);
    else if (l->sas)
        add(a, "the given SAS token", ask_given);
    if (a->n)
        return true;
    add(a, "environment", ask_environment);
    add(a, "workload identity", ask_azure_workload);
    add(a, "client secret", ask_azure_client);
    add(a, "environment's SAS", ask_environment_sas);
    add(a, "managed identity", ask_azure_machine);
    return false;
}

/* The members of a login, all strings, one after another. */
#define FIELDS (sizeof(struct azure_login) / sizeof(const char *))

static int copy_login(struct azure *a, struct azure_login *to, const struct azure_login *from)
{
    const char **out = (const char **)to;
    const char *const *in = (const char *const *)from;
    for (size_t i = 0; i < FIELDS; i++)
        if (in[i] && !(out[i] = arena_strdup(&a->arena, in[i])))
            return -1;
    return 0;
}

static void complete(struct azure *a)
{
    const char **both = (const char **)&a->both;
    a->both = a->given;
    for (size_t i = 0; i < FIELDS; i++)
        if (!both[i])
            both[i] = ((const char *const *)&a->found)[i];
}

static void wipe_login(struct azure_login *l)
{
    const char *const secrets[] = {l->token,           l->key,       l->sas, l->client_secret,
                                   l->identity_header, l->msi_secret};
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++)
        if (secrets[i])
            explicit_bzero((char *)secrets[i], strlen(secrets[i]));
}

static void release(void *arg)
{
    struct azure *a = arg;
    meta_free(a->meta);
    shared_unref(a->shared);
    wipe_login(&a->given);
    wipe_login(&a->found);
    arena_dispose(&a->arena);
    mem_free(a);
}

static void stop(void *arg)
{
    struct azure *a = arg;
    if (a->meta)
        meta_stop(a->meta);
}

static int init(struct azure *a, const struct azure_config *c, bool *explicit, struct hr_error *e)
{
    arena_init(&a->arena);
    a->account = arena_strdup(&a->arena, c->account);
    if (!a->account || copy_login(a, &a->given, &c->given) < 0 ||
        copy_login(a, &a->found, &c->found) < 0)
        return error_nomem(e, a->arena.total, "a credential");
    complete(a);
    *explicit = make_chain(a);
    if (a->chain[0].fetch == ask_given)
        return 0;
    a->shared = c->shared ? shared_ref(c->shared) : shared_new(e);
    if (!a->shared)
        return HR_ENOMEM;
    const struct meta_config meta = {.net = c->net, .policy = c->policy, .ca_file = c->ca_file};
    return meta_new(&meta, &a->meta, e);
}

int cred_azure_new(const struct azure_config *c, struct cred **out, struct hr_error *e)
{
    bool explicit = false;
    *out = NULL;
    struct azure *a = mem_zalloc(sizeof *a);
    if (!a)
        return error_nomem(e, sizeof *a, "a credential");
    int rc = init(a, c, &explicit, e);
    struct cred_config config = {
        .chain = a->chain,
        .n = a->n,
        .arg = a,
        .release = release,
        .stop = stop,
        .ready = c->ready,
        .ready_arg = c->ready_arg,
        .what = c->what,
        .anonymous = c->anonymous && !explicit,
        .n_late =
            c->late_machine && !explicit && azure_machine_guessed(a) ? 1 : 0, /* it stands last */
        .log = c->log,
        .log_arg = c->log_arg,
    };
    if (rc == 0 && !(*out = cred_new(&config, e)))
        rc = HR_ENOMEM;
    if (rc < 0)
        release(a);
    return rc;
}
