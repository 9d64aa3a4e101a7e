/* Published vectors: FIPS 180-4 examples, RFC 4231 (HMAC), RFC 4648 (Base64), RFC 7515 A.2
 * (RS256). Keys are made by the openssl command where one is needed that no document prints. */
#include "store/crypto.h"

#include "base/mem.h"
#include "t.h"

static struct crypto c;

static const char *hex(const void *data, size_t n)
{
    static char text[1024];
    struct buf b;
    buf_init(&b);
    crypto_hex(&b, data, n);
    snprintf(text, sizeof text, "%s", b.data ? b.data : "");
    buf_dispose(&b);
    return text;
}

static void sha256_of_the_standard_s_messages(void)
{
    static const struct {
        const char *text, *hash;
    } cases[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t out[SHA256_BYTES];
        check_eq(crypto_sha256(&c, cases[i].text, strlen(cases[i].text), out), 0);
        check_str(hex(out, sizeof out), cases[i].hash);
    }
}

static void hmac_of_rfc_4231(void)
{
    uint8_t key[131], data[152], out[SHA256_BYTES];
    memset(key, 0x0b, 20);
    crypto_hmac_sha256(&c, key, 20, "Hi There", 8, out);
    check_str(hex(out, 32), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    crypto_hmac_sha256(&c, "Jefe", 4, "what do ya want for nothing?", 28, out);
    check_str(hex(out, 32), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, 20);
    memset(data, 0xdd, 50);
    crypto_hmac_sha256(&c, key, 20, data, 50, out);
    check_str(hex(out, 32), "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    memset(key, 0xaa, sizeof key);
    const char *text = "Test Using Larger Than Block-Size Key - Hash Key First";
    crypto_hmac_sha256(&c, key, sizeof key, text, strlen(text), out);
    check_str(hex(out, 32), "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    text = "This is a test using a larger than block-size key and a larger than block-size data. "
           "The key needs to be hashed before being used by the HMAC algorithm.";
    crypto_hmac_sha256(&c, key, sizeof key, text, strlen(text), out);
    check_str(hex(out, 32), "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

static void hmac_of_long_and_empty_data(void)
{
    uint8_t a[SHA256_BYTES], b[SHA256_BYTES];
    char *data = malloc(5000);
    memset(data, 'x', 5000);
    check_eq(crypto_hmac_sha256(&c, "k", 1, data, 5000, a), 0);
    check_eq(crypto_hmac_sha256(&c, "k", 1, data, 4999, b), 0);
    check(memcmp(a, b, sizeof a) != 0);
    check_eq(crypto_hmac_sha256(&c, NULL, 0, NULL, 0, a), 0);
    check_str(hex(a, 32), "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
    mem_fail_at(1, false);
    check_eq(crypto_hmac_sha256(&c, "k", 1, data, 5000, a), -1);
    mem_fail_at(0, false);
    free(data);
}

static void base64_of_rfc_4648(void)
{
    static const char *const plain[] = {"", "f", "fo", "foo", "foob", "fooba", "foobar"};
    static const char *const coded[] = {"",         "Zg==",     "Zm8=",    "Zm9v",
                                        "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
    struct buf b;
    buf_init(&b);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        buf_clear(&b);
        buf_puts(&b, "");
        crypto_base64(&b, plain[i], strlen(plain[i]));
        check_str(b.data ? b.data : "", coded[i]);
        buf_clear(&b);
        check_eq(crypto_base64_decode(&b, coded[i], strlen(coded[i])), 0);
        check_eq(b.size, strlen(plain[i]));
        check(!b.size || !memcmp(b.data, plain[i], b.size));
    }
    buf_clear(&b);
    crypto_base64_url(&b, "\xfb\xff\xfe?", 4);
    check_str(b.data, "-__-Pw");
    buf_clear(&b);
    check_eq(crypto_base64_decode(&b, "-__-Pw", 6), 0);
    check(b.size == 4 && !memcmp(b.data, "\xfb\xff\xfe?", 4));
    buf_dispose(&b);
}

static void broken_base64_is_refused(void)
{
    static const char *const broken[] = {
        "Z", "Zg=", "Zm9v=", "Zg==Zg==", "Zm 9v", "Zm9v*", "====="};
    struct buf b;
    buf_init(&b);
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        check_eq(crypto_base64_decode(&b, broken[i], strlen(broken[i])), -1);
    buf_clear(&b);
    check_eq(crypto_base64_decode(&b, "Zm9v\r\nYmFy\n", 11), 0);
    check_str(b.data, "foobar");
    buf_dispose(&b);
}

/* The key of RFC 7515 appendix A.2.1, as PEM. */
static const char rfc7515_key[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQCh+BYK4uPJtGXO\n"
    "jS1lYmM2K5J9vinh8CR3/BYlzJChNuOL2TSXxbbqY913EeZ8dCn5VrD7io8ImtxL\n"
    "aYk8wTM/U+3QGbh3hCUv7JFP5IV3aVlL6kKA0ywPVb9ilE8TA5a8bpvfbr3SvaNn\n"
    "juygxmj3AbONv/s4yDQs4v5tJ/reSlpIdJed1LnPmt7Ex1sFhSwsD174pcF1A5L5\n"
    "ROjtZMEQxrZHYJqkeDrrnGya11UxMFBji4NmXG9veoKjlnAqH2QbgtPr8jkiGUkf\n"
    "toaHLFcW9Qr4NY2ai50Xw0Byj3+H2JoY2PyrZ62EWQwuz3WTOTY8BwNNb2BvniHg\n"
    "VFbK5emhAgMBAAECggEAEq5xpGnNCivDflJsRQBXHx1hdR1k6Ulwe2JZD50LpXyW\n"
    "PEAeP88vLNO97IjlA7/GQ5sLKMgvfTeXZx9SE+7YwVol2NXOoAJe46sui395IW/G\n"
    "O+pWJ1O0BkTGoVEn2bKVRUCgu+GjBVaYLU6f3l9kJfFNS3E0QbVdxzubSu3Mkqzj\n"
    "kn439X0M/V51gfpRLI9JYanrC4D4qAdGcopV/0ZHHzQlBjudU2QvXt4ehNYTCBr6\n"
    "XCLQUShb1juUO1ZdiYoFaFQT5Tw8bGUl/x/jTj3ccPDVZFD9pIuhLhBOneufuBiB\n"
    "4cS98l2SR/RQyGWSeWjnczT0QU91p1DhOVRuOopznQKBgQDgHMQQ60imZV1URk0K\n"
    "pLttoLhyt3SmqdEf/kgHePDdtzEafpAu+cS191R2JiuoF2yzWXnwFDcqGigp5BNr\n"
    "0AHQfD8/Lk8l1Mk09jxxCfui5nYooNyac8YFjm3vItzVCVDnEd3BbVWG8qf6deqE\n"
    "lMGAg+C2V0L4oNXnP7LZcPAZRwKBgQC5A8R+CZW2MvRTLLHzwZkUXV866cff7tx6\n"
    "kqa0finGG0KgeqlaZPxgCZnFp7AeAcCMtiynVlJ7vMVgePsLq6XtON4tB5kP9jAP\n"
    "rq3rbAOal78eUH5OcED6eNuCV8ixEu1eWcPNCS/l1OW1EnXUEoEHKl54Xrrz2uNw\n"
    "kgMTP1FZ1wKBgAcCn1dwJKufzBWQxWQp1vsM5fggqPN1qGb5y0MAk3g7/Ls5bkUp\n"
    "5u9SN0Ai3Ya6hNnvWJMb7sXQX6U/zyO2M/hTip7tUeh7CXgwo59dkpN75gJLVds2\n"
    "9+DAncu3KXU4f2Fa+7bLNrur53k8KwPOq2bbuTG69QtV7Jr5MR0AHWKNAoGBAIf/\n"
    "evpitUf+4JYbLpvNXWcY052Mpz22aR84mY3nh3F2LF2mjMJDpTg7FmuyPcVw6EcG\n"
    "yoAe9fa65iNqCq+jdw6PVNGo2hxfjSiZ8IIzHdsPXI89//pMjZcQK9r+CCoRjaZj\n"
    "OYiIDktVWZzmevJuv6WywUqd57LE3Zar3dLSIkx1AoGAIYd7DHOhrWvxkwPQsRM2\n"
    "tOgrjbcrfvtQJipd+DlcxyVuuM9sQLdgjVk2oy26F0EmpScGLq2MowX7fhd/QJQ3\n"
    "ydy5cY7YIBi87w93IKLEdfnbJtoOPLUW0ITrJReOgo1cq9SbsxYawBgfp/gh6A56\n"
    "03k2+ZQwVK0JKSHuLFkuQ3U=\n"
    "-----END PRIVATE KEY-----\n";

static void rs256_of_rfc_7515(void)
{
    static const char input[] =
        "eyJhbGciOiJSUzI1NiJ9"
        ".eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0"
        "cnVlfQ";
    struct buf signature, text;
    struct hr_error e = {0};
    buf_init(&signature);
    buf_init(&text);
    check_eq(crypto_rsa_sha256(&c, rfc7515_key, input, strlen(input), &signature, &e), 0);
    check_eq(signature.size, 256);
    crypto_base64_url(&text, signature.data, signature.size);
    check_str(
        text.data,
        "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W"
        "2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkS"
        "jtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnv"
        "Wh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw");
    buf_dispose(&signature);
    buf_dispose(&text);
}

static void keys_that_cannot_sign_are_refused_without_showing_them(void)
{
    static const char *const keys[] = {
        "", "SECRET", "-----BEGIN PRIVATE KEY-----\nSECRET\n-----END PRIVATE KEY-----\n",
        /* P-256, of RFC 5915's kind */
        "-----BEGIN EC PRIVATE KEY-----\n"
        "MHcCAQEEIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABI0VnoAoGCCqGSM49\n"
        "AwEHoUQDQgAECIu5/yKrKRp0yG/Gd7qJe6re43DMYSm4LRcLo/wmQVxELamnFgZ5\n"
        "VtkeqgK5OtQJSQ6HzV51jqajMaHet1uoRg==\n"
        "-----END EC PRIVATE KEY-----\n"};
    struct buf out;
    buf_init(&out);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct hr_error e = {0};
        check_eq(crypto_rsa_sha256(&c, keys[i], "x", 1, &out, &e), HR_EINVAL);
        check_has(e.text, "RSA key");
        check(!strstr(e.text, "SECRET"));
    }
    check_eq(out.size, 0);
    buf_dispose(&out);
}

int main(void)
{
    struct hr_error e = {0};
    RUN(base64_of_rfc_4648);
    RUN(broken_base64_is_refused);
    if (crypto_load(&c, &e) < 0) {
        printf("# %s\n", e.text);
        return 77;
    }
    RUN(sha256_of_the_standard_s_messages);
    RUN(hmac_of_rfc_4231);
    RUN(hmac_of_long_and_empty_data);
    RUN(rs256_of_rfc_7515);
    RUN(keys_that_cannot_sign_are_refused_without_showing_them);
    crypto_unload(&c);
    check_eq(mem_live(), 0);
    return t_done();
}
