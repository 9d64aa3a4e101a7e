/* The opened archive: a store, a format reader that knows what to ask of it, and a lock between the threads that look
 * arrays up.
 *
 * Readers do no I/O, so this is where metadata is fetched: what it needs, and with it what it will need (ahead.h). The lock is held
 * meanwhile: two threads that look up arrays of one archive wait for each other, which is what sharing the answers
 * means. Arrays never move once found and are immutable, so they are used without the lock for as long as the archive
 * lives. A forked child owns neither the store's connections nor its threads: every call there is HR_EFORK, and giving up
 * the reference touches nothing. */
#include "api/archive.h"
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "api/ahead.h"
#include "api/joined.h"
#include "api/runtime.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/thread.h"
#include "format/scdl.h"
#include "store/bridge.h"

struct hr_archive {
    atomic_int refs;
    pid_t owner;
    struct store *store;
    bool remote;           /* uses the network threads of the process */
    struct joined *joined; /* made of other archives, which do the reading; NULL: one of its own */
    struct {
        pthread_mutex_t mutex;
        struct reader *reader;
    } locked;
};

/* ---- fetching metadata ------------------------------------------------------------------------------------------ */

/* As the store said it, whether a retry can help included. */
static int store_failed(const struct hr_error *why, struct hr_error *e)
{
    if (e)
        *e = *why;
    return why->code;
}

/* Who may read objects and not list them is told 403 where there is none. Looking for a node means to ask for documents that
 * are not there; so the refusal counts, as *denied, only if no other document is found. */
static int fetch_document(struct hr_archive *a, struct ahead *ahead, const struct need *need,
                          struct document *d, struct answer *answer, struct hr_error *denied,
                          struct hr_error *e)
{
    const struct store_sink sink = {document_room, d};
    struct store_result result = {0};
    struct store_range range = {need->kind == NEED_RANGE ? need->offset : 0,
                                need->kind == NEED_RANGE ? (uint64_t)need->length : 0};
    int rc = ahead ? ahead_take(ahead, need, d, &result)
                   : store_read(a->store, need->key, range, &sink, &result);
    *answer = (struct answer){.kind = ANSWER_BYTES, .data = d->data, .size = result.size};
    answer->object_size = result.object_size;
    bool passed_over = rc < 0 && result.denied && need->alternative;
    if (passed_over && !denied->code)
        *denied = result.error;
    if (rc == STORE_MISSING || passed_over)
        answer->kind = ANSWER_MISSING;
    else if (d->size > READER_MAX_DOCUMENT)
        answer->size = d->size;
    else if (rc < 0)
        return store_failed(&result.error, e);
    return 0;
}

/* A store that refuses to list for good is one that cannot: names are probed instead. */
static int fetch_list(struct hr_archive *a, const struct need *need, struct document *d,
                      struct answer *answer, struct hr_error *e)
{
    struct hr_error why = {0};
    size_t size = 0;
    int rc = store_list(a->store, need->key, &d->data, &size, &why);
    *answer = (struct answer){.kind = ANSWER_BYTES, .data = d->data, .size = size};
    if (rc == STORE_MISSING)
        answer->kind = ANSWER_MISSING;
    else if (rc == HR_EUNSUPPORTED || (rc == HR_ESTORE && !why.retryable))
        answer->kind = ANSWER_UNSUPPORTED;
    else if (rc < 0)
        return store_failed(&why, e);
    return 0;
}

/* What the reader says is about "t2m/zarr.json"; errors of the store name the whole URL themselves. */
static int reader_error(const struct hr_archive *a, int rc, struct hr_error *e)
{
    return error_context(e, rc, "%s", store_url(a->store));
}

static int run_round_locked(struct hr_archive *a, struct ahead **ahead, struct hr_error *denied,
                            struct hr_error *e)
{
    for (;;) {
        struct need need;
        struct answer answer = {0};
        struct document d = {0};
        int rc = reader_step(a->locked.reader, &need, e);
        if (rc != READER_NEED)
            return rc < 0 ? reader_error(a, rc, e) : rc;
        if (!*ahead && !store_blocking(a->store) && !(*ahead = ahead_new(a->store, e)))
            return HR_ENOMEM;
        if (*ahead)
            TRY(ahead_begin(*ahead, a->locked.reader, e));
        rc = need.kind == NEED_LIST ? fetch_list(a, &need, &d, &answer, e)
                                    : fetch_document(a, *ahead, &need, &d, &answer, denied, e);
        if (rc >= 0 && (rc = reader_feed(a->locked.reader, &answer, e)) < 0)
            rc = reader_error(a, rc, e);
        mem_free(d.data);
        TRY(rc);
    }
}

/* Run a round of the reader to its end. What was not found where something was refused may well be there: `wanted`, one
 * array was looked for; without, the whole, which is then as incomplete as without listings. */
static int finish_round_locked(struct hr_archive *a, bool wanted, struct hr_error *e)
{
    struct hr_error denied = {0};
    struct ahead *ahead = NULL;
    int rc = run_round_locked(a, &ahead, &denied, e);
    ahead_free(ahead);
    if (denied.code && (rc == HR_ENOENT || (rc >= 0 && wanted && !reader_wanted(a->locked.reader))))
        return store_failed(&denied, e);
    return rc;
}

