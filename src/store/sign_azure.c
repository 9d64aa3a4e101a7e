/* See sign_azure.h. */
#include "store/sign_azure.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/mem.h"
#include "net/url.h"

struct part { /* of headers or query */
    const char *name, *value;
    size_t name_size, value_size;
};

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 32) : c;
}

static void add_lower(struct buf *out, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_putc(out, lower(s[i]));
}

static int compare(const struct part *a, const struct part *b)
{
    size_t n = a->name_size < b->name_size ? a->name_size : b->name_size;
    for (size_t i = 0; i < n; i++) {
        int d = (unsigned char)lower(a->name[i]) - (unsigned char)lower(b->name[i]);
        if (d)
            return d;
    }
    return (a->name_size > b->name_size) - (a->name_size < b->name_size);
}

static bool is_before(const struct part *a, const struct part *b)
{
    int d = compare(a, b);
    if (d)
        return d < 0;
    size_t n = a->value_size < b->value_size ? a->value_size : b->value_size;
    d = memcmp(a->value, b->value, n);
    return d ? d < 0 : a->value_size < b->value_size;
}

/* Into its place among those before it, by name and then by value. */
static void insert(struct part *parts, size_t *n, struct part p)
{
    size_t at = (*n)++;
    while (at > 0 && is_before(&p, &parts[at - 1])) {
        parts[at] = parts[at - 1];
        at--;
    }
    parts[at] = p;
}

/* ---- headers --------------------------------------------------------------------------------- */

static struct part split_line(const char *line)
{
    const char *colon = strchr(line, ':');
    struct part p = {.name = line, .name_size = colon ? (size_t)(colon - line) : strlen(line)};
    p.value = colon ? colon + 1 + strspn(colon + 1, " \t") : "";
    p.value_size = strlen(p.value);
    while (p.value_size && strchr(" \t", p.value[p.value_size - 1]))
        p.value_size--;
    return p;
}

static struct part find_header(const struct sign_azure_request *r, const char *name)
{
    for (size_t at = 0; at < r->headers_size; at += strlen(r->headers + at) + 1) {
        struct part p = split_line(r->headers + at);
        if (p.name_size == strlen(name) && !strncasecmp(p.name, name, p.name_size))
            return p;
    }
    return (struct part){.value = ""};
}

static void add_standard(const struct sign_azure_request *r, struct buf *out)
{
    static const char *const names[] = {"Content-Encoding",
                                        "Content-Language",
                                        "Content-Length",
                                        "Content-MD5",
                                        "Content-Type",
                                        "Date",
                                        "If-Modified-Since",
                                        "If-Match",
                                        "If-None-Match",
                                        "If-Unmodified-Since",
                                        "Range"};
    bool dated = find_header(r, "x-ms-date").value_size != 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct part p = find_header(r, names[i]);
        bool zero = p.value_size == 1 && *p.value == '0' && !strcmp(names[i], "Content-Length");
        if (!strcmp(names[i], "Range") && r->range)
            buf_puts(out, r->range);
        else if (!strcmp(names[i], "If-Match") && r->if_match)
            buf_puts(out, r->if_match);
        else if (!zero && !(dated && !strcmp(names[i], "Date")))
            buf_add(out, p.value, p.value_size);
        buf_putc(out, '\n');
    }
}

/* Runs of blanks become one, but for those inside quotes. */
static void add_value(struct buf *out, const struct part *p)
{
    bool quoted = false;
    for (size_t i = 0; i < p->value_size; i++) {
        bool blank = p->value[i] == ' ' || p->value[i] == '\t';
        quoted ^= p->value[i] == '"';
        if (quoted || !blank)
            buf_putc(out, p->value[i]);
        else if (p->value[i - 1] != ' ' && p->value[i - 1] != '\t')
            buf_putc(out, ' ');
    }
}

static int add_own(const struct sign_azure_request *r, struct buf *out, struct hr_error *e)
{
    struct part parts[SIGN_AZURE_HEADERS];
    size_t n = 0;
    for (size_t at = 0; at < r->headers_size; at += strlen(r->headers + at) + 1) {
        struct part p = split_line(r->headers + at);
        if (p.name_size < 5 || strncasecmp(p.name, "x-ms-", 5) || !p.value_size)
            continue; /* libcurl sends no header without a value */
        if (n == SIGN_AZURE_HEADERS)
            return error_set(e, HR_EINVAL, "too many headers to sign");
        insert(parts, &n, p);
    }
    for (size_t i = 0; i < n; i++) {
        add_lower(out, parts[i].name, parts[i].name_size);
        buf_putc(out, ':');
        add_value(out, &parts[i]);
        buf_putc(out, '\n');
    }
    return 0;
}

