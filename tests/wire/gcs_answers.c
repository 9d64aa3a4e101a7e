/* Cloud Storage at its worst: an own server that checks tokens and signatures and answers as the
 * real one seldom does (gcs_mock.py). The store must end with the bytes, with "missing" where that
 * is certain, or with one error that says what to do. */
#include "base/mem.h"
#include "wire/patience.h"
#include "wire/wire.h"

static struct server mock;
static const struct net_policy quick = UNHURRIED;

static char account[8192], elsewhere[8192]; /* a service account's file, as an option's text */

static struct store *open_with(struct net *net, const char *url, const char *options)
{
    char text[12288];
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
    snprintf(url, sizeof url, "gs://%s", bucket);
    return open_with(NULL, url, options);
}

/* What the mock itself has to say. */
static char *ask_mock(const char *where, const char *key)
{
    char url[128];
    struct store *s = NULL;
    snprintf(url, sizeof url, "http://127.0.0.1:%d/%s", mock.port, where);
    if (!check(store_open(url, NULL, &s, NULL) == 0))
        exit(1);
    struct got g = read_all(s, key);
    if (!check_eq(g.r.rc, 0))
        exit(1);
    g.data[g.r.size] = 0;
    store_unref(s);
    return g.data;
}

static unsigned long requests_of(const char *bucket)
{
    char *text = ask_mock("_count", bucket);
    unsigned long n = strtoul(text, NULL, 10);
    free(text);
    return n;
}

static void expect_text(const char *bucket, const char *options, const char *key, const char *want)
{
    struct store *s = open_bucket(bucket, options);
    struct got g = read_all(s, key);
    if (!check_eq(g.r.rc, 0))
        printf("# %s: %s\n", bucket, g.r.error.text);
    else if (!check(g.r.size == strlen(want) && !memcmp(g.data, want, g.r.size)))
        printf("# %s: %.*s\n", bucket, (int)g.r.size, g.data);
    free(g.data);
    store_unref(s);
}

/* Reading "hello" of the bucket gives its text, in so many requests. */
static void expect_hello(const char *bucket, const char *options, unsigned long requests)
{
    char want[128];
    snprintf(want, sizeof want, "hello from %s", bucket);
    unsigned long before = requests_of(bucket);
    expect_text(bucket, options, "hello", want);
    check_eq(requests_of(bucket) - before, requests);
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
    check(!strstr(g.r.error.text, "secret/with") && !strstr(g.r.error.text, "ya29.") &&
          !strstr(g.r.error.text, "eyJ"));
    free(g.data);
    store_unref(s);
}
#define ERROR(bucket, options, ...)                                                                \
    expect_error(bucket, options, "k", (const char *const[]){__VA_ARGS__, NULL})

#define HMAC "\"key\": \"KEY\", \"secret\": \"secret/with+specials\""

/* ---- credentials ----------------------------------------------------------------------------- */

static void a_service_account_signs_for_itself_or_asks_its_endpoint(void)
{
    expect_hello("plain", account, 1);
    expect_text("whoami", account, "k", "self-signed");
    expect_text("whoami", elsewhere, "k", "exchanged");
}

static void an_access_token_is_sent_as_it_is(void)
{
    ERROR("plain", "\"access_token\": \"ya29.unknown\"", "401 AuthenticationRequired", "expired");
    ERROR("plain", "\"token\": \"ya29.unknown\"", "401 AuthenticationRequired", "revoked");
}

static void hmac_keys_sign(void)
{
    expect_hello("plain", HMAC, 1);
    expect_text("whoami", HMAC, "k", "hmac");
    expect_hello("late", HMAC, 2); /* by the server's clock */
    ERROR("plain", "\"key\": \"KEY\", \"secret\": \"wrong\"", "403 SignatureDoesNotMatch",
          "secret");
    ERROR("plain", "\"key\": \"OTHER\", \"secret\": \"wrong\"", "403 InvalidAccessKeyId", "key");
    expect_hello("payer", HMAC ", \"requester_pays\": \"mine-1\"", 1);
}

