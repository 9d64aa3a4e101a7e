/* See crypto.h. HMAC is written over SHA-256's one-shot call (RFC 2104): libcrypto's own looks its
 * algorithm up by name at every call, which costs more than the hashing of such short texts. */
#include "store/crypto.h"

#include <dlfcn.h>
#include <limits.h>
#include <string.h>

#include "base/library.h"
#include "base/mem.h"

#define BLOCK      64 /* of SHA-256 */
#define SMALL      1024
#define LEAST_BITS 2048        /* RFC 7518 §3.3 */
#define NO_ATEXIT  0x00080000u /* OPENSSL_INIT_NO_ATEXIT */

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
    {"SHA256", offsetof(struct crypto, sha256)},
    {"BIO_new_mem_buf", offsetof(struct crypto, bio_new)},
    {"BIO_free", offsetof(struct crypto, bio_free)},
    {"PEM_read_bio_PrivateKey", offsetof(struct crypto, read_key)},
    {"EVP_PKEY_free", offsetof(struct crypto, key_free)},
    {"EVP_MD_CTX_new", offsetof(struct crypto, md_new)},
    {"EVP_MD_CTX_free", offsetof(struct crypto, md_free)},
    {"EVP_sha256", offsetof(struct crypto, md_sha256)},
    {"EVP_DigestSignInit", offsetof(struct crypto, sign_init)},
    {"EVP_DigestSign", offsetof(struct crypto, sign)},
    {"ERR_clear_error", offsetof(struct crypto, clear_errors)},
};

static void *open_library(void)
{
    static const char *const names[] = {"libcrypto.so.3", "libcrypto.so.1.1", "libcrypto.3.dylib"};
    return library_open(names, sizeof names / sizeof *names);
}

/* Ahead of the first use, where it is the first: libcrypto's clean-up at exit would take the locks
 * from under detached threads that are just ending. */
static void stay_at_exit(void *library)
{
    int (*init)(uint64_t, const void *) = NULL;
    void *f = dlsym(library, "OPENSSL_init_crypto");
    memcpy(&init, &f, sizeof f);
    if (init)
        init(NO_ATEXIT, NULL);
}

int crypto_load(struct crypto *c, struct hr_error *e)
{
    *c = (struct crypto){.handle = open_library()};
    if (!c->handle)
        return error_set(e, HR_EUNSUPPORTED,
                         "signed requests need libcrypto, and libcrypto.so.3 was not found; "
                         "install OpenSSL (Debian, Ubuntu: libssl3; Fedora: openssl-libs)");
    stay_at_exit(c->handle);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *f = dlsym(c->handle, functions[i].name);
        if (!f) {
            crypto_unload(c);
            return error_set(e, HR_EUNSUPPORTED,
                             "the installed libcrypto has no %s; OpenSSL 1.1.1 or newer is needed",
                             functions[i].name);
        }
        memcpy((char *)c + functions[i].offset, &f, sizeof f);
    }
    /* Renamed in 3.0; without it short keys are left to libcrypto's own limits. */
    void *bits = dlsym(c->handle, "EVP_PKEY_get_bits");
    if (!bits)
        bits = dlsym(c->handle, "EVP_PKEY_bits");
    memcpy(&c->key_bits, &bits, sizeof bits);
    return 0;
}

void crypto_unload(struct crypto *c)
{
    if (c->handle)
        dlclose(c->handle);
    *c = (struct crypto){0};
}

/* ---- digests --------------------------------------------------------------------------------- */

int crypto_sha256(const struct crypto *c, const void *data, size_t n, uint8_t out[SHA256_BYTES])
{
    return c->sha256(n ? data : "", n, out) ? 0 : -1;
}

int crypto_hmac_sha256(const struct crypto *c, const void *key, size_t key_size, const void *data,
                       size_t n, uint8_t out[SHA256_BYTES])
{
    uint8_t pad[BLOCK] = {0}, small[SMALL], outer[BLOCK + SHA256_BYTES];
    int rc = -1;
    uint8_t *inner = n <= SMALL - BLOCK ? small : mem_alloc(BLOCK + n);
    if (!inner || (key_size > BLOCK && crypto_sha256(c, key, key_size, pad) < 0))
        goto fail;
    if (key_size && key_size <= BLOCK)
        memcpy(pad, key, key_size);
    for (size_t i = 0; i < BLOCK; i++) {
        inner[i] = pad[i] ^ 0x36;
        outer[i] = pad[i] ^ 0x5c;
    }
    if (n)
        memcpy(inner + BLOCK, data, n);
    if (crypto_sha256(c, inner, BLOCK + n, outer + BLOCK) < 0 ||
        crypto_sha256(c, outer, sizeof outer, out) < 0)
        goto fail;
    rc = 0;
fail:
    explicit_bzero(pad, sizeof pad);
    explicit_bzero(outer, sizeof outer);
    if (inner)
        explicit_bzero(inner, BLOCK + n);
    if (inner != small)
        mem_free(inner);
    return rc;
}