/* ---- lifetime --------------------------------------------------------------------------------------------------- */

static void free_archive(struct hr_archive *a)
{
    if (a->joined)
        joined_free(a->joined);
    else
        store_unref(a->store);
    if (a->remote)
        runtime_net_done();
    reader_free(a->locked.reader);
    pthread_mutex_destroy(&a->locked.mutex);
    mem_free(a);
}

/* Stores that need the network share its threads; a path needs none. */
static int open_store(struct hr_archive *a, const char *url, const char *options,
                      struct hr_error *e)
{
    struct store_env env = {.interrupted = runtime_interrupted};
    if (!store_url_is_remote(url))
        return store_open(url, options, &a->store, e);
    TRY(runtime_shared(&env.shared, e));
    TRY(runtime_net(&env.net, e));
    a->remote = true;
    return store_open_with(url, options, &env, &a->store, e);
}

static struct hr_archive *archive_new(struct hr_error *e)
{
    struct hr_archive *a = mem_zalloc(sizeof *a);
    if (!a) {
        error_nomem(e, sizeof *a, "an archive");
        return NULL;
    }
    atomic_init(&a->refs, 1);
    a->owner = getpid();
    pthread_mutex_init(&a->locked.mutex, NULL);
    return a;
}

/* Where no archive is found: what the last part of its address looks like. */
static const char *no_archive_hint(const char *url)
{
    static const char *const documents[] = {"zarr.json", ".zmetadata", ".zarray",
                                            ".zgroup",   ".zattrs",    "header.sch"};
    static const char *const files[] = {".zip", ".nc",  ".nc4",  ".h5",  ".hdf5",
                                        ".tif", ".tar", ".grib", ".npy", ".parquet"};
    const char *slash = strrchr(url, '/'), *name = slash ? slash + 1 : url;
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++)
        if (!strcmp(name, documents[i]))
            return "; this is one document of an archive: open the directory it lies in";
    if (dot && !strcmp(dot, ".h5ad"))
        return "; an HDF5 file is not read in place: `headrace cells chunk` makes an archive of it";
    for (size_t i = 0; dot && i < sizeof files / sizeof *files; i++)
        if (!strcmp(dot, files[i]))
            return "; an archive is a directory of objects, not one file";
    if (strncmp(url, "http", 4) && strpbrk(name, "?#%"))
        return "; ?, # and % are taken as parts of the name here";
    return "";
}

/* The first look into its store, opened with `rc`. */
static int archive_begin(struct hr_archive *a, int rc, struct hr_archive **out, struct hr_error *e)
{
    if (rc >= 0 && !(a->locked.reader = reader_new(e)))
        rc = HR_ENOMEM;
    if (rc >= 0)
        rc = finish_round_locked(a, false, e);
    if (rc == HR_ENOENT && a->store && e && *no_archive_hint(store_url(a->store))) {
        size_t n = strlen(e->text);
        snprintf(e->text + n, sizeof e->text - n, "%s", no_archive_hint(store_url(a->store)));
    }
    if (rc < 0) {
        free_archive(a);
        return rc;
    }
    *out = a;
    return 0;
}

int hr_open(const char *url, const char *options, struct hr_archive **out, struct hr_error *e)
{
    if (!url || !out)
        return error_set(e, HR_EINVAL, "hr_open: no URL, or no place for the archive");
    struct hr_archive *a = archive_new(e);
    return a ? archive_begin(a, open_store(a, url, options, e), out, e) : HR_ENOMEM;
}

int hr_open_store(struct hr_store *s, struct hr_archive **out, struct hr_error *e)
{
    if (!s || !out)
        return error_set(e, HR_EINVAL, "hr_open_store: no store, or no place for the archive");
    struct hr_archive *a = archive_new(e);
    return a ? archive_begin(a, bridge_open(s, &a->store, e), out, e) : HR_ENOMEM;
}

/* ---- archives made of archives ---------------------------------------------------------------------------------- */

static int open_joined(struct hr_archive *const *members, const char *const *names, int n,
                       const char *along, struct hr_archive **out, struct hr_error *e)
{
    struct hr_archive *a = archive_new(e);
    if (!a)
        return HR_ENOMEM;
    int rc = joined_new(members, names, n, along, &a->joined, e);
    if (rc < 0) {
        free_archive(a);
        return rc;
    }
    a->store = joined_store(a->joined);
    *out = a;
    return 0;
}

/* Members that overlap or stand in the wrong order are told at once, where the coordinate is to be had. */
static int check_order(struct hr_archive *a, const char *along, struct hr_error *e)
{
    const struct array *x;
    TRY(archive_find(a, along, &x, e));
    return x && x->members ? joined_check(a->joined, a, x, e) : joined_check_along(a->joined, e);
}

