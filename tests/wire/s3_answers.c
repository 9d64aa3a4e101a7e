/* S3 at its worst: an own server that checks signatures and answers as real ones seldom do
 * (s3_mock.py). The store must end with the bytes, with "missing" where that is certain, or with
 * one error that says what to do; and never with a wrong one of these. */
#include "base/mem.h"
#include "store/shared.h"
#include "wire/patience.h"
#include "wire/wire.h"

static struct server mock;
static const struct net_policy quick = UNHURRIED;

#define KEYS "\"key\": \"KEY\", \"secret\": \"secret/with+specials\""

static struct store *open_with(struct net *net, const char *url, const char *options)
{
    char text[1024];
    struct store *s = NULL;
    struct hr_error e = {0};
    struct store_env env = {net, &quick};
    snprintf(text, sizeof text, "{\"endpoint_url\": \"http://127.0.0.1:%d\"%s%s}", mock.port,
             *options ? ", " : "", options);
    if (!check(store_open_with(url, text, &env, &s, &e) == 0))
        printf("# %s\n", e.text);
    return s;
}

static struct store *open_bucket(const char *bucket, const char *options)
{
    char url[128];
    snprintf(url, sizeof url, "s3://%s", bucket);
    return open_with(NULL, url, options);
}

static unsigned long requests_of(const char *bucket)
{
    char url[128];
    struct store *s = NULL;
    snprintf(url, sizeof url, "http://127.0.0.1:%d/_count", mock.port);
    if (!check(store_open(url, NULL, &s, NULL) == 0))
        return 0;
    struct got g = read_all(s, bucket);
    unsigned long n = 0;
    if (check_eq(g.r.rc, 0)) {
        g.data[g.r.size] = 0;
        n = strtoul(g.data, NULL, 10);
    }
    free(g.data);
    store_unref(s);
    return n;
}

/* Reading "hello" of the bucket gives its text, in so many requests. */
static void expect_hello(const char *bucket, const char *options, unsigned long requests)
{
    char want[128];
    snprintf(want, sizeof want, "hello from %s", bucket);
    unsigned long before = requests_of(bucket);
    struct store *s = open_bucket(bucket, options);
    struct got g = read_all(s, "hello");
    if (!check_eq(g.r.rc, 0))
        printf("# %s: %s\n", bucket, g.r.error.text);
    else
        check(g.r.size == strlen(want) && !memcmp(g.data, want, strlen(want)));
    free(g.data);
    g = read_all(s, "hello"); /* what was learnt is kept */
    check_eq(g.r.rc, 0);
    free(g.data);
    check_eq(requests_of(bucket) - before, requests + 1);
    store_unref(s);
}

static void expect_error(const char *bucket, const char *options, const char *key,
                         const char *const *parts)
{
    struct store *s = open_bucket(bucket, options);
    struct got g = read_all(s, key);
    check_eq(g.r.rc, HR_ESTORE);
    check_has(g.r.error.text, bucket);
    check_has(g.r.error.text, key);
    for (; *parts; parts++)
        check_has(g.r.error.text, *parts);
    check(!strstr(g.r.error.text, "secret/with"));
    free(g.data);
    store_unref(s);
}
#define ERROR(bucket, options, ...)                                                                \
    expect_error(bucket, options, "k", (const char *const[]){__VA_ARGS__, NULL})

static void signed_requests_are_answered(void)
{
    expect_hello("plain", KEYS, 1);
}

static void the_region_is_learnt_from_every_kind_of_answer(void)
{
    static const char *const buckets[] = {"moved-301", "moved-400",  "moved-403",
                                          "moved-307", "moved-host", "moved-head"};
    for (size_t i = 0; i < sizeof buckets / sizeof *buckets; i++)
        expect_hello(buckets[i], KEYS, !strcmp(buckets[i], "moved-head") ? 3 : 2);
    expect_hello("moved-301", KEYS ", \"region\": \"eu-west-3\"", 1);
}

