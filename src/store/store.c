/* Which store a URL means, and the calls that all stores share.
 *
 * A path without a scheme is a local directory. Schemes that are not read are refused by name,
 * never guessed at: an archive on the wrong store must not look like an empty one. */
#include "store/store.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/thread.h"
#include "net/url.h"
#include "store/azure_address.h"
#include "store/ops.h"

static size_t scheme_size(const char *url)
{
    size_t n = 0;
    while ((url[n] | 0x20) >= 'a' && (url[n] | 0x20) <= 'z')
        n++;
    while (n && (((url[n] | 0x20) >= 'a' && (url[n] | 0x20) <= 'z') ||
                 (url[n] >= '0' && url[n] <= '9') || (url[n] && strchr("+.-", url[n]))))
        n++;
    return n && !strncmp(url + n, "://", 3) ? n : 0;
}

static bool is_one_of(const char *s, size_t n, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(names[i]) == n && !strncasecmp(s, names[i], n))
            return true;
    return false;
}
#define IS(...)                                                                                    \
    is_one_of(url, n, (const char *const[]){__VA_ARGS__},                                          \
              sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* "s3:/bucket": too short for a URL, and hardly the name of a directory. */
static bool one_slash(const char *url)
{
    size_t n = strcspn(url, ":");
    return url[n] && url[n + 1] == '/' &&
           IS("s3", "gs", "gcs", "az", "abfs", "abfss", "http", "https", "file", "memory");
}

/* file:///a/b%20c → /a/b c */
static int open_file_url(const char *url, const char *options, struct store **out,
                         struct hr_error *e)
{
    const char *path = strstr(url, "://") + 3;
    if (!strncasecmp(path, "localhost/", 10))
        path += 9;
    if (*path != '/')
        return error_set(e, HR_EINVAL, "%s: a file URL has three slashes: file:///directory", url);
    char *decoded = mem_strdup(path);
    if (!decoded)
        return error_nomem(e, strlen(path), "a path");
    int rc = url_decode(decoded) < 0
                 ? error_set(e, HR_EINVAL, "%s: a broken %%-escape in this URL", url)
                 : file_store_open(decoded, options, out, e);
    mem_free(decoded);
    return rc;
}

bool store_url_is_remote(const char *url)
{
    size_t n = scheme_size(url);
    return n && !IS("file", "memory");
}

static int open_kind(const char *url, const char *options, const struct store_env *env,
                     struct store **out, struct hr_error *e)
{
    *out = NULL;
    char shown[256];
    size_t n = scheme_size(url);
    if (!*url)
        return error_set(e, HR_EINVAL, "an empty path; give a directory or a URL");
    if (n && (IS("az", "azure", "adl", "abfs", "abfss", "wasb", "wasbs") || azure_url_is(url)))
        return azure_store_open(url, options, env, out, e);
    if (n && IS("http", "https"))
        return http_store_open(url, options, env, out, e);
    if (n && IS("file"))
        return open_file_url(url, options, out, e);
    if (n && IS("memory"))
        return memory_store_open(url, options, out, e);
    if (n && IS("s3", "s3a", "s3n"))
        return s3_store_open(url, options, env, out, e);
    if (n && IS("gs", "gcs"))
        return gcs_store_open(url, options, env, out, e);
    url_redact(url, shown, sizeof shown);
    if (!n && one_slash(url))
        return error_set(e, HR_EINVAL,
                         "%s: two slashes stand behind a URL's scheme: %.*s://… (pathlib.Path "
                         "takes one away: give a str)",
                         shown, (int)strcspn(url, ":"), url);
    if (n || strstr(url, "::"))
        return error_set(e, HR_EUNSUPPORTED,
                         "%s: this kind of URL is not read; local directories, file://, http://, "
                         "https://, s3://, gs:// and az:// are",
                         shown);
    return file_store_open(url, options, out, e);
}

int store_open_with(const char *url, const char *options, const struct store_env *env,
                    struct store **out, struct hr_error *e)
{
    TRY(open_kind(url, options, env, out, e));
    (*out)->interrupted = env->interrupted;
    (*out)->interrupted_arg = env->interrupted_arg;
    return 0;
}

int store_open(const char *url, const char *options, struct store **out, struct hr_error *e)
{
    return store_open_with(url, options, &(struct store_env){0}, out, e);
}

struct store *store_ref(struct store *s)
{
    atomic_fetch_add(&s->refs, 1);
    return s;
}

void store_unref(struct store *s)
{
    if (s && atomic_fetch_sub(&s->refs, 1) == 1)
        s->ops->close(s);
}

const char *store_url(const struct store *s)
{
    return s->url;
}

struct store *store_of(struct store *s, const char **key)
{
    while (s->ops->route) {
        struct store *of = s->ops->route(s, key);
        if (of == s)
            break;
        s = of;
    }
    return s;
}

bool store_blocking(const struct store *s)
{
    return s->ops->blocking;
}

bool store_remote(const struct store *s)
{
    return s->ops->remote;
}

bool store_local(const struct store *s)
{
    return s->ops->local;
}

static int check(struct store *s, const char *key, struct store_range range, struct hr_error *e)
{
    uint64_t end;
    if (!*key)
        return error_set(e, HR_EINVAL, "%s: an empty key", s->url);
    bool whole = range.offset == 0 && range.length == 0;
    if (range.offset < 0
            ? range.offset == INT64_MIN
            : !whole && (!range.length || !add_u64((uint64_t)range.offset, range.length, &end) ||
                         end > INT64_MAX))
        return error_set(e, HR_EINVAL, "%s/%s: no bytes lie at offset %" PRId64 ", length %" PRIu64,
                         s->url, key, range.offset, range.length);
    return 0;
}

int store_read(struct store *s, const char *key, struct store_range range,
               const struct store_sink *sink, struct store_result *result)
{
    *result = (struct store_result){0};
    s = store_of(s, &key);
    result->rc = check(s, key, range, &result->error);
    if (result->rc == 0)
        s->ops->read(s, key, range, sink, result);
    return result->rc;
}

int store_list(struct store *s, const char *prefix, char **names, size_t *size, struct hr_error *e)
{
    *names = NULL;
    *size = 0;
    if (!s->ops->list)
        return error_set(e, HR_EUNSUPPORTED, "%s: this store cannot list its keys", s->url);
    return s->ops->list(s, prefix, names, size, e);
}

int store_start(struct store *s, const char *key, struct store_range range,
                const struct store_sink *sink, store_done done, void *arg, uint64_t *ticket,
                struct hr_error *e)
{
    *ticket = 0;
    if (s->ops->blocking)
        return error_set(e, HR_EINTERNAL,
                         "%s: reads of this store block; they belong on a worker thread", s->url);
    TRY(check(s, key, range, e));
    return s->ops->start(s, key, range, sink, done, arg, ticket, e);
}

void store_cancel(struct store *s, uint64_t ticket)
{
    if (s->ops->cancel)
        s->ops->cancel(s, ticket);
}

/* The first warning a little late, so that it can say what became of the first try. */
#define WARN_FIRST_NS 10500000000ull
#define WARN_AGAIN_NS 30000000000ull

bool store_interrupted(struct store *s, const char *key, struct store_wait *w)
{
    uint64_t now = clock_ns();
    if (!w->since_ns)
        w->since_ns = now;
    if (now >= (w->warned_ns ? w->warned_ns + WARN_AGAIN_NS : w->since_ns + WARN_FIRST_NS)) {
        w->warned_ns = now;
        if (s->ops->waits)
            s->ops->waits(s, key, (unsigned)((now - w->since_ns) / 1000000000));
    }
    return s->interrupted && s->interrupted(s->interrupted_arg);
}

void store_trouble(struct store *s, char *out, size_t n)
{
    out[0] = 0;
    if (s->ops->trouble)
        s->ops->trouble(s, out, n);
}

int store_open_file(struct store *s, const char *key, int *fd, uint64_t *size, struct hr_error *e)
{
    *fd = -1;
    s = store_of(s, &key);
    if (!s->ops->local)
        return error_set(e, HR_EINTERNAL, "%s: not a local store", s->url);
    TRY(check(s, key, (struct store_range){0}, e));
    return s->ops->open_file(s, key, fd, size, e);
}

int store_expect(struct store *s, const char *key, struct hr_error *e)
{
    int fd;
    uint64_t size;
    if (!key)
        return 0;
    s = store_of(s, &key);
    if (!s->ops->local)
        return 0;
    int rc = store_open_file(s, key, &fd, &size, e);
    if (rc == STORE_OK)
        close(fd);
    return rc == STORE_MISSING
               ? error_set(e, HR_ESTORE,
                           "%s/%s has disappeared since the archive was opened: what is missing "
                           "now is not taken for fill values",
                           s->url, key)
               : rc;
}

void store_stats_json(struct store *s, void *buf)
{
    s->ops->stats(s, buf);
}

/* ---- for the stores themselves --------------------------------------------------------------- */

int store_clip(struct store_range range, uint64_t size, uint64_t *first, uint64_t *length,
               struct hr_error *e)
{
    *first = 0;
    *length = size;
    if (range.offset == 0 && range.length == 0)
        return 0;
    if (range.offset < 0) {
        *length = (uint64_t)-range.offset < size ? (uint64_t)-range.offset : size;
        *first = size - *length;
        return 0;
    }
    *first = (uint64_t)range.offset;
    *length = range.length;
    if (*first + *length <= size)
        return 0;
    return error_set(e, HR_EDATA,
                     "the object has %" PRIu64 " bytes, but bytes %" PRIu64 "-%" PRIu64
                     " were asked for; it was cut, or the index that points into it is stale",
                     size, *first, *first + *length - 1);
}

void *store_room(const struct store_sink *sink, uint64_t size, struct store_result *r)
{
    void *place = sink->room(sink->arg, size);
    if (!place && size)
        r->rc = error_set(&r->error, HR_ENOMEM, "no room for %" PRIu64 " bytes", size);
    return place;
}

void store_count(struct store_counts *c, const struct store_result *r)
{
    atomic_fetch_add_explicit(&c->requests, 1, memory_order_relaxed);
    if (r->rc == STORE_OK)
        atomic_fetch_add_explicit(&c->bytes, r->size, memory_order_relaxed);
    else
        atomic_fetch_add_explicit(r->rc == STORE_MISSING ? &c->missing : &c->failed, 1,
                                  memory_order_relaxed);
}

void store_counts_json(const struct store_counts *c, struct buf *out)
{
    buf_printf(out,
               "{\"requests\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"missing\": %" PRIu64
               ", \"failed\": %" PRIu64 "}",
               atomic_load(&c->requests), atomic_load(&c->bytes), atomic_load(&c->missing),
               atomic_load(&c->failed));
}
