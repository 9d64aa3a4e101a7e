/* See s3_address.h. */
#include "store/s3_address.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "net/url.h"

static bool is_lower(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n >= k && !strcmp(s + n - k, end);
}

/* ---- names ----------------------------------------------------------------------------------- */

int s3_bucket_check(const char *bucket, const char *shown, struct hr_error *e)
{
    if (!strncmp(bucket, "arn:", 4))
        return error_set(e, HR_EUNSUPPORTED,
                         "%s: ARNs are not read; use the access point's alias (…-s3alias), which "
                         "stands for a bucket's name",
                         shown);
    if (ends_with(bucket, "--x-s3"))
        return error_set(e, HR_EUNSUPPORTED,
                         "%s: a directory bucket (S3 Express One Zone) has sessions and listings "
                         "of its own, which are not supported; copy the archive to a general "
                         "purpose bucket",
                         shown);
    size_t n = strlen(bucket);
    bool ok = n >= 3 && n <= 255;
    for (size_t i = 0; i < n; i++)
        ok &= is_lower(bucket[i]) || (bucket[i] >= 'A' && bucket[i] <= 'Z') ||
              strchr("._-", bucket[i]);
    if (ok)
        return 0;
    return error_set(e, HR_EINVAL,
                     "%s: no name of a bucket in this URL; write s3://bucket/path (3 to 63 "
                     "letters, digits, '-' and '.')",
                     shown);
}

bool s3_region_ok(const char *region, size_t n)
{
    if (!n || n > 63)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!is_lower(region[i]) && (region[i] != '-' || i == 0 || i + 1 == n))
            return false;
    return true;
}

/* Can the bucket be the first label of a host name that AWS's certificates cover? */
static bool is_label(const char *bucket)
{
    size_t n = strlen(bucket);
    if (n > 63 || !is_lower(bucket[0]) || !is_lower(bucket[n - 1]))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!is_lower(bucket[i]) && bucket[i] != '-')
            return false;
    return true;
}

bool s3_endpoint_names(const char *endpoint, const char *bucket)
{
    size_t n = strlen(endpoint), size = strlen(bucket);
    while (n && endpoint[n - 1] == '/')
        n--;
    return n > size && endpoint[n - size - 1] == '/' &&
           !memcmp(endpoint + n - size, bucket, size) &&
           !(n > size + 1 && endpoint[n - size - 2] == '/'); /* not the host's name */
}

const char *s3_region_of_host(const char *host, size_t n, size_t *size)
{
    static const char *const marks[] = {"s3.dualstack.", "s3-website.", "s3.", "s3-"};
    const char *suffix = memmem(host, n, ".amazonaws.com", 14);
    for (size_t i = 0; suffix && i < sizeof marks / sizeof *marks; i++) {
        size_t k = strlen(marks[i]);
        for (const char *p = host; p + k < suffix; p++) {
            if ((p != host && p[-1] != '.') || memcmp(p, marks[i], k))
                continue;
            *size = (size_t)(suffix - (p + k));
            if (memchr(p + k, '-', *size) && s3_region_ok(p + k, *size))
                return p + k;
        }
    }
    return NULL;
}

/* ---- addresses ------------------------------------------------------------------------------- */

struct server { /* of the user's endpoint */
    struct url url;
    const char *host, *path; /* inside url.base */
    size_t host_size;
};

static int parse_endpoint(const struct s3_place *p, struct server *s, struct hr_error *e)
{
    struct buf text;
    struct hr_error why = {0};
    buf_init(&text);
    if (!strstr(p->endpoint, "://"))
        buf_printf(&text, "%s://", p->scheme);
    buf_puts(&text, p->endpoint);
    int rc =
        text.failed ? error_nomem(&why, text.size, "a URL") : url_parse(text.data, &s->url, &why);
    buf_dispose(&text);
    if (rc < 0)
        return error_set(e, rc, "the endpoint of the store: %s", why.text);
    s->host = strstr(s->url.base, "://") + 3;
    s->host_size = strcspn(s->host, "/");
    s->path = s->host + s->host_size;
    bool ascii = true;
    for (size_t i = 0; i < s->host_size; i++)
        ascii &= (unsigned char)s->host[i] < 128;
    if (ascii && !memchr(s->host, '@', s->host_size) && !*s->url.query)
        return 0;
    rc = error_set(e, HR_EINVAL,
                   "the endpoint of the store: %s: give scheme, host, port and path alone, in "
                   "ASCII; keys go into the options key and secret",
                   s->url.shown);
    url_dispose(&s->url);
    return rc;
}

static void add_lower(struct buf *out, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_putc(out, s[i] >= 'A' && s[i] <= 'Z' ? (char)(s[i] | 32) : s[i]);
}

/* host[:port] as libcurl will send it. */
static void drop_default_port(struct buf *host, bool tls)
{
    const char *port = tls ? ":443" : ":80";
    if (host->size && ends_with(host->data, port))
        host->data[host->size -= strlen(port)] = 0;
}

static int finish(struct s3_address *a, struct buf *host, struct buf *path, const char *region,
                  struct hr_error *e)
{
    struct buf origin;
    buf_init(&origin);
    buf_printf(&origin, "%s://%s", a->tls ? "https" : "http", host->data ? host->data : "");
    if (!host->failed && !path->failed) {
        a->region = mem_strdup(region);
        a->origin = buf_take(&origin);
        a->host = buf_take(host);
        a->path = path->size ? buf_take(path) : mem_strdup("");
    }
    buf_dispose(&origin);
    if (a->region && a->origin && a->host && a->path)
        return 0;
    s3_address_dispose(a);
    return error_nomem(e, 256, "an address");
}

static void at_endpoint(const struct s3_place *p, const struct server *s, struct buf *host,
                        struct buf *path)
{
    size_t n = strlen(p->bucket);
    bool has_it = s->host_size > n && !strncmp(s->host, p->bucket, n) && s->host[n] == '.';
    if (p->style == S3_STYLE_VIRTUAL && !has_it)
        buf_printf(host, "%s.", p->bucket);
    add_lower(host, s->host, s->host_size);
    buf_puts(path, s->path);
    if (p->style != S3_STYLE_VIRTUAL)
        buf_printf(path, "/%s", p->bucket);
}

int s3_address_init(struct s3_address *a, const struct s3_place *p, const char *region,
                    struct hr_error *e)
{
    struct server s = {.host = NULL};
    struct buf host, path;
    *a = (struct s3_address){.tls = strcmp(p->scheme, "http") != 0};
    if (p->endpoint)
        TRY(parse_endpoint(p, &s, e));
    buf_init(&host);
    buf_init(&path);
    bool virtual = p->style == S3_STYLE_VIRTUAL ||
                   (p->style == S3_STYLE_AUTO && !p->endpoint && is_label(p->bucket));
    if (p->endpoint) {
        a->tls = s.url.tls;
        at_endpoint(p, &s, &host, &path);
    } else {
        buf_printf(&host, "%s%ss3.%s.%s", virtual ? p->bucket : "", virtual ? "." : "", region,
                   p->suffix);
        if (!virtual)
            buf_printf(&path, "/%s", p->bucket);
    }
    drop_default_port(&host, a->tls);
    int rc = finish(a, &host, &path, region, e);
    buf_dispose(&host);
    buf_dispose(&path);
    url_dispose(&s.url);
    return rc;
}

void s3_address_dispose(struct s3_address *a)
{
    mem_free(a->region);
    mem_free(a->origin);
    mem_free(a->host);
    mem_free(a->path);
    *a = (struct s3_address){0};
}
