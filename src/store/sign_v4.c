/* See sign_v4.h. */
#include "store/sign_v4.h"

#include <string.h>
#include <time.h>

#include "base/hash.h"

#define ALGORITHM "AWS4-HMAC-SHA256"

void sign_v4_init(struct sign_v4 *s)
{
    s->date[0] = 0;
    buf_init(&s->authorization);
}

void sign_v4_dispose(struct sign_v4 *s)
{
    buf_dispose(&s->authorization);
}

void sign_v4_key_init(struct sign_v4_key *k)
{
    *k = (struct sign_v4_key){.made = false};
    pthread_mutex_init(&k->lock, NULL);
}

void sign_v4_key_dispose(struct sign_v4_key *k)
{
    explicit_bzero(k->bytes, sizeof k->bytes);
    pthread_mutex_destroy(&k->lock);
}

/* ---- the key --------------------------------------------------------------------------------- */

static int hmac_text(const struct crypto *c, uint8_t key[SHA256_BYTES], const char *text)
{
    return crypto_hmac_sha256(c, key, SHA256_BYTES, text, strlen(text), key);
}

static int derive(const struct crypto *c, const char *secret, const char *day,
                  const struct sign_v4_request *r, uint8_t out[SHA256_BYTES])
{
    struct buf first;
    buf_init(&first);
    buf_puts(&first, "AWS4");
    buf_puts(&first, secret);
    int rc = first.failed ? -1 : crypto_hmac_sha256(c, first.data, first.size, day, 8, out);
    if (first.data)
        explicit_bzero(first.data, first.size);
    buf_dispose(&first);
    if (rc < 0 || hmac_text(c, out, r->region) < 0 || hmac_text(c, out, r->service) < 0)
        return -1;
    return hmac_text(c, out, "aws4_request");
}

static int key_of(const struct crypto *c, struct sign_v4_key *k, const char *secret,
                  const char *day, const struct sign_v4_request *r, uint8_t out[SHA256_BYTES])
{
    struct hash of;
    hash_init(&of, 4);
    hash_string(&of, secret);
    hash_data(&of, day, 8);
    hash_string(&of, r->region);
    hash_string(&of, r->service);
    int rc = 0;
    pthread_mutex_lock(&k->lock);
    if (!k->made || k->of != hash_value(&of)) {
        rc = derive(c, secret, day, r, k->bytes);
        k->made = rc == 0;
        k->of = hash_value(&of);
    }
    memcpy(out, k->bytes, SHA256_BYTES);
    pthread_mutex_unlock(&k->lock);
    return rc;
}

/* ---- the request ----------------------------------------------------------------------------- */

static void two_digits(char *out, int v)
{
    out[0] = (char)('0' + v / 10 % 10);
    out[1] = (char)('0' + v % 10);
}

static void write_date(char out[17], int64_t unix_time)
{
    struct tm t = {0};
    time_t now = (time_t)unix_time;
    gmtime_r(&now, &t);
    memcpy(out, "00000000T000000Z", 17);
    two_digits(out, (t.tm_year + 1900) / 100);
    two_digits(out + 2, t.tm_year % 100);
    two_digits(out + 4, t.tm_mon + 1);
    two_digits(out + 6, t.tm_mday);
    two_digits(out + 9, t.tm_hour);
    two_digits(out + 11, t.tm_min);
    two_digits(out + 13, t.tm_sec);
}

struct signed_headers {
    struct sign_v4_header all[SIGN_V4_HEADERS];
    size_t n;
};

static void add(struct signed_headers *h, const char *name, const char *value)
{
    size_t at = h->n++;
    while (at > 0 && strcmp(h->all[at - 1].name, name) > 0) {
        h->all[at] = h->all[at - 1];
        at--;
    }
    h->all[at] = (struct sign_v4_header){name, value};
}

static void collect(struct signed_headers *h, const struct sign_v4_request *r,
                    const struct cred_value *v, const char *date)
{
    h->n = 0;
    add(h, "host", r->host);
    add(h, "x-amz-date", date);
    if (v->token)
        add(h, "x-amz-security-token", v->token);
    if (!strcmp(r->service, "s3"))
        add(h, "x-amz-content-sha256", r->payload);
    for (size_t i = 0; i < r->n_headers; i++)
        add(h, r->headers[i].name, r->headers[i].value);
}

static void add_names(struct buf *out, const struct signed_headers *h)
{
    for (size_t i = 0; i < h->n; i++) {
        if (i)
            buf_putc(out, ';');
        buf_puts(out, h->all[i].name);
    }
}

static void add_canonical(struct buf *out, const struct sign_v4_request *r,
                          const struct signed_headers *h)
{
    const char *const lines[] = {r->method, r->path, r->query};
    for (size_t i = 0; i < 3; i++) {
        buf_puts(out, lines[i]);
        buf_putc(out, '\n');
    }
    for (size_t i = 0; i < h->n; i++) {
        buf_puts(out, h->all[i].name);
        buf_putc(out, ':');
        buf_puts(out, h->all[i].value);
        buf_putc(out, '\n');
    }
    buf_putc(out, '\n');
    add_names(out, h);
    buf_putc(out, '\n');
    buf_puts(out, r->payload);
}

static void add_scope(struct buf *out, const struct sign_v4_request *r, const char *date)
{
    buf_add(out, date, 8);
    buf_putc(out, '/');
    buf_puts(out, r->region);
    buf_putc(out, '/');
    buf_puts(out, r->service);
    buf_puts(out, "/aws4_request");
}

/* The text that is signed, in `work`, which holds the canonical request before. */
static int string_to_sign(const struct crypto *c, const struct sign_v4_request *r, const char *date,
                          struct buf *work)
{
    uint8_t hash[SHA256_BYTES];
    if (work->failed || crypto_sha256(c, work->data, work->size, hash) < 0)
        return -1;
    buf_clear(work);
    buf_puts(work, ALGORITHM "\n");
    buf_puts(work, date);
    buf_putc(work, '\n');
    add_scope(work, r, date);
    buf_putc(work, '\n');
    return crypto_hex(work, hash, sizeof hash);
}

int sign_v4(const struct crypto *c, struct sign_v4_key *key, const struct sign_v4_request *r,
            const struct cred_value *v, int64_t unix_time, struct sign_v4 *out, struct hr_error *e)
{
    uint8_t k[SHA256_BYTES], signature[SHA256_BYTES];
    struct signed_headers h;
    struct buf *text = &out->authorization; /* first as scratch */
    if (r->n_headers + 4 > SIGN_V4_HEADERS)
        return error_set(e, HR_EINVAL, "too many headers to sign");
    write_date(out->date, unix_time);
    collect(&h, r, v, out->date);
    buf_clear(text);
    buf_reserve(text, 1024);
    add_canonical(text, r, &h);
    if (string_to_sign(c, r, out->date, text) < 0 ||
        key_of(c, key, v->secret, out->date, r, k) < 0 ||
        crypto_hmac_sha256(c, k, sizeof k, text->data, text->size, signature) < 0)
        return error_nomem(e, text->size, "a signature");
    explicit_bzero(k, sizeof k);
    buf_clear(text);
    buf_puts(text, ALGORITHM " Credential=");
    buf_puts(text, v->id);
    buf_putc(text, '/');
    add_scope(text, r, out->date);
    buf_puts(text, ", SignedHeaders=");
    add_names(text, &h);
    buf_puts(text, ", Signature=");
    return crypto_hex(text, signature, sizeof signature) < 0
               ? error_nomem(e, text->size, "a signature")
               : 0;
}