static void a_refused_token_is_renewed(void)
{
    struct store *s = open_bucket("revoked", elsewhere);
    struct got g = read_all(s, "hello"); /* a token that is refused at once is no good at all */
    check_eq(g.r.rc, HR_ESTORE);
    check_has(g.r.error.text, "401 AuthenticationRequired");
    usleep(1100000);
    g = read_all(s, "hello"); /* with another token than the one that is void */
    if (!check_eq(g.r.rc, 0))
        printf("# %s\n", g.r.error.text);
    free(g.data);
    store_unref(s);
}

static void anonymous_requests_carry_no_token(void)
{
    static const char *const ways[] = {"\"token\": \"anon\"", "\"skip_signature\": true",
                                       "\"anon\": true", "\"google_skip_signature\": true"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        expect_hello("open", ways[i], 1);
    ERROR("plain", "\"token\": \"anon\"", "403 AccessDenied", "anonymous", "anon");
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
    struct store *s = open_with(net, "gs://open", "");
    struct got g = read_all(s, "hello");
    check_eq(g.r.rc, 0);
    free(g.data);
    store_unref(s);
    check_has(logged.text, "gs://open: no credentials: anonymous access");
    s = open_with(net, "gs://plain", "");
    g = read_all(s, "k");
    check_eq(g.r.rc, HR_ESTORE);
    check_has(g.r.error.text, "no credentials were found");
    check_has(g.r.error.text, "GOOGLE_APPLICATION_CREDENTIALS is not set");
    check_has(g.r.error.text, "NO_GCE_CHECK");
    store_unref(s);
    s = open_with(net, "gs://open", "\"token\": \"google_default\"");
    g = read_all(s, "hello");
    check_eq(g.r.rc, HR_ESTORE);
    check_has(g.r.error.text, "no credentials");
    store_unref(s);
    net_unref(net);
}

static void secrets_are_in_no_message(void)
{
    struct net *net = net_new(&(struct net_options){.log = log_line, .trace = true}, NULL);
    static const char *const buckets[] = {"denied", "gone", "list-cut", "html", "payer", "plain"};
    logged.n = 0;
    for (size_t i = 0; i < sizeof buckets / sizeof *buckets; i++) {
        char url[64];
        snprintf(url, sizeof url, "gs://%s/deep", buckets[i]);
        struct store *s = open_with(net, url, i % 2 ? account : HMAC);
        struct got g = read_all(s, "k");
        check(!strstr(g.r.error.text, "eyJ") && !strstr(g.r.error.text, "Signature="));
        store_unref(s);
    }
    net_unref(net);
    check(logged.n > 0 && !strstr(logged.text, "eyJ") && !strstr(logged.text, "Signature=") &&
          !strstr(logged.text, "secret/"));
}

/* ---- answers --------------------------------------------------------------------------------- */

static void missing_is_a_positive_answer(void)
{
    static const char *const buckets[] = {"plain", "empty404", "json"};
    for (size_t i = 0; i < sizeof buckets / sizeof *buckets; i++) {
        struct store *s = open_bucket(buckets[i], account);
        struct got g = read_all(s, "k");
        if (!check_eq(g.r.rc, STORE_MISSING))
            printf("# %s: %s\n", buckets[i], g.r.error.text);
        store_unref(s);
    }
    ERROR("gone", account, "404 NoSuchBucket", "no bucket of this name");
    ERROR("json-gone", account, "404 notFound", "no bucket of this name");
    ERROR("html", account, "status 404", "endpoint_url");
    char options[9000];
    snprintf(options, sizeof options, "%s, \"missing_403\": true", account);
    struct store *s = open_bucket("denied", options);
    check_eq(read_all(s, "k").r.rc, STORE_MISSING);
    store_unref(s);
    /* A wrong key is not a missing chunk. */
    s = open_bucket("plain", "\"key\": \"KEY\", \"secret\": \"x\", \"missing_403\": true");
    check_eq(read_all(s, "k").r.rc, HR_ESTORE);
    store_unref(s);
}

static void refusals_say_what_to_do(void)
{
    ERROR("denied", account, "gs://denied/k: status 403 AccessDenied", "storage.objects.get",
          "missing_403", "anon");
    ERROR("payer", account, "400 UserProjectMissing", "requester_pays", "project");
    ERROR("unpaid", account, "403 UserProjectAccountProblem", "billing");
}

static void the_requester_pays_where_that_is_said(void)
{
    static const char *const ways[] = {"\"requester_pays\": \"mine-1\"",
                                       "\"requester_pays\": true, \"project\": \"mine-1\"",
                                       "\"user_project\": \"mine-1\""};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char options[9000];
        snprintf(options, sizeof options, "%s, %s", account, ways[i]);
        expect_hello("payer", options, 1);
        struct store *s = open_bucket("payer", options);
        char *names;
        size_t size;
        check_eq(store_list(s, "", &names, &size, NULL), 0);
        mem_free(names);
        store_unref(s);
    }
}

