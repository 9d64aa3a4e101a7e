/* The little cryptography that credentials need, from libcrypto, found at run time.
 *
 * SHA-256, HMAC-SHA-256 and RS256 signatures. As with libcurl (net/libcurl.h) the library must
 * load where libcrypto is not installed: its functions come from dlopen, when the first store
 * that signs is opened. Base64 is here too, since every scheme of signatures uses it, and needs
 * no library. A loaded struct crypto is only read: any number of threads may share it. */
#ifndef STORE_CRYPTO_H
#define STORE_CRYPTO_H
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define SHA256_BYTES 32

struct crypto {
    void *handle;
    unsigned char *(*sha256)(const unsigned char *data, size_t n, unsigned char *out);
    /* For RS256 alone; types of libcrypto are opaque here. */
    void *(*bio_new)(const void *data, int n);
    int (*bio_free)(void *bio);
    void *(*read_key)(void *bio, void **key, int (*password)(char *, int, int, void *), void *arg);
    void (*key_free)(void *key);
    int (*key_bits)(const void *key);
    void *(*md_new)(void);
    void (*md_free)(void *md);
    const void *(*md_sha256)(void);
    int (*sign_init)(void *md, void **key_ctx, const void *type, void *engine, void *key);
    int (*sign)(void *md, unsigned char *out, size_t *out_size, const unsigned char *data,
                size_t n);
    void (*clear_errors)(void);
};
/* HR_EUNSUPPORTED where libcrypto is not installed, saying what to install. */
int crypto_load(struct crypto *c, struct hr_error *e);
void crypto_unload(struct crypto *c);

/* Any key, any data. 0, or -1 when out of memory. */
int crypto_sha256(const struct crypto *c, const void *data, size_t n, uint8_t out[SHA256_BYTES]);
int crypto_hmac_sha256(const struct crypto *c, const void *key, size_t key_size, const void *data,
                       size_t n, uint8_t out[SHA256_BYTES]);
/* Append the RSASSA-PKCS1-v1_5 signature with SHA-256 (RS256 of RFC 7518) of `data` by the private
 * key in `pem`. HR_EINVAL when that is no unencrypted RSA key in PEM; its text is never shown. */
int crypto_rsa_sha256(const struct crypto *c, const char *pem, const void *data, size_t n,
                      struct buf *out, struct hr_error *e);

/* Append; 0 or -1 when out of memory. The URL form has '-' and '_' and no padding. */
int crypto_hex(struct buf *out, const void *data, size_t n);
int crypto_base64(struct buf *out, const void *data, size_t n);
int crypto_base64_url(struct buf *out, const void *data, size_t n);
/* Append the bytes that `text` stands for; either alphabet, padding optional, line breaks allowed.
 * 0; -1 when it is no Base64 or memory is out (out->failed). */
int crypto_base64_decode(struct buf *out, const char *text, size_t n);

#endif
