/* What signing one request costs, for each scheme, as the stores do it before every try: signature
 * and its headers, with the key that signs derived already, as it is for all but the first request
 * of a day. Prints a line of JSON: microseconds, the least of several rounds.
 *
 *     sign [N] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/thread.h"
#include "net/net.h"
#include "store/sign_azure.h"
#include "store/sign_v4.h"

#define ROUNDS 50 /* short ones: some fall between what else the machine does */
#define KEY_64                                                                                     \
    "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw=="

static struct crypto crypto;

static void must(int rc, const struct hr_error *e)
{
    if (rc == 0)
        return;
    fprintf(stderr, "sign: %s\n", e->text);
    exit(1);
}

static void sign_with_v4(const char *host, const char *region, const char *token, unsigned i,
                         struct net_wire *w)
{
    static struct sign_v4_key key;
    static bool made;
    const struct cred_value v = {.id = "AKIAIOSFODNN7EXAMPLE",
                                 .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                                 .token = (char *)token};
    char path[96];
    struct sign_v4 s;
    struct hr_error e;
    snprintf(path, sizeof path, "/bucket/era5.zarr/2m_temperature/c/%u/0/0", i);
    const struct sign_v4_request r = {.method = "GET",
                                      .host = host,
                                      .path = path,
                                      .query = "",
                                      .payload = SIGN_V4_EMPTY,
                                      .region = region,
                                      .service = "s3"};
    if (!made)
        sign_v4_key_init(&key);
    made = true;
    sign_v4_init(&s);
    must(sign_v4(&crypto, &key, &r, &v, (int64_t)time(NULL), &s, &e), &e);
    net_wire_header(w, "x-amz-date", s.date);
    net_wire_header(w, "x-amz-content-sha256", r.payload);
    if (token)
        net_wire_header(w, "x-amz-security-token", token);
    net_wire_header(w, "Authorization", s.authorization.data);
    sign_v4_dispose(&s);
}

static void s3(unsigned i, struct net_wire *w)
{
    sign_with_v4("bucket.s3.eu-west-3.amazonaws.com", "eu-west-3", NULL, i, w);
}

/* Temporary keys: the token, usually several hundred bytes, is signed too. */
static void s3_token(unsigned i, struct net_wire *w)
{
    static char token[801];
    memset(token, 'T', sizeof token - 1);
    sign_with_v4("bucket.s3.eu-west-3.amazonaws.com", "eu-west-3", token, i, w);
}

static void gcs_hmac(unsigned i, struct net_wire *w)
{
    sign_with_v4("storage.googleapis.com", "auto", NULL, i, w);
}

static void azure(unsigned i, struct net_wire *w)
{
    char date[SIGN_AZURE_DATE], path[96];
    struct buf out;
    struct hr_error e;
    snprintf(path, sizeof path, "/container/era5.zarr/2m_temperature/c/%u/0/0", i);
    sign_azure_date(date, (int64_t)time(NULL));
    net_wire_header(w, "x-ms-date", date);
    net_wire_header(w, "x-ms-version", "2023-11-03");
    const struct sign_azure_request r = {.method = "GET",
                                         .account = "account",
                                         .path = path,
                                         .headers = w->headers.data,
                                         .headers_size = w->headers.size,
                                         .range = "bytes=0-65535"};
    buf_init(&out);
    must(sign_azure(&crypto, &r, KEY_64, &out, &e), &e);
    net_wire_header(w, "Authorization", out.data);
    buf_dispose(&out);
}

static double microseconds(void (*sign)(unsigned, struct net_wire *), unsigned n)
{
    double least = 1e9;
    struct net_wire w = {0};
    buf_init(&w.headers);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t from = clock_ns();
        for (unsigned i = 0; i < n; i++) {
            w.headers.size = 0;
            sign(i, &w);
        }
        double us = (double)(clock_ns() - from) / 1e3 / n;
        least = us < least ? us : least;
    }
    buf_dispose(&w.headers);
    return least;
}

int main(int argc, char **argv)
{
    unsigned n = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 2000;
    struct hr_error e;
    must(crypto_load(&crypto, &e), &e);
    printf("{\"S3\": %.3f, \"S3 with a session token\": %.3f, \"GCS HMAC\": %.3f, "
           "\"Azure Shared Key\": %.3f}\n",
           microseconds(s3, n), microseconds(s3_token, n), microseconds(gcs_hmac, n),
           microseconds(azure, n));
    crypto_unload(&crypto);
    return 0;
}
