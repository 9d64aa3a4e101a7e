/* Tokens that are signed here: their parts, and that their signature is one by a key of this test's
 * own, made and verified by libcrypto. */
#include "store/jwt.h"

#include <dlfcn.h>

#include "base/mem.h"
#include "t.h"

static struct crypto c;

/* libcrypto's side that the library does not need: making a key, writing it, verifying. */
static struct {
    void *(*ctx_new)(int type, void *engine);
    void (*ctx_free)(void *);
    int (*keygen_init)(void *);
    int (*set_bits)(void *, int bits);
    int (*keygen)(void *, void **key);
    void *(*bio_new)(const void *method);
    const void *(*bio_mem)(void);
    int (*write_key)(void *bio, void *key, void *cipher, void *, int, void *, void *);
    int (*bio_read)(void *bio, void *out, int n);
    int (*verify_init)(void *md, void **, const void *type, void *, void *key);
    int (*verify)(void *md, const void *signature, size_t n, const void *data, size_t size);
} lib;

static bool load(void)
{
    static const char *const names[] = {"EVP_PKEY_CTX_new_id",
                                        "EVP_PKEY_CTX_free",
                                        "EVP_PKEY_keygen_init",
                                        "EVP_PKEY_CTX_set_rsa_keygen_bits",
                                        "EVP_PKEY_keygen",
                                        "BIO_new",
                                        "BIO_s_mem",
                                        "PEM_write_bio_PrivateKey",
                                        "BIO_read",
                                        "EVP_DigestVerifyInit",
                                        "EVP_DigestVerify"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *f = dlsym(c.handle, names[i]);
        if (!f)
            return false;
        memcpy((char *)&lib + i * sizeof f, &f, sizeof f);
    }
    return true;
}

static void *make_key(char *pem, int room)
{
    void *key = NULL, *ctx = lib.ctx_new(6 /* RSA */, NULL), *bio = lib.bio_new(lib.bio_mem());
    if (!check(ctx && bio && lib.keygen_init(ctx) > 0 && lib.set_bits(ctx, 2048) > 0 &&
               lib.keygen(ctx, &key) > 0 && lib.write_key(bio, key, NULL, NULL, 0, NULL, NULL) > 0))
        exit(1);
    int n = lib.bio_read(bio, pem, room - 1);
    pem[n > 0 ? n : 0] = 0;
    c.bio_free(bio);
    lib.ctx_free(ctx);
    return key;
}

static bool verified(void *key, const char *token)
{
    const char *end = strrchr(token, '.');
    struct buf signature;
    buf_init(&signature);
    void *md = c.md_new();
    bool ok = end && !strpbrk(token, "+/=") &&
              crypto_base64_decode(&signature, end + 1, strlen(end + 1)) == 0 &&
              lib.verify_init(md, NULL, c.md_sha256(), NULL, key) == 1 &&
              lib.verify(md, signature.data, signature.size, token, (size_t)(end - token)) == 1;
    c.md_free(md);
    buf_dispose(&signature);
    return ok;
}

/* Part `i` of a token, decoded. */
static const char *part(const char *token, int i)
{
    static char text[1024];
    struct buf b;
    buf_init(&b);
    for (; i; i--)
        token = strchr(token, '.') + 1;
    check_eq(crypto_base64_decode(&b, token, strcspn(token, ".")), 0);
    snprintf(text, sizeof text, "%s", b.data ? b.data : "");
    buf_dispose(&b);
    return text;
}

static void a_token_has_three_parts_and_verifies(void)
{
    static const char claims[] = "{\"iss\":\"a@b\",\"exp\":1}";
    char pem[4096];
    void *key = make_key(pem, sizeof pem);
    static const char *const ids[] = {NULL, "0123abcd", "qu\"ote"};
    static const char *const headers[] = {
        "{\"alg\":\"RS256\",\"typ\":\"JWT\"}",
        "{\"alg\":\"RS256\",\"typ\":\"JWT\",\"kid\":\"0123abcd\"}",
        "{\"alg\":\"RS256\",\"typ\":\"JWT\",\"kid\":\"qu\\\"ote\"}"};
    for (size_t i = 0; i < 3; i++) {
        struct buf out;
        buf_init(&out);
        check_eq(jwt_rs256(&c, pem, ids[i], claims, strlen(claims), &out, NULL), 0);
        check_str(part(out.data, 0), headers[i]);
        check_str(part(out.data, 1), claims);
        check(verified(key, out.data));
        out.data[3] ^= 1;
        check(!verified(key, out.data));
        buf_dispose(&out);
    }
    c.key_free(key);
}

static void keys_that_are_none_are_refused_and_not_shown(void)
{
    static const char *const pems[] = {
        "", "SECRET", "-----BEGIN PRIVATE KEY-----\nSECRET\n-----END PRIVATE KEY-----\n"};
    for (size_t i = 0; i < sizeof pems / sizeof *pems; i++) {
        struct hr_error e = {0};
        struct buf out;
        buf_init(&out);
        check_eq(jwt_rs256(&c, pems[i], NULL, "{}", 2, &out, &e), HR_EINVAL);
        check(!strstr(e.text, "SECRET"));
        buf_dispose(&out);
    }
}

static void want_of_memory_is_an_error(void)
{
    char pem[4096];
    void *key = make_key(pem, sizeof pem);
    int right = 0;
    for (uint64_t n = 1; n < 30; n++) {
        uint64_t live = mem_live();
        struct buf out;
        buf_init(&out);
        mem_fail_at(n, false);
        int rc = jwt_rs256(&c, pem, "id", "{}", 2, &out, NULL);
        mem_fail_at(0, false);
        check(rc == HR_ENOMEM || (rc == 0 && verified(key, out.data)));
        right += rc == 0;
        buf_dispose(&out);
        check_eq(mem_live(), live);
    }
    check(right > 0);
    c.key_free(key);
}

int main(void)
{
    struct hr_error e;
    if (crypto_load(&c, &e) < 0 || !load()) {
        printf("1..0 # SKIP no libcrypto 3\n");
        return 0;
    }
    RUN(a_token_has_three_parts_and_verifies);
    RUN(keys_that_are_none_are_refused_and_not_shown);
    RUN(want_of_memory_is_an_error);
    crypto_unload(&c);
    return t_done();
}
