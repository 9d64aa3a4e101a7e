/* AWS Signature Version 4 of one request, by hand.
 *
 * A pure function of request, credential and time ("Authenticating Requests: Using the
 * Authorization Header", Amazon S3 API reference; signing of other services differs in one
 * header). libcurl's own is not used: what it signs differs from release to release, and it gets
 * keys with '=', '+' or ':' wrong (curl/curl#13754, #20543). The caller encodes path and query
 * and sends exactly what it passes here. */
#ifndef STORE_SIGN_V4_H
#define STORE_SIGN_V4_H
#include <pthread.h>

#include "store/cred.h"
#include "store/crypto.h"

#define SIGN_V4_HEADERS 16 /* the most that one request signs */
#define SIGN_V4_EMPTY   "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define SIGN_V4_UNKNOWN "UNSIGNED-PAYLOAD" /* S3 over https: the body is not hashed */

struct sign_v4_header {
    const char *name, *value; /* name in lower case; value without spaces at its ends */
};
struct sign_v4_request {
    const char *method, *host; /* host as sent, with a port that is not the scheme's own */
    const char *path;          /* begins with '/'; all but unreserved characters and '/' encoded */
    const char *query;         /* without '?'; encoded, sorted, each name with a '='; "" if none */
    const char *payload;       /* SHA-256 of the body in hexadecimal: SIGN_V4_EMPTY, … */
    const struct sign_v4_header *headers; /* signed besides those below; in any order */
    size_t n_headers;
    const char *region, *service;
};

/* The key that signs is derived from secret, date, region and service with four HMACs, and is the
 * same all day: kept here, for one of each. Any number of threads. */
struct sign_v4_key {
    pthread_mutex_t lock;
    uint64_t of; /* hash of what it was made from */
    bool made;
    uint8_t bytes[SHA256_BYTES];
};
void sign_v4_key_init(struct sign_v4_key *k);
void sign_v4_key_dispose(struct sign_v4_key *k);

/* To be sent: "x-amz-date: date", "Authorization: …", with a session token
 * "x-amz-security-token: token", and for S3 "x-amz-content-sha256: payload". All are signed. */
struct sign_v4 {
    char date[17]; /* 20130524T000000Z */
    struct buf authorization;
};
/* `out` initialised by sign_v4_init. 0, HR_ENOMEM, or HR_EINVAL for too many headers. */
int sign_v4(const struct crypto *c, struct sign_v4_key *key, const struct sign_v4_request *r,
            const struct cred_value *v, int64_t unix_time, struct sign_v4 *out, struct hr_error *e);
void sign_v4_init(struct sign_v4 *s);
void sign_v4_dispose(struct sign_v4 *s);

#endif