static void a_whole_object_is_held_against_its_checksum(void)
{
    expect_hello("flipped-once", KEYS, 2);
    expect_hello("of-parts", KEYS, 1);
    struct store *s = open_bucket("flipped", KEYS);
    struct got g = read_all(s, "hello");
    check_eq(g.r.rc, HR_EDATA);
    check_has(g.r.error.text, "s3://flipped/hello: the bytes are not those of the object: crc32c");
    free(g.data);
    g = read_range(s, "hello", 2, 3); /* of which there is none */
    check_eq(g.r.rc, 0);
    free(g.data);
    store_unref(s);
}

/* The mock is no metadata service either; but what it was asked is counted. */
static void an_instance_is_asked_when_an_object_is_refused_not_a_listing(void)
{
    char url[64];
    char *names;
    size_t size;
    struct hr_error e = {0};
    snprintf(url, sizeof url, "http://127.0.0.1:%d/_imds", mock.port);
    setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", url, 1);
    unsetenv("AWS_EC2_METADATA_DISABLED");
    unsigned long before = requests_of("_imds");
    struct store *s = open_bucket("unlisted", "");
    check_eq(store_list(s, "", &names, &size, &e), HR_ESTORE);
    check_has(e.text, "403 AccessDenied");
    struct got g = read_all(s, "hello");
    check_eq(g.r.rc, 0);
    free(g.data);
    store_unref(s);
    check_eq(requests_of("_imds") - before, 0);
    s = open_bucket("plain", "");
    g = read_all(s, "hello");
    check_eq(g.r.rc, HR_ESTORE);
    check_has(g.r.error.text, "looked at: environment");
    store_unref(s);
    check(requests_of("_imds") > before);
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
}

static void a_region_is_learnt_once_for_all_stores(void)
{
    char url[64], options[512];
    struct store_shared *shared = shared_new(NULL);
    struct store_env env = {NULL, &quick, shared};
    unsigned long before = requests_of("moved-301");
    for (int i = 0; i < 10; i++) {
        struct store *s = NULL;
        snprintf(url, sizeof url, "s3://moved-301/p%d", i);
        snprintf(options, sizeof options, "{\"endpoint_url\": \"http://127.0.0.1:%d\", " KEYS "}",
                 mock.port);
        check_eq(store_open_with(url, options, &env, &s, NULL), 0);
        check_eq(read_all(s, "none").r.rc, STORE_MISSING);
        store_unref(s);
    }
    check_eq(requests_of("moved-301") - before, 11);
    shared_unref(shared);
}

static void regions_that_change_or_make_no_sense_are_errors(void)
{
    ERROR("moved-loop", KEYS, "status 301 PermanentRedirect", "endpoint_url");
    ERROR("moved-evil", KEYS, "status 301 PermanentRedirect", "endpoint_url");
}

static void a_wrong_clock_is_corrected_once(void)
{
    expect_hello("late", KEYS, 2);
}

static void requester_pays_is_sent_with_everything(void)
{
    expect_hello("payer", KEYS ", \"requester_pays\": true", 1);
    expect_hello("payer", KEYS ", \"request_payer\": true", 1);
    ERROR("payer", KEYS, "403 AccessDenied");
    struct store *s = open_bucket("payer", KEYS ", \"requester_pays\": true");
    char *names;
    size_t size;
    check_eq(store_list(s, "", &names, &size, NULL), 0);
    mem_free(names);
    store_unref(s);
}

static void tokens_are_sent_and_signed(void)
{
    expect_hello("plain", "\"key\": \"KEY\", \"secret\": \"new\", \"token\": \"NEW\"", 1);
    expect_hello("plain",
                 "\"aws_access_key_id\": \"KEY\", \"aws_secret_access_key\": \"new\", "
                 "\"aws_session_token\": \"NEW\"",
                 1);
    ERROR("expired", "\"key\": \"KEY\", \"secret\": \"old\", \"token\": \"OLD\"",
          "400 ExpiredToken", "get a new one");
}