static void throttling_and_server_faults_are_waited_out(void)
{
    expect_hello("limited", account, 3);
    expect_hello("broken", account, 3);
}

static void compressed_objects_are_refused(void)
{
    ERROR("gzip", account, "Content-Encoding");
}

static void another_generation_is_another_object(void)
{
    struct store *s = open_bucket("versions", account);
    static const char *const keys[] = {"steady", "next"};
    for (size_t i = 0; i < 2; i++) {
        struct got g = read_range(s, keys[i], 2, 3);
        if (check_eq(g.r.rc, 0))
            check(!memcmp(g.data, "234", 3));
        free(g.data);
        g = read_range(s, keys[i], 5, 3);
        check_eq(g.r.rc, i ? HR_ESTORE : 0);
        if (i)
            check_has(g.r.error.text, "changed");
        free(g.data);
    }
    store_unref(s);
}

/* ---- listings -------------------------------------------------------------------------------- */

static void names_of_a_listing_are_exact_and_all_there(void)
{
    struct store *s = open_bucket("list-two/a b", account);
    struct hr_error e = {0};
    char *names;
    size_t size;
    static const char want[] = "a\001&b+\303\274\n\0last\0sub dir/";
    if (check_eq(store_list(s, "c&d", &names, &size, &e), 0))
        check(size == sizeof want && !memcmp(names, want, size));
    else
        printf("# %s\n", e.text);
    mem_free(names);
    store_unref(s);
    s = open_bucket("list-empty", account);
    check_eq(store_list(s, "c", &names, &size, &e), 0);
    check_eq(size, 0);
    mem_free(names);
    store_unref(s);
    s = open_bucket("plain", HMAC);
    check_eq(store_list(s, "c", &names, &size, &e), 0);
    check_str(names, "hello");
    mem_free(names);
    store_unref(s);
}

