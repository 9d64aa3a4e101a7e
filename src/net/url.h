/* Base URLs and object keys: pure text.
 *
 * A store's URL is split once: what every key hangs below, the query that goes behind every key
 * byte for byte (presigned URLs and SAS tokens are signed over these bytes), and what people may
 * see. Keys are opaque bytes: all but A-Za-z0-9-._~ and '/' become %XX with upper-case digits,
 * nothing is normalised. Signature schemes and servers disagree about every looser rule ('=' and
 * '+' in keys made other clients' requests fail). */
#ifndef NET_URL_H
#define NET_URL_H
#include <stdbool.h>
#include "base/buf.h"
#include "base/error.h"

struct url {
    char *base;  /* scheme://[user@]host[:port]/path, no trailing '/'; for the wire */
    char *query; /* "?…" or "" */
    char *shown; /* base without the user part: for messages */
    bool tls;
};

/* http and https only. Characters that a URL cannot hold (spaces, UTF-8, a '%' that starts no
 * escape) are encoded in the path; escapes that are there stay. A fragment is dropped. */
int url_parse(const char *text, struct url *out, struct hr_error *e);
void url_dispose(struct url *u);

/* Append the URL of a key: base, '/', the encoded key, query. 0 or -1 when out of memory. */
int url_add_key(struct buf *out, const struct url *u, const char *key);
/* Append `s` strictly encoded; '/' stays when keep_slash. */
int url_encode(struct buf *out, const char *s, size_t n, bool keep_slash);
/* Decode %XX of `s` in place; returns the new length, or -1 for a broken escape or an encoded
 * NUL. */
int64_t url_decode(char *s);

/* The URL without user part, query and fragment, for messages. Returns `out`. */
const char *url_redact(const char *url, char *out, size_t n);

#endif