int hr_archive_concat(struct hr_archive *const *members, int n, const char *along,
                      struct hr_archive **out, struct hr_error *e)
{
    struct hr_archive *a;
    if (!members || !out || !along || !*along)
        return error_set(e, HR_EINVAL,
                         "concat: no archives, no dimension (such as along=\"time\"), or no place "
                         "for the archive");
    TRY(open_joined(members, NULL, n, along, &a, e));
    int rc = check_order(a, along, e);
    if (rc < 0) {
        hr_archive_unref(a);
        return rc;
    }
    *out = a;
    return 0;
}

int hr_archive_combine(struct hr_archive *const *members, const char *const *names, int n,
                       struct hr_archive **out, struct hr_error *e)
{
    if (!members || !names || !out)
        return error_set(e, HR_EINVAL,
                         "combine: no archives, no names, or no place for the archive");
    return open_joined(members, names, n, NULL, out, e);
}

struct hr_archive *hr_archive_ref(struct hr_archive *a)
{
    atomic_fetch_add(&a->refs, 1);
    return a;
}

void hr_archive_unref(struct hr_archive *a)
{
    if (a && atomic_fetch_sub(&a->refs, 1) == 1 && a->owner == getpid())
        free_archive(a);
}

int archive_check(const struct hr_archive *a, struct hr_error *e)
{
    if (a->owner != getpid())
        return error_set(
            e, HR_EFORK,
            "the archive %s was opened before this process was forked; open it again here",
            store_url(a->store));
    return 0;
}

/* ---- look-ups --------------------------------------------------------------------------------------------------- */

/* `search`: reader_want for an array that must be there, reader_try for one that may be absent. */
static int find(struct hr_archive *a, const char *path,
                int (*search)(struct reader *r, const char *path, struct hr_error *e),
                const struct array **out, struct hr_error *e)
{
    TRY(archive_check(a, e));
    pthread_mutex_lock(&a->locked.mutex);
    if (a->joined) {
        int found = joined_find(a->joined, path, search == reader_want, out, e);
        pthread_mutex_unlock(&a->locked.mutex);
        return found;
    }
    int rc = search(a->locked.reader, path, e);
    rc = rc < 0 ? reader_error(a, rc, e) : finish_round_locked(a, true, e);
    *out = rc < 0 ? NULL : reader_wanted(a->locked.reader);
    pthread_mutex_unlock(&a->locked.mutex);
    return rc;
}

static int readable(const struct hr_archive *a, const struct array *x, struct hr_error *e)
{
    if (x->problem && a->joined) /* it says whose problem it is */
        return error_set(e, x->problem_code, "%s", x->problem);
    return x->problem ? error_set(e, x->problem_code, "%s: %s", store_url(a->store), x->problem)
                      : 0;
}

int archive_look_up(struct hr_archive *a, const char *path, const struct array **out,
                    struct hr_error *e)
{
    return find(a, path, reader_want, out, e);
}

int archive_array(struct hr_archive *a, const char *path, const struct array **out,
                  struct hr_error *e)
{
    TRY(find(a, path, reader_want, out, e));
    TRY(readable(a, *out, e));
    return a->joined ? joined_check(a->joined, a, *out, e) : 0;
}

int archive_seek(struct hr_archive *a, const char *path, const struct array **out,
                 struct hr_error *e)
{
    return find(a, path, reader_try, out, e);
}

int archive_find(struct hr_archive *a, const char *path, const struct array **out,
                 struct hr_error *e)
{
    TRY(find(a, path, reader_try, out, e));
    return *out ? readable(a, *out, e) : 0;
}

int archive_scdl(struct hr_archive *a, struct scdl_shape *out)
{
    if (a->joined)
        return 0;
    pthread_mutex_lock(&a->locked.mutex);
    int rc = scdl_describe(a->locked.reader, out);
    pthread_mutex_unlock(&a->locked.mutex);
    return rc;
}

bool archive_joined(const struct hr_archive *a)
{
    return a->joined != NULL;
}

struct store *archive_store(const struct hr_archive *a)
{
    return a->store;
}

const char *archive_url(const struct hr_archive *a)
{
    return store_url(a->store);
}

static int walk_locked(struct hr_archive *a, struct archive_contents *c, struct hr_error *e)
{
    struct reader *r = a->locked.reader;
    if (a->joined)
        return joined_walk(a->joined, c, e);
    int rc = reader_walk(r, e);
    rc = rc < 0 ? reader_error(a, rc, e) : finish_round_locked(a, false, e);
    *c = (struct archive_contents){.format = reader_format(r),
                                   .consolidated = reader_consolidated(r),
                                   .complete = reader_complete(r)};
    c->n_arrays = reader_arrays(r, &c->arrays);
    c->n_groups = reader_groups(r, &c->groups);
    return rc;
}

int archive_walk(struct hr_archive *a,
                 int (*report)(const struct archive_contents *c, void *arg, struct hr_error *e),
                 void *arg, struct hr_error *e)
{
    struct archive_contents c;
    TRY(archive_check(a, e));
    pthread_mutex_lock(&a->locked.mutex);
    int rc = walk_locked(a, &c, e);
    if (rc >= 0)
        rc = report(&c, arg, e);
    pthread_mutex_unlock(&a->locked.mutex);
    return rc;
}
