/* See url.h. Parsing is by hand and strict about what reaches the wire: a byte that is not
 * printable ASCII never leaves this file unencoded, so that no key and no archive metadata can
 * smuggle a line break into a request. */
#include "net/url.h"

#include <string.h>
#include <strings.h>

#include "base/mem.h"

static bool is_alnum(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool is_unreserved(unsigned char c) /* RFC 3986 §2.3 */
{
    return is_alnum(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

static int hex_value(unsigned char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void add_escaped(struct buf *out, unsigned char c)
{
    static const char digits[] = "0123456789ABCDEF";
    char text[3] = {'%', digits[c >> 4], digits[c & 15]};
    buf_add(out, text, 3);
}

int url_encode(struct buf *out, const char *s, size_t n, bool keep_slash)
{
    size_t from = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (is_unreserved(c) || (keep_slash && c == '/'))
            continue;
        buf_add(out, s + from, i - from);
        add_escaped(out, c);
        from = i + 1;
    }
    buf_add(out, s + from, n - from);
    return out->failed ? -1 : 0;
}

int64_t url_decode(char *s)
{
    char *to = s;
    for (const char *p = s; *p; p++, to++) {
        *to = *p;
        if (*p != '%')
            continue;
        int high = hex_value((unsigned char)p[1]);
        int low = high < 0 ? -1 : hex_value((unsigned char)p[2]);
        if (low < 0 || high * 16 + low == 0)
            return -1;
        *to = (char)(high * 16 + low);
        p += 2;
    }
    *to = 0;
    return to - s;
}

/* The path as the user wrote it: keep what RFC 3986 lets stand in a path, keep escapes, encode
 * the rest. */
static void add_path(struct buf *out, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        bool escape = c == '%' && n - i > 2 && hex_value((unsigned char)s[i + 1]) >= 0 &&
                      hex_value((unsigned char)s[i + 2]) >= 0;
        if (escape || is_unreserved(c) || (c && strchr("/:@!$&'()*+,;=", c)))
            buf_putc(out, (char)c);
        else
            add_escaped(out, c);
    }
}

static bool host_ok(const char *s, size_t n)
{
    const char *end = s + n, *p = s;
    if (p < end && *p == '[') {
        p = memchr(p, ']', (size_t)(end - p));
        if (!p || p == s + 1)
            return false;
        for (const char *q = s + 1; q < p; q++)
            if (hex_value((unsigned char)*q) < 0 && *q != ':' && *q != '.')
                return false;
        p++;
    } else {
        while (p < end && *p != ':' &&
               (is_unreserved((unsigned char)*p) || (unsigned char)*p > 127))
            p++;
        if (p == s)
            return false;
    }
    if (p == end)
        return true;
    if (*p++ != ':' || p == end || end - p > 5)
        return false;
    uint32_t port = 0;
    for (; p < end; p++) {
        if (*p < '0' || *p > '9')
            return false;
        port = port * 10 + (uint32_t)(*p - '0');
    }
    return port > 0 && port < 65536;
}

static bool printable(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] <= ' ' || (unsigned char)s[i] >= 127)
            return false;
    return true;
}

struct parts {
    const char *user, *host, *path, *query;
    size_t user_size, host_size, path_size, query_size; /* user with its '@', query with its '?' */
};

static void split(const char *after_scheme, struct parts *p)
{
    const char *end = after_scheme + strcspn(after_scheme, "#");
    const char *authority_end = after_scheme + strcspn(after_scheme, "/?#");
    const char *at = memrchr(after_scheme, '@', (size_t)(authority_end - after_scheme));
    p->user = after_scheme;
    p->user_size = at ? (size_t)(at + 1 - after_scheme) : 0;
    p->host = after_scheme + p->user_size;
    p->host_size = (size_t)(authority_end - p->host);
    p->path = authority_end;
    p->query = authority_end + strcspn(authority_end, "?#");
    p->path_size = (size_t)(p->query - p->path);
    p->query_size = (size_t)(end - p->query);
    while (p->path_size && p->path[p->path_size - 1] == '/')
        p->path_size--;
}

int url_parse(const char *text, struct url *out, struct hr_error *e)
{
    *out = (struct url){0};
    char shown[256];
    url_redact(text, shown, sizeof shown);
    bool tls = !strncasecmp(text, "https://", 8);
    if (!tls && strncasecmp(text, "http://", 7))
        return error_set(e, HR_EINVAL, "%s: not an http or https URL", shown);
    struct parts p;
    split(text + (tls ? 8 : 7), &p);
    if (!host_ok(p.host, p.host_size))
        return error_set(e, HR_EINVAL, "%s: no valid host in this URL; write %s://host[:port]/path",
                         shown, tls ? "https" : "http");
    if (!printable(p.user, p.user_size) || !printable(p.query, p.query_size))
        return error_set(
            e, HR_EINVAL,
            "%s: the user part and the query of a URL are sent byte for byte and must be "
            "percent-encoded ASCII",
            shown);
    struct buf wire, people;
    buf_init(&wire);
    buf_init(&people);
    const char *scheme = tls ? "https://" : "http://";
    buf_puts(&wire, scheme);
    buf_puts(&people, scheme);
    buf_add(&wire, p.user, p.user_size);
    buf_add(&wire, p.host, p.host_size);
    buf_add(&people, p.host, p.host_size);
    add_path(&wire, p.path, p.path_size);
    add_path(&people, p.path, p.path_size);
    out->tls = tls;
    out->base = buf_take(&wire);
    out->shown = buf_take(&people);
    out->query = mem_strndup(p.query, p.query_size);
    buf_dispose(&wire);
    buf_dispose(&people);
    if (!out->base || !out->shown || !out->query) {
        url_dispose(out);
        return error_nomem(e, strlen(text), "a URL");
    }
    return 0;
}

void url_dispose(struct url *u)
{
    mem_free(u->base);
    mem_free(u->query);
    mem_free(u->shown);
    *u = (struct url){0};
}

int url_add_key(struct buf *out, const struct url *u, const char *key)
{
    buf_puts(out, u->base);
    buf_putc(out, '/');
    url_encode(out, key, strlen(key), true);
    buf_puts(out, u->query);
    return out->failed ? -1 : 0;
}

const char *url_redact(const char *url, char *out, size_t n)
{
    const char *host = strstr(url, "://");
    bool scheme_first =
        host && (size_t)(host - url) + 1 == strcspn(url, "/?#"); /* not in a query */
    host = scheme_first ? host + 3 : url;
    size_t authority = strcspn(host, "/?#");
    const char *at = memrchr(host, '@', authority);
    size_t scheme = (size_t)(host - url), used = 0;
    if (at)
        host = at + 1;
    size_t rest = strcspn(host, "?#");
    if (!n)
        return out;
    for (size_t i = 0; i < scheme && used + 1 < n; i++)
        out[used++] = url[i];
    for (size_t i = 0; i < rest && used + 1 < n; i++)
        out[used++] = host[i];
    out[used] = 0;
    return out;
}