/* ---- resource -------------------------------------------------------------------------------- */

/* Divides `query` in place: names and values decoded. */
static int split_query(char *query, struct part *parts, size_t *n, struct hr_error *e)
{
    char *next = query;
    while (next) {
        char *text = next, *end = strchr(text, '&');
        next = end ? end + 1 : NULL;
        if (end)
            *end = 0;
        char *value = strchr(text, '=');
        if (value)
            *value++ = 0;
        int64_t name_size = url_decode(text), value_size = value ? url_decode(value) : 0;
        if (!*text)
            continue;
        if (name_size < 0 || value_size < 0 || *n == SIGN_AZURE_PARAMETERS)
            return error_set(e, HR_EINVAL, "a query that cannot be signed");
        insert(parts, n,
               (struct part){text, value ? value : "", (size_t)name_size, (size_t)value_size});
    }
    return 0;
}

static void add_parameters(const struct part *parts, size_t n, struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        bool more = i && !compare(&parts[i - 1], &parts[i]);
        buf_putc(out, more ? ',' : '\n');
        if (!more) {
            add_lower(out, parts[i].name, parts[i].name_size);
            buf_putc(out, ':');
        }
        buf_add(out, parts[i].value, parts[i].value_size);
    }
}

static int add_resource(const struct sign_azure_request *r, struct buf *out, struct hr_error *e)
{
    struct part parts[SIGN_AZURE_PARAMETERS];
    size_t n = 0;
    buf_putc(out, '/');
    buf_puts(out, r->account);
    buf_puts(out, r->path);
    if (!r->query || !*r->query)
        return 0;
    char *query = mem_strdup(r->query);
    if (!query)
        return error_nomem(e, strlen(r->query), "a signature");
    int rc = split_query(query, parts, &n, e);
    if (rc == 0)
        add_parameters(parts, n, out);
    mem_free(query);
    return rc;
}

/* ---- the whole ------------------------------------------------------------------------------- */

int sign_azure_text(const struct sign_azure_request *r, struct buf *out, struct hr_error *e)
{
    buf_puts(out, r->method);
    buf_putc(out, '\n');
    add_standard(r, out);
    TRY(add_own(r, out, e));
    TRY(add_resource(r, out, e));
    return out->failed ? error_nomem(e, out->size, "a signature") : 0;
}

static int sign(const struct crypto *c, const struct buf *key, const struct buf *text,
                struct buf *out)
{
    uint8_t signature[SHA256_BYTES];
    if (crypto_hmac_sha256(c, key->data, key->size, text->data, text->size, signature) < 0)
        return -1;
    return crypto_base64(out, signature, sizeof signature);
}

int sign_azure(const struct crypto *c, const struct sign_azure_request *r, const char *key,
               struct buf *out, struct hr_error *e)
{
    struct buf text, bytes;
    buf_init(&text);
    buf_init(&bytes);
    buf_reserve(&text, 512);
    int rc = sign_azure_text(r, &text, e);
    if (rc == 0 && (crypto_base64_decode(&bytes, key, strlen(key)) < 0 || !bytes.size))
        rc = bytes.failed ? error_nomem(e, strlen(key), "a signature")
                          : error_set(e, HR_EINVAL,
                                      "the account key is not in Base64; copy it whole, with the "
                                      "'=' at its end");
    buf_puts(out, "SharedKey ");
    buf_puts(out, r->account);
    buf_putc(out, ':');
    if (rc == 0 && sign(c, &bytes, &text, out) < 0)
        rc = error_nomem(e, out->size, "a signature");
    if (bytes.data)
        explicit_bzero(bytes.data, bytes.cap);
    buf_dispose(&bytes);
    buf_dispose(&text);
    return rc;
}

void sign_azure_date(char out[SIGN_AZURE_DATE], int64_t unix_time)
{
    static const char days[] = "SunMonTueWedThuFriSat",
                      months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct tm t = {0};
    time_t now = (time_t)unix_time;
    gmtime_r(&now, &t);
    snprintf(out, SIGN_AZURE_DATE, "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT", days + 3 * t.tm_wday,
             (unsigned)t.tm_mday % 100, months + 3 * t.tm_mon, (unsigned)(t.tm_year + 1900) % 10000,
             (unsigned)t.tm_hour % 100, (unsigned)t.tm_min % 100, (unsigned)t.tm_sec % 100);
}