static void listings_that_are_not_whole_are_errors(void)
{
    static const char *const cases[][2] = {{"list-cut", "list-cut"},
                                           {"list-endless", "does not say where"},
                                           {"list-round", "does not say where"},
                                           {"list-html", "listing"},
                                           {"list-other", "does not begin"},
                                           {"denied", "storage.objects.list"},
                                           {"gone", "no bucket of this name"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct store *s = open_bucket(cases[i][0], account);
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

/* ---- requests -------------------------------------------------------------------------------- */

static void urls_follow_endpoint_and_prefix(void)
{
    char text[64];
    struct store *s = open_with(NULL, "gcs://echo/a=b c/", "\"token\": \"anon\"");
    struct got g = read_all(s, "c/0+1");
    if (check_eq(g.r.rc, 0)) {
        g.data[g.r.size] = 0;
        check_has(g.data, "GET /echo/a%3Db%20c/c/0%2B1 HTTP/1.1");
        check(!strstr(g.data, "Authorization") && !strstr(g.data, "x-"));
    }
    check_str(store_url(s), "gs://echo/a=b c");
    free(g.data);
    store_unref(s);
    /* An emulator is asked as nobody, whoever the environment says that one is. */
    snprintf(text, sizeof text, "127.0.0.1:%d", mock.port);
    setenv("STORAGE_EMULATOR_HOST", text, 1);
    setenv("GOOGLE_APPLICATION_CREDENTIALS", "/no/such/file", 1);
    check_eq(store_open_with("gs://echo", "", &(struct store_env){NULL, &quick}, &s, NULL), 0);
    g = read_all(s, "k");
    check_eq(g.r.rc, 0);
    free(g.data);
    store_unref(s);
    unsetenv("GOOGLE_APPLICATION_CREDENTIALS");
    unsetenv("STORAGE_EMULATOR_HOST");
}

/* The mock's file as the option service_account_key: JSON within JSON. */
static void make_account(char *out, size_t room, const char *endpoint)
{
    char *text = ask_mock("_sa", endpoint);
    struct buf b;
    buf_init(&b);
    buf_puts(&b, "\"service_account_key\": ");
    buf_json_string(&b, text, strlen(text));
    snprintf(out, room, "%s", b.data);
    buf_dispose(&b);
    free(text);
}

static void a_whole_object_is_held_against_its_checksum(void)
{
    expect_hello("flipped-once", HMAC, 2);
    struct store *s = open_bucket("flipped", HMAC);
    struct got g = read_all(s, "hello");
    check_eq(g.r.rc, HR_EDATA);
    check_has(g.r.error.text, "gs://flipped/hello: the bytes are not those of the object: crc32c");
    free(g.data);
    store_unref(s);
}

int main(int argc, char **argv)
{
    static const char *const clean[] = {"http_proxy",
                                        "HTTP_PROXY",
                                        "https_proxy",
                                        "all_proxy",
                                        "ALL_PROXY",
                                        "STORAGE_EMULATOR_HOST",
                                        "GOOGLE_APPLICATION_CREDENTIALS",
                                        "GOOGLE_SERVICE_ACCOUNT",
                                        "GOOGLE_SERVICE_ACCOUNT_KEY",
                                        "GOOGLE_SERVICE_ACCOUNT_PATH",
                                        "GOOGLE_SKIP_SIGNATURE",
                                        "GOOGLE_CLOUD_PROJECT",
                                        "GCLOUD_PROJECT"};
    for (size_t i = 0; i < sizeof clean / sizeof *clean; i++)
        unsetenv(clean[i]);
    setenv("CLOUDSDK_CONFIG", "/nonexistent", 1);
    setenv("NO_GCE_CHECK", "true", 1);
    if (argc < 2 || !server_start(&mock, argv[1])) {
        printf("1..0 # SKIP no python3\n");
        return 0;
    }
    make_account(account, sizeof account, "google");
    make_account(elsewhere, sizeof elsewhere, "token");
    RUN(a_service_account_signs_for_itself_or_asks_its_endpoint);
    RUN(an_access_token_is_sent_as_it_is);
    RUN(hmac_keys_sign);
    RUN(a_refused_token_is_renewed);
    RUN(anonymous_requests_carry_no_token);
    RUN(where_no_credential_is_found_access_is_anonymous_and_says_so);
    RUN(secrets_are_in_no_message);
    RUN(missing_is_a_positive_answer);
    RUN(refusals_say_what_to_do);
    RUN(the_requester_pays_where_that_is_said);
    RUN(throttling_and_server_faults_are_waited_out);
    RUN(compressed_objects_are_refused);
    RUN(another_generation_is_another_object);
    RUN(names_of_a_listing_are_exact_and_all_there);
    RUN(listings_that_are_not_whole_are_errors);
    RUN(urls_follow_endpoint_and_prefix);
    RUN(a_whole_object_is_held_against_its_checksum);
    server_stop(&mock);
    return t_done();
}