/* ---- RS256 ----------------------------------------------------------------------------------- */

/* Without it libcrypto would ask for the password of an encrypted key on the terminal. */
static int no_password(char *out, int n, int writing, void *arg)
{
    (void)out, (void)n, (void)writing, (void)arg;
    return -1;
}

static void *read_key(const struct crypto *c, const char *pem)
{
    size_t n = strlen(pem);
    void *bio = n <= INT_MAX ? c->bio_new(pem, (int)n) : NULL;
    void *key = bio ? c->read_key(bio, NULL, no_password, NULL) : NULL;
    if (bio)
        c->bio_free(bio);
    if (key && c->key_bits && c->key_bits(key) < LEAST_BITS) { /* an elliptic curve, for one */
        c->key_free(key);
        key = NULL;
    }
    return key;
}

int crypto_rsa_sha256(const struct crypto *c, const char *pem, const void *data, size_t n,
                      struct buf *out, struct hr_error *e)
{
    uint8_t signature[2048]; /* 16384 bits */
    size_t size = 0;
    void *key = read_key(c, pem);
    if (!key) {
        c->clear_errors();
        return error_set(e, HR_EINVAL,
                         "the private key is no unencrypted RSA key of at least 2048 bits in PEM");
    }
    void *md = c->md_new();
    bool ok = md && c->sign_init(md, NULL, c->md_sha256(), NULL, key) == 1 &&
              c->sign(md, NULL, &size, data, n) == 1 && size <= sizeof signature &&
              c->sign(md, signature, &size, data, n) == 1;
    if (md)
        c->md_free(md);
    c->key_free(key);
    c->clear_errors();
    if (!ok)
        return error_set(e, HR_EINVAL, "the private key cannot make an RS256 signature");
    return buf_add(out, signature, size) < 0 ? error_nomem(e, size, "a signature") : 0;
}

/* ---- text ------------------------------------------------------------------------------------ */

int crypto_hex(struct buf *out, const void *data, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *p = data;
    if (buf_reserve(out, 2 * n) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        char text[2] = {digits[p[i] >> 4], digits[p[i] & 15]};
        buf_add(out, text, 2);
    }
    return out->failed ? -1 : 0;
}

static int encode(struct buf *out, const uint8_t *p, size_t n, const char *last, bool padded)
{
    static const char common[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    for (size_t i = 0; i < n; i += 3) {
        size_t left = n - i;
        uint32_t word = (uint32_t)p[i] << 16 | (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
                        (left > 2 ? p[i + 2] : 0);
        char text[4];
        for (int k = 0; k < 4; k++) {
            uint32_t six = word >> (18 - 6 * k) & 63;
            text[k] = six < 62 ? common[six] : last[six - 62];
        }
        size_t used = left > 2 ? 4 : left + 1;
        for (size_t k = used; k < 4; k++)
            text[k] = '=';
        buf_add(out, text, padded ? 4 : used);
    }
    return out->failed ? -1 : 0;
}

int crypto_base64(struct buf *out, const void *data, size_t n)
{
    return encode(out, data, n, "+/", true);
}

int crypto_base64_url(struct buf *out, const void *data, size_t n)
{
    return encode(out, data, n, "-_", false);
}

static int six_bits(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

int crypto_base64_decode(struct buf *out, const char *text, size_t n)
{
    uint32_t word = 0, digits = 0, padding = 0;
    for (size_t i = 0; i < n; i++) {
        int v = six_bits(text[i]);
        if (text[i] == '\n' || text[i] == '\r')
            continue;
        if (text[i] == '=') {
            padding++;
            continue;
        }
        if (v < 0 || padding)
            return -1;
        word = word << 6 | (uint32_t)v;
        if (++digits % 4 == 0) {
            uint8_t b[3] = {(uint8_t)(word >> 16), (uint8_t)(word >> 8), (uint8_t)word};
            buf_add(out, b, 3);
        }
    }
    uint32_t rest = digits % 4;
    if (rest == 1 || (padding && (rest == 0 || padding != 4 - rest)))
        return -1;
    if (rest) {
        word <<= 6 * (4 - rest);
        uint8_t b[2] = {(uint8_t)(word >> 16), (uint8_t)(word >> 8)};
        buf_add(out, b, rest - 1);
    }
    return out->failed ? -1 : 0;
}
