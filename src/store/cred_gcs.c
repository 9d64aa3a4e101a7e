/* See cred_gcs.h: the chain. */
#include "store/cred_gcs.h"

#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/cred_gcs_in.h"

/* ---- providers ------------------------------------------------------------------------------- */

static int ask_given(void *arg, struct cred_value *v, struct buf *why, struct hr_error *e)
{
    const struct gcs *g = arg;
    (void)why;
    TRY(cred_value_set(v, g->given.id, g->given.secret, g->given.token, 0, e));
    return 1;
}

static int ask_text(void *arg, struct cred_value *v, struct buf *why, struct hr_error *e)
{
    struct gcs *g = arg;
    (void)why;
    return gcs_json(g, g->text, strlen(g->text), "the JSON that was given", v, e);
}

static int ask_file(void *arg, struct cred_value *v, struct buf *why, struct hr_error *e)
{
    struct gcs *g = arg;
    (void)why;
    return gcs_file(g, g->file, v, e);
}

static int ask_environment(void *arg, struct cred_value *v, struct buf *why, struct hr_error *e)
{
    struct gcs *g = arg;
    const char *file = g->env.key_file ? g->env.key_file : g->env.application_file;
    if (g->env.key)
        return gcs_json(g, g->env.key, strlen(g->env.key), "GOOGLE_SERVICE_ACCOUNT_KEY", v, e);
    if (file)
        return gcs_file(g, file, v, e);
    buf_puts(why, "GOOGLE_APPLICATION_CREDENTIALS is not set");
    return 0;
}

static int ask_gcloud(void *arg, struct cred_value *v, struct buf *why, struct hr_error *e)
{
    struct gcs *g = arg;
    const char *file = g->env.gcloud_file;
    if (file && access(file, F_OK) == 0)
        return gcs_file(g, file, v, e);
    buf_printf(why, "there is no %s", file ? file : "home directory");
    return 0;
}

static int ask_metadata(void *arg, struct cred_value *v, struct buf *why, struct hr_error *e)
{
    return gcs_metadata(arg, v, why, e);
}

/* ---- the chain ------------------------------------------------------------------------------- */

static void add(struct gcs *g, const char *name,
                int (*fetch)(void *, struct cred_value *, struct buf *, struct hr_error *))
{
    g->chain[g->n++] = (struct cred_provider){name, fetch};
}

static void make_chain(struct gcs *g, const struct gcs_config *c)
{
    if (c->id) {
        add(g, "the given HMAC key", ask_given);
    } else if (c->bearer) {
        add(g, "the given token", ask_given);
    } else if (c->text) {
        add(g, "the options", ask_text);
    } else if (c->file) {
        add(g, "the given file", ask_file);
    } else {
        if (!c->metadata_only) {
            add(g, "environment", ask_environment);
            add(g, "gcloud", ask_gcloud);
        }
        add(g, "metadata server", ask_metadata);
    }
}

static void release(void *arg)
{
    struct gcs *g = arg;
    meta_free(g->meta);
    shared_unref(g->shared);
    cred_value_clear(&g->given);
    if (g->text)
        explicit_bzero(g->text, strlen(g->text));
    mem_free(g->text);
    if (g->env.key)
        explicit_bzero((char *)g->env.key, strlen(g->env.key));
    arena_dispose(&g->arena);
    mem_free(g);
}

static void stop(void *arg)
{
    struct gcs *g = arg;
    if (g->meta)
        meta_stop(g->meta);
}

/* ---- a copy of what was configured ----------------------------------------------------------- */

static const char *copy(struct arena *a, const char *s, bool *failed)
{
    const char *c = s ? arena_strdup(a, s) : NULL;
    *failed |= s && !c;
    return c;
}

static int copy_config(struct gcs *g, const struct gcs_config *c, struct hr_error *e)
{
    bool failed = false;
    struct arena *a = &g->arena;
    const struct gcs_env *env = c->env;
    g->env = (struct gcs_env){
        .key = copy(a, env->key, &failed),
        .key_file = copy(a, env->key_file, &failed),
        .application_file = copy(a, env->application_file, &failed),
        .gcloud_file = copy(a, env->gcloud_file, &failed),
        .home = copy(a, env->home, &failed),
        .metadata = copy(a, env->metadata, &failed),
        .no_metadata = env->no_metadata && !c->metadata_only,
    };
    g->file = copy(a, c->file, &failed);
    g->text = c->text ? mem_strdup(c->text) : NULL;
    if (failed || (c->text && !g->text))
        return error_nomem(e, a->total, "a credential");
    return cred_value_set(&g->given, c->id, c->secret, c->bearer, 0, e);
}

static int init(struct gcs *g, const struct gcs_config *c, struct hr_error *e)
{
    TRY(copy_config(g, c, e));
    make_chain(g, c);
    if (c->id || c->bearer)
        return 0;
    g->shared = c->shared ? shared_ref(c->shared) : shared_new(e);
    if (!g->shared)
        return HR_ENOMEM;
    const struct meta_config meta = {.net = c->net, .policy = c->policy, .ca_file = c->ca_file};
    return meta_new(&meta, &g->meta, e);
}

int cred_gcs_new(const struct gcs_config *c, struct cred **out, struct hr_error *e)
{
    *out = NULL;
    struct gcs *g = mem_zalloc(sizeof *g);
    if (!g)
        return error_nomem(e, sizeof *g, "a credential");
    arena_init(&g->arena);
    int rc = init(g, c, e);
    struct cred_config config = {
        .chain = g->chain,
        .n = g->n,
        .arg = g,
        .release = release,
        .stop = stop,
        .ready = c->ready,
        .ready_arg = c->ready_arg,
        .what = c->what,
        .anonymous = c->anonymous,
        .n_late = c->late_machine && g->n > 1 ? 1 : 0, /* the metadata server, which stands last */
        .log = c->log,
        .log_arg = c->log_arg,
    };
    if (rc == 0 && !(*out = cred_new(&config, e)))
        rc = HR_ENOMEM;
    if (rc < 0)
        release(g);
    return rc;
}