/* A program that gives the token OLD first, then NEW. */
static void an_expired_token_is_renewed_and_the_read_goes_on(void)
{
    char dir[] = "/tmp/headrace-s3-XXXXXX", path[128];
    if (!check(mkdtemp(dir) != NULL))
        return;
    snprintf(path, sizeof path, "%s/keys", dir);
    FILE *f = fopen(path, "w");
    fprintf(f,
            "if mkdir %s/asked 2>/dev/null; then s=old t=OLD; else s=new t=NEW; fi\n"
            "echo '{\"Version\": 1, \"AccessKeyId\": \"KEY\", \"Expiration\": "
            "\"2099-01-01T00:00:00Z\",'\n"
            "echo \"\\\"SecretAccessKey\\\": \\\"$s\\\", \\\"SessionToken\\\": "
            "\\\"$t\\\"}\"\n",
            dir);
    fclose(f);
    snprintf(path, sizeof path, "%s/config", dir);
    f = fopen(path, "w");
    fprintf(f, "[default]\ncredential_process = sh %s/keys\n", dir);
    fclose(f);
    setenv("AWS_CONFIG_FILE", path, 1);
    struct store *s = open_bucket("expires", "");
    for (int i = 0; i < 3; i++) {
        struct got g = read_all(s, "hello");
        if (!check_eq(g.r.rc, 0))
            printf("# %s\n", g.r.error.text);
        free(g.data);
        usleep(1100000); /* a younger credential is not asked for anew */
    }
    check_eq(requests_of("expires"), 4);
    store_unref(s);
    setenv("AWS_CONFIG_FILE", "/nonexistent", 1);
    snprintf(path, sizeof path, "rm -r %s", dir);
    check_eq(system(path), 0);
}

static void throttling_and_server_faults_are_waited_out(void)
{
    expect_hello("throttle", KEYS, 3);
    expect_hello("slow-400", KEYS, 3);
    expect_hello("broken", KEYS, 3);
}

static void refusals_say_what_to_do(void)
{
    ERROR("denied", KEYS, "s3://denied/k: status 403 AccessDenied", "s3:GetObject", "s3:ListBucket",
          "anon");
    ERROR("denied", "\"anon\": true", "403 AccessDenied", "anonymous");
    ERROR("gone", KEYS, "404 NoSuchBucket", "no bucket");
    ERROR("plain", "\"key\": \"OTHER\", \"secret\": \"x\"", "403 InvalidAccessKeyId", "access key");
    ERROR("plain", "\"key\": \"KEY\", \"secret\": \"x\"", "403 SignatureDoesNotMatch",
          "secret key");
    ERROR("html", KEYS, "status 404", "endpoint_url");
    ERROR("cut404", KEYS, "status 404");
    ERROR("proxy404", KEYS, "status 404", "not one of S3", "endpoint_url");
}

static void missing_is_a_positive_answer(void)
{
    static const char *const buckets[] = {"plain", "empty404"};
    for (size_t i = 0; i < 2; i++) {
        struct store *s = open_bucket(buckets[i], KEYS);
        struct got g = read_all(s, "k");
        check_eq(g.r.rc, STORE_MISSING);
        store_unref(s);
    }
    struct store *s = open_bucket("denied", KEYS ", \"missing_403\": true");
    check_eq(read_all(s, "k").r.rc, STORE_MISSING);
    /* … but whether there is an archive cannot be told where nothing can be read. */
    struct got g = read_all(s, "a/zarr.json");
    check_eq(g.r.rc, HR_ESTORE);
    check(g.r.denied && !strstr(g.r.error.text, "missing_403"));
    store_unref(s);
    /* A wrong key is not a missing chunk. */
    s = open_bucket("plain", "\"key\": \"KEY\", \"secret\": \"x\", \"missing_403\": true");
    check_eq(read_all(s, "k").r.rc, HR_ESTORE);
    store_unref(s);
}

