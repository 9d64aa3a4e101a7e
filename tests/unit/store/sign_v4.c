/* The examples of "Authenticating Requests" in the Amazon S3 API reference and of the Signature
 * Version 4 test suite; that nothing but the request, the credential and the time matters; cost. */
#include "store/sign_v4.h"

#include <time.h>

#include "base/mem.h"
#include "t.h"

static struct crypto c;
#define MAY_24_2013    1369353600
#define AUGUST_30_2015 1440938160

static const struct cred_value s3_example = {.id = "AKIAIOSFODNN7EXAMPLE",
                                             .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};
static const struct cred_value suite_example = {
    .id = "AKIDEXAMPLE", .secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"};

static void expect(const struct sign_v4_request *r, const struct cred_value *v, int64_t at,
                   const char *date, const char *want)
{
    struct sign_v4_key key;
    struct sign_v4 s;
    struct hr_error e = {0};
    sign_v4_key_init(&key);
    sign_v4_init(&s);
    check_eq(sign_v4(&c, &key, r, v, at, &s, &e), 0);
    check_str(s.date, date);
    check_str(s.authorization.data, want);
    check_eq(sign_v4(&c, &key, r, v, at, &s, &e), 0); /* with the key that was kept */
    check_str(s.authorization.data, want);
    sign_v4_dispose(&s);
    sign_v4_key_dispose(&key);
}

static void get_object_of_the_reference(void)
{
    const struct sign_v4_header range = {"range", "bytes=0-9"};
    struct sign_v4_request r = {.method = "GET",
                                .host = "examplebucket.s3.amazonaws.com",
                                .path = "/test.txt",
                                .query = "",
                                .payload = SIGN_V4_EMPTY,
                                .headers = &range,
                                .n_headers = 1,
                                .region = "us-east-1",
                                .service = "s3"};
    expect(&r, &s3_example, MAY_24_2013, "20130524T000000Z",
           "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
           "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
           "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

static void bucket_requests_of_the_reference(void)
{
    struct sign_v4_request r = {.method = "GET",
                                .host = "examplebucket.s3.amazonaws.com",
                                .path = "/",
                                .query = "lifecycle=",
                                .payload = SIGN_V4_EMPTY,
                                .region = "us-east-1",
                                .service = "s3"};
    expect(&r, &s3_example, MAY_24_2013, "20130524T000000Z",
           "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
           "SignedHeaders=host;x-amz-content-sha256;x-amz-date, "
           "Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    r.query = "max-keys=2&prefix=J";
    expect(&r, &s3_example, MAY_24_2013, "20130524T000000Z",
           "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
           "SignedHeaders=host;x-amz-content-sha256;x-amz-date, "
           "Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

static void another_service_of_the_suite(void)
{
    struct sign_v4_request r = {.method = "GET",
                                .host = "example.amazonaws.com",
                                .path = "/",
                                .query = "",
                                .payload = SIGN_V4_EMPTY,
                                .region = "us-east-1",
                                .service = "service"};
    expect(&r, &suite_example, AUGUST_30_2015, "20150830T123600Z",
           "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
           "SignedHeaders=host;x-amz-date, "
           "Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
    r.method = "POST";
    expect(&r, &suite_example, AUGUST_30_2015, "20150830T123600Z",
           "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
           "SignedHeaders=host;x-amz-date, "
           "Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b");
}

static struct sign_v4_request plain_request(void)
{
    return (struct sign_v4_request){.method = "GET",
                                    .host = "b.s3.eu-west-1.amazonaws.com",
                                    .path = "/era5.zarr/t2m/c/17/0/0",
                                    .query = "",
                                    .payload = SIGN_V4_UNKNOWN,
                                    .region = "eu-west-1",
                                    .service = "s3"};
}

/* A key that is kept must never sign for another secret, day, region or service. */
static void a_kept_key_is_for_one_scope_only(void)
{
    struct sign_v4_key shared, fresh;
    struct sign_v4 a, b;
    struct hr_error e = {0};
    sign_v4_key_init(&shared);
    sign_v4_init(&a);
    sign_v4_init(&b);
    for (int i = 0; i < 32; i++) {
        struct sign_v4_request r = plain_request();
        struct cred_value v = i & 1 ? s3_example : suite_example;
        r.region = i & 2 ? "eu-west-1" : "us-east-1";
        r.service = i & 4 ? "s3" : "sts";
        int64_t at = MAY_24_2013 + (i & 8 ? 86400 : 0) + (i & 16 ? 60 : 0);
        sign_v4_key_init(&fresh);
        check_eq(sign_v4(&c, &shared, &r, &v, at, &a, &e), 0);
        check_eq(sign_v4(&c, &fresh, &r, &v, at, &b, &e), 0);
        check_str(a.authorization.data, b.authorization.data);
        sign_v4_key_dispose(&fresh);
    }
    sign_v4_dispose(&a);
    sign_v4_dispose(&b);
    sign_v4_key_dispose(&shared);
}

static void tokens_and_headers_are_signed_in_order(void)
{
    const struct sign_v4_header more[] = {
        {"x-amz-request-payer", "requester"}, {"x-amz-meta-a", "1"}, {"x-amz-meta", "2"}};
    struct sign_v4_request r = plain_request();
    struct cred_value v = s3_example;
    struct sign_v4_key key;
    struct sign_v4 s;
    struct hr_error e = {0};
    v.token = "TOKEN";
    r.headers = more;
    r.n_headers = 3;
    sign_v4_key_init(&key);
    sign_v4_init(&s);
    check_eq(sign_v4(&c, &key, &r, &v, MAY_24_2013, &s, &e), 0);
    check_has(s.authorization.data,
              "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-meta;x-amz-meta-a;"
              "x-amz-request-payer;x-amz-security-token, ");
    check(!strstr(s.authorization.data, "TOKEN"));
    r.n_headers = SIGN_V4_HEADERS;
    check_eq(sign_v4(&c, &key, &r, &v, MAY_24_2013, &s, &e), HR_EINVAL);
    sign_v4_dispose(&s);
    sign_v4_key_dispose(&key);
}

static void signing_takes_microseconds(void)
{
    enum { N = 20000 };
    struct sign_v4_request r = plain_request();
    struct sign_v4_key key;
    struct sign_v4 s;
    struct timespec from, to;
    double best = 1e9;
    sign_v4_key_init(&key);
    sign_v4_init(&s);
    for (int round = 0; round < 5; round++) {
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
        for (int i = 0; i < N; i++)
            sign_v4(&c, &key, &r, &s3_example, MAY_24_2013 + i % 60, &s, NULL);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
        double us =
            ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) / 1e3 /
            N;
        best = us < best ? us : best;
    }
    printf("# %.2f µs a request\n", best);
    check(best < 100); /* the figure is the point; this is for the day it breaks altogether */
    sign_v4_dispose(&s);
    sign_v4_key_dispose(&key);
}

int main(void)
{
    struct hr_error e = {0};
    if (crypto_load(&c, &e) < 0) {
        printf("# %s\n", e.text);
        return 77;
    }
    RUN(get_object_of_the_reference);
    RUN(bucket_requests_of_the_reference);
    RUN(another_service_of_the_suite);
    RUN(a_kept_key_is_for_one_scope_only);
    RUN(tokens_and_headers_are_signed_in_order);
    RUN(signing_takes_microseconds);
    crypto_unload(&c);
    check_eq(mem_live(), 0);
    return t_done();
}