static void anonymous_requests_carry_no_signature(void)
{
    static const char *const ways[] = {"\"anon\": true", "\"skip_signature\": true",
                                       "\"aws_skip_signature\": true"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        expect_hello("public", ways[i], 1);
    ERROR("public", KEYS, "403 AccessDenied", "anon");
}

static struct {
    pthread_mutex_t lock;
    char text[1 << 16];
    size_t n;
} logged = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void log_line(void *arg, int level, const char *text)
{
    (void)arg;
    pthread_mutex_lock(&logged.lock);
    if (logged.n < sizeof logged.text - 1024)
        logged.n += (size_t)snprintf(logged.text + logged.n, 1024, "%d %s\n", level, text);
    pthread_mutex_unlock(&logged.lock);
}

static void where_no_credential_is_found_access_is_anonymous_and_says_so(void)
{
    struct net *net = net_new(&(struct net_options){.log = log_line}, NULL);
    struct store *s = open_with(net, "s3://public", "");
    struct got g = read_all(s, "hello");
    check_eq(g.r.rc, 0);
    free(g.data);
    store_unref(s);
    check_has(logged.text, "anonymous");
    s = open_with(net, "s3://denied", "");
    g = read_all(s, "k");
    check_eq(g.r.rc, HR_ESTORE);
    check_has(g.r.error.text, "no credentials were found");
    check_has(g.r.error.text, "environment");
    store_unref(s);
    s = open_with(net, "s3://plain", "\"anon\": false");
    g = read_all(s, "hello");
    check_eq(g.r.rc, HR_ESTORE);
    check_has(g.r.error.text, "no credentials");
    store_unref(s);
    net_unref(net);
}

static void keys_of_the_environment_are_used(void)
{
    setenv("AWS_ACCESS_KEY_ID", "KEY", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "new", 1);
    setenv("AWS_SESSION_TOKEN", "NEW", 1);
    setenv("AWS_REQUEST_PAYER", "requester", 1);
    expect_hello("payer", "", 1);
    setenv("AWS_REGION", "eu-west-3", 1);
    expect_hello("moved-301", "", 1);
    unsetenv("AWS_REGION");
    unsetenv("AWS_REQUEST_PAYER");
    unsetenv("AWS_SESSION_TOKEN");
    unsetenv("AWS_SECRET_ACCESS_KEY");
    unsetenv("AWS_ACCESS_KEY_ID");
}

static void secrets_are_in_no_message(void)
{
    struct net *net = net_new(&(struct net_options){.log = log_line}, NULL);
    static const char *const buckets[] = {"denied",     "gone", "throttle", "moved-301",
                                          "moved-loop", "late", "html"};
    logged.n = 0;
    for (size_t i = 0; i < sizeof buckets / sizeof *buckets; i++) {
        char url[64];
        snprintf(url, sizeof url, "s3://%s/deep", buckets[i]);
        struct store *s =
            open_with(net, url,
                      "\"key\": \"KEY\", \"secret\": \"new\", \"token\": \"NEW\", \"headers\": "
                      "{\"x-amz-meta-mine\": \"HIDDEN\"}");
        struct got g = read_all(s, "k");
        check(!strstr(g.r.error.text, "NEW") && !strstr(g.r.error.text, "Signature=") &&
              !strstr(g.r.error.text, "HIDDEN"));
        store_unref(s);
    }
    net_unref(net);
    check(!strstr(logged.text, "NEW") && !strstr(logged.text, "Signature=") &&
          !strstr(logged.text, "HIDDEN"));
}

static void names_of_a_listing_are_exact_and_all_there(void)
{
    struct store *s = open_bucket("list-bytes/a b", KEYS);
    struct hr_error e = {0};
    char *names;
    size_t size;
    static const char want[] = "a\001&b c+\0sub\ndir/\0last";
    if (check_eq(store_list(s, "c&d", &names, &size, &e), 0))
        check(size == sizeof want && !memcmp(names, want, size));
    else
        printf("# %s\n", e.text);
    mem_free(names);
    store_unref(s);
}

static void listings_that_are_not_whole_are_errors(void)
{
    static const char *const cases[][2] = {{"list-cut", "ends early"},
                                           {"list-error", "InternalError"},
                                           {"list-endless", "does not say where"},
                                           {"list-round", "does not say where"},
                                           {"list-html", "XML"},
                                           {"denied", "s3:ListBucket"},
                                           {"gone", "NoSuchBucket"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct store *s = open_bucket(cases[i][0], KEYS);
        struct hr_error e = {0};
        char *names;
        size_t size;
        check(store_list(s, "x", &names, &size, &e) < 0);
        check(names == NULL);
        check_has(e.text, cases[i][0]);
        check_has(e.text, cases[i][1]);
        store_unref(s);
    }
}

static char *head_of(struct store *s, const char *key)
{
    struct got g = read_all(s, key);
    if (!check_eq(g.r.rc, 0)) {
        printf("# %s\n", g.r.error.text);
        return strdup("");
    }
    g.data[g.r.size] = 0;
    return g.data;
}

static void urls_follow_endpoint_and_style(void)
{
    char options[256], want[128];
    struct store *s = open_bucket("echo/a=b c/", "\"anon\": true");
    char *head = head_of(s, "c/0");
    check(!strncmp(head, "GET /echo/a%3Db%20c/c/0 HTTP/1.1", 32));
    check(!strstr(head, "Authorization") && !strstr(head, "x-amz-date"));
    check_str(store_url(s), "s3://echo/a=b c");
    free(head);
    store_unref(s);
    /* *.localhost is this machine for libcurl. */
    snprintf(options, sizeof options,
             "{\"client_kwargs\": {\"endpoint_url\": \"http://LocalHost:%d/echo/\"}, "
             "\"virtual_hosted_style_request\": true, \"anon\": true}",
             mock.port);
    s = NULL;
    check_eq(store_open_with("s3a://bkt", options, &(struct store_env){NULL, &quick}, &s, NULL), 0);
    head = head_of(s, "k");
    snprintf(want, sizeof want, "Host: bkt.localhost:%d\r\n", mock.port);
    check(!strncmp(head, "GET /echo/k HTTP/1.1", 20));
    check(strcasestr(head, want) || strcasestr(head, "Host: bkt.localhost"));
    free(head);
    store_unref(s);
}

int main(int argc, char **argv)
{
    static const char *const clean[] = {"http_proxy",
                                        "HTTP_PROXY",
                                        "all_proxy",
                                        "ALL_PROXY",
                                        "AWS_PROFILE",
                                        "AWS_ACCESS_KEY_ID",
                                        "AWS_SECRET_ACCESS_KEY",
                                        "AWS_SESSION_TOKEN",
                                        "AWS_ENDPOINT_URL",
                                        "AWS_ENDPOINT_URL_S3",
                                        "AWS_REGION",
                                        "AWS_DEFAULT_REGION",
                                        "AWS_WEB_IDENTITY_TOKEN_FILE",
                                        "AWS_ROLE_ARN",
                                        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                                        "AWS_CONTAINER_CREDENTIALS_FULL_URI"};
    for (size_t i = 0; i < sizeof clean / sizeof *clean; i++)
        unsetenv(clean[i]);
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    setenv("AWS_CONFIG_FILE", "/nonexistent", 1);
    setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent", 1);
    if (argc < 2 || !server_start(&mock, argv[1]))
        return 77;
    RUN(signed_requests_are_answered);
    RUN(a_whole_object_is_held_against_its_checksum);
    RUN(an_instance_is_asked_when_an_object_is_refused_not_a_listing);
    RUN(a_region_is_learnt_once_for_all_stores);
    RUN(the_region_is_learnt_from_every_kind_of_answer);
    RUN(regions_that_change_or_make_no_sense_are_errors);
    RUN(a_wrong_clock_is_corrected_once);
    RUN(requester_pays_is_sent_with_everything);
    RUN(tokens_are_sent_and_signed);
    RUN(an_expired_token_is_renewed_and_the_read_goes_on);
    RUN(throttling_and_server_faults_are_waited_out);
    RUN(refusals_say_what_to_do);
    RUN(missing_is_a_positive_answer);
    RUN(anonymous_requests_carry_no_signature);
    RUN(where_no_credential_is_found_access_is_anonymous_and_says_so);
    RUN(keys_of_the_environment_are_used);
    RUN(secrets_are_in_no_message);
    RUN(names_of_a_listing_are_exact_and_all_there);
    RUN(listings_that_are_not_whole_are_errors);
    RUN(urls_follow_endpoint_and_style);
    server_stop(&mock);
    return t_done();
}
