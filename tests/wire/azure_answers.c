/* Azure at its worst: an own service that checks signatures, SAS and tokens, and answers as the real
 * one seldom does (azure_server.py). The store must end with the bytes, with "missing" where that is
 * certain, or with one error that says what to do; and never with a wrong one of these. */
#include <time.h>

#include "base/mem.h"
#include "wire/keys.h"
#include "wire/wire.h"

static struct server mock;
static const struct net_policy quick = QUICK;

/* Bytes 0 to 63, and 64 to 127. */
#define SECRET                                                                                     \
    "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw=="
#define OTHER                                                                                      \
    "QEFCQ0RFRkdISUpLTE1OT1BRUlNUVVZXWFlaW1xdXl9gYWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+fw=="
#define KEY        "\"account_key\": \"" SECRET "\""
#define TENANT     "72f988bf-86f1-41af-91ab-2d7cd011db47"
#define BIG        300000
#define NO_SECRETS "AAECAwQF", "QEFCQ0RF", "s3cret", "eyJ", "sig=", "SharedKey ", "Bearer "

static bool is_clean(const char *text)
{
    static const char *const secrets[] = {NO_SECRETS};
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++)
        if (strstr(text, secrets[i]))
            return false;
    return true;
}

static struct store *open_with(struct net *net, const char *url, const char *options)
{
    char text[4096];
    struct store *s = NULL;
    struct hr_error e = {0};
    struct store_env env = {net, &quick};
    snprintf(text, sizeof text,
             "{\"account_name\": \"acct\", \"endpoint\": \"http://127.0.0.1:%d/acct\"%s%s}",
             mock.port, *options ? ", " : "", options);
    if (!check(store_open_with(url, text, &env, &s, &e) == 0))
        printf("# %s\n", e.text);
    return s;
}

static struct store *open_container(const char *container, const char *options)
{
    char url[128];
    snprintf(url, sizeof url, "az://%s", container);
    return open_with(NULL, url, options);
}

/* What the mock says at a path of its own. */
static void ask_mock(const char *path, char *out, size_t room)
{
    char url[128];
    struct store *s = NULL;
    snprintf(url, sizeof url, "http://127.0.0.1:%d", mock.port);
    *out = 0;
    if (!check(store_open(url, NULL, &s, NULL) == 0))
        return;
    struct got g = read_all(s, path);
    if (check_eq(g.r.rc, 0) && check(g.r.size < room)) {
        memcpy(out, g.data, g.r.size);
        out[g.r.size] = 0;
    }
    free(g.data);
    store_unref(s);
}

static unsigned long requests_of(const char *container)
{
    char path[128], text[32];
    snprintf(path, sizeof path, "_count/%s", container);
    ask_mock(path, text, sizeof text);
    return strtoul(text, NULL, 10);
}

static unsigned long tokens(void)
{
    char text[32];
    ask_mock("_tokens", text, sizeof text);
    return strtoul(text, NULL, 10);
}

static void expect_read(struct store *s, const char *key, const char *want)
{
    struct got g = read_all(s, key);
    if (!check_eq(g.r.rc, 0))
        printf("# %s\n", g.r.error.text);
    else
        check(g.r.size == strlen(want) && !memcmp(g.data, want, g.r.size));
    free(g.data);
}

/* Reading "hello" of the container gives its text, in so many requests. */
static void expect_hello(const char *container, const char *options, unsigned long requests)
{
    char want[128];
    snprintf(want, sizeof want, "hello from %s", container);
    unsigned long before = requests_of(container);
    struct store *s = open_container(container, options);
    expect_read(s, "hello", want);
    expect_read(s, "hello", want); /* what was learnt is kept */
    check_eq(requests_of(container) - before, requests + 1);
    store_unref(s);
}

static void expect_error(const char *container, const char *options, const char *key,
                         const char *const *parts)
{
    struct store *s = open_container(container, options);
    struct got g = read_all(s, key);
    check(g.r.rc < 0);
    check_has(g.r.error.text, container);
    for (; *parts; parts++)
        check_has(g.r.error.text, *parts);
    if (!check(is_clean(g.r.error.text)))
        printf("# %s\n", g.r.error.text);
    free(g.data);
    store_unref(s);
}
#define ERROR(container, options, ...)                                                             \
    expect_error(container, options, "k", (const char *const[]){__VA_ARGS__, NULL})

/* ---- who asks -------------------------------------------------------------------------------- */

static void requests_signed_with_the_key_are_answered(void)
{
    expect_hello("plain", KEY, 1);
    expect_hello("plain",
                 KEY ", \"headers\": {\"x-ms-client-request-id\": \"a  b\", \"X-Ms-Foo\": "
                     "\"1\", \"If-Modified-Since\": \"Sat, 01 Jan 2000 00:00:00 GMT\"}",
                 1);
    ERROR("plain", "\"account_key\": \"" OTHER "\"", "az://plain/k: status 403",
          "AuthenticationFailed", "account key");
    ERROR("plain", "\"account_key\": \"short\"", "Base64");
}

static void a_sas_goes_behind_every_request_as_it_is(void)
{
    char sas[512], options[640], url[640];
    ask_mock("_sas/plain/60/rl", sas, sizeof sas);
    snprintf(options, sizeof options, "\"sas_token\": \"%s\"", sas);
    expect_hello("plain", options, 1);
    snprintf(options, sizeof options, "\"sas_token\": \"?%s\"", sas);
    expect_hello("plain", options, 1);
    snprintf(url, sizeof url, "az://plain/deep?%s", sas);
    struct store *s = open_with(NULL, url, "");
    check_str(store_url(s), "az://plain/deep");
    expect_read(s, "hello", "hello from plain");
    char *names;
    size_t size;
    check_eq(store_list(s, "x", &names, &size, NULL), 0);
    mem_free(names);
    store_unref(s);
}

static void a_sas_that_will_not_do_says_why(void)
{
    char sas[512], options[640];
    ask_mock("_sas/plain/-5/rl", sas, sizeof sas);
    snprintf(options, sizeof options, "\"sas_token\": \"%s\"", sas);
    ERROR("plain", options, "403 AuthenticationFailed", "has expired");
    ask_mock("_sas/plain/60/l", sas, sizeof sas);
    snprintf(options, sizeof options, "\"sas_token\": \"%s\"", sas);
    ERROR("plain", options, "403 AuthorizationPermissionMismatch", "SAS");
    ask_mock("_sas/other/60/rl", sas, sizeof sas);
    snprintf(options, sizeof options, "\"sas_token\": \"%s\"", sas);
    ERROR("plain", options, "403 AuthenticationFailed", "not valid here");
}

static void a_given_token_is_sent(void)
{
    char token[1024], options[1100];
    ask_mock("_token", token, sizeof token);
    snprintf(options, sizeof options, "\"token\": \"%s\"", token);
    expect_hello("plain", options, 1);
    snprintf(options, sizeof options, "\"bearer_token\": \"%.*sx\"", (int)strlen(token) - 3, token);
    ERROR("plain", options, "401 InvalidAuthenticationInfo", "token");
}

static void anonymous_requests_carry_nothing(void)
{
    static const char *const ways[] = {"\"anon\": true", "\"skip_signature\": true"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        expect_hello("public", ways[i], 1);
    ERROR("public", KEY, "403 AuthenticationFailed");
    ERROR("plain", "\"anon\": true", "404 ResourceNotFound", "anonymous");
    ERROR("closed", "\"anon\": true", "409 PublicAccessNotPermitted", "anonymous");
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
    struct store *s = open_with(net, "az://public", "");
    expect_read(s, "hello", "hello from public");
    store_unref(s);
    check_has(logged.text, "anonymous");
    s = open_with(net, "az://plain", "");
    struct got g = read_all(s, "k");
    check_eq(g.r.rc, HR_ESTORE);
    check_has(g.r.error.text, "no credentials were found");
    check_has(g.r.error.text, "managed identity");
    store_unref(s);
    s = open_with(net, "az://plain", "\"anon\": false");
    g = read_all(s, "hello");
    check_eq(g.r.rc, HR_ESTORE);
    check_has(g.r.error.text, "no credentials");
    store_unref(s);
    net_unref(net);
}

/* ---- the environment, and identities --------------------------------------------------------- */

static void clear_azure(void)
{
    static const char *const names[] = {
        "http_proxy",
        "all_proxy",
        "ALL_PROXY",
        "AZURE_STORAGE_ACCOUNT",
        "AZURE_STORAGE_ACCOUNT_NAME",
        "AZURE_STORAGE_KEY",
        "AZURE_STORAGE_ACCOUNT_KEY",
        "AZURE_STORAGE_SAS_TOKEN",
        "AZURE_STORAGE_CONNECTION_STRING",
        "AZURE_STORAGE_TOKEN",
        "AZURE_STORAGE_ENDPOINT",
        "AZURE_ENDPOINT",
        "AZURE_STORAGE_ANON",
        "AZURE_SKIP_SIGNATURE",
        "AZURE_CLIENT_ID",
        "AZURE_CLIENT_SECRET",
        "AZURE_TENANT_ID",
        "AZURE_STORAGE_CLIENT_ID",
        "AZURE_STORAGE_CLIENT_SECRET",
        "AZURE_STORAGE_TENANT_ID",
        "AZURE_FEDERATED_TOKEN_FILE",
        "AZURE_AUTHORITY_HOST",
        "IDENTITY_ENDPOINT",
        "IDENTITY_HEADER",
        "IDENTITY_SERVER_THUMBPRINT",
        "IMDS_ENDPOINT",
        "MSI_ENDPOINT",
        "MSI_SECRET",
        "DEFAULT_IDENTITY_CLIENT_ID",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", "http://127.0.0.1:9", 1); /* nobody */
}

static const char *at(const char *path)
{
    static char urls[4][128];
    static unsigned turn;
    char *url = urls[turn++ % 4];
    snprintf(url, sizeof urls[0], "http://127.0.0.1:%d%s", mock.port, path);
    return url;
}

static void keys_and_sas_of_the_environment_are_used(void)
{
    char text[512], sas[512];
    setenv("AZURE_STORAGE_ACCOUNT", "acct", 1);
    setenv("AZURE_STORAGE_KEY", SECRET, 1);
    expect_hello("plain", "", 1);
    unsetenv("AZURE_STORAGE_KEY");
    ask_mock("_sas/plain/60/rl", sas, sizeof sas);
    setenv("AZURE_STORAGE_SAS_TOKEN", sas, 1);
    expect_hello("plain", "", 1);
    clear_azure();
    snprintf(text, sizeof text, "AccountName=acct;AccountKey=" SECRET ";BlobEndpoint=%s",
             at("/acct"));
    setenv("AZURE_STORAGE_CONNECTION_STRING", text, 1);
    struct store *s = NULL;
    check_eq(store_open_with("az://plain", NULL, &(struct store_env){NULL, &quick}, &s, NULL), 0);
    expect_read(s, "hello", "hello from plain");
    store_unref(s);
    clear_azure();
    setenv("AZURE_STORAGE_ACCOUNT", "another", 1);
    setenv("AZURE_STORAGE_KEY", SECRET, 1);
    expect_hello("public", "", 1);
    clear_azure();
}

static void a_client_proves_itself_by_its_secret(void)
{
    char options[512];
    setenv("AZURE_AUTHORITY_HOST", at("/login/"), 1);
    unsigned long before = tokens();
    snprintf(options, sizeof options,
             "\"tenant_id\": \"" TENANT "\", \"client_id\": \"me\", \"client_secret\": "
             "\"s3cret~Q+/=\"");
    expect_hello("plain", options, 1);
    check_eq(tokens() - before, 1);
    setenv("AZURE_TENANT_ID", TENANT, 1);
    setenv("AZURE_CLIENT_ID", "me", 1);
    setenv("AZURE_CLIENT_SECRET", "s3cret~Q+/=", 1);
    expect_hello("plain", "", 1);
    setenv("AZURE_CLIENT_SECRET", "s3cret wrong", 1);
    ERROR("plain", "", "client secret", "invalid_client", "AADSTS7000215");
    ERROR("plain", "\"tenant_id\": \"other\"", "AADSTS90002");
    ERROR("plain", "\"tenant_id\": \"../x?\"", "no tenant");
    setenv("AZURE_AUTHORITY_HOST", "http://example.org", 1);
    ERROR("plain", "", "https only");
    clear_azure();
}

static void a_workload_proves_itself_by_its_clusters_token(void)
{
    char path[] = "/tmp/headrace-azure-XXXXXX", options[512];
    int fd = mkstemp(path);
    setenv("AZURE_AUTHORITY_HOST", at("/login"), 1);
    setenv("AZURE_TENANT_ID", TENANT, 1);
    setenv("AZURE_CLIENT_ID", "pod", 1);
    setenv("AZURE_FEDERATED_TOKEN_FILE", path, 1);
    ERROR("plain", "", "workload identity", "empty file");
    check(write(fd, "eyJ.cluster.token\n", 18) == 18);
    expect_hello("plain", "", 1);
    unsetenv("AZURE_FEDERATED_TOKEN_FILE");
    snprintf(options, sizeof options, "\"azure_federated_token_file\": \"%s\"", path);
    expect_hello("plain", options, 1);
    close(fd);
    unlink(path);
    ERROR("plain", options, "workload identity", "No such file");
    clear_azure();
}

static void machines_have_identities(void)
{
    setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", at(""), 1);
    expect_hello("plain", "", 1);
    expect_hello("plain", "\"client_id\": \"a b&c\"", 1);
    expect_hello("plain", "\"msi_resource_id\": \"/subscriptions/x\"", 1);
    expect_hello("plain", "\"object_id\": \"1-2\"", 1);
    ERROR("plain", "\"client_id\": \"nobody\"", "Identity not found", "anonymous");
    clear_azure();
    char options[256];
    snprintf(options, sizeof options, "\"msi_endpoint\": \"%s\"",
             at("/metadata/identity/oauth2/token"));
    expect_hello("plain", options, 1);
    setenv("IDENTITY_ENDPOINT", at("/app/token"), 1);
    setenv("IDENTITY_HEADER", "app header", 1);
    expect_hello("plain", "", 1);
    expect_hello("plain", "\"client_id\": \"mine\"", 1);
    setenv("IDENTITY_HEADER", "wrong", 1);
    ERROR("plain", "", "managed identity", "invalid_request");
    setenv("IDENTITY_ENDPOINT", "http://example.org/token", 1);
    ERROR("plain", "", "this machine");
    clear_azure();
    setenv("MSI_ENDPOINT", at("/ml/token/"), 1);
    setenv("MSI_SECRET", "app header", 1);
    setenv("DEFAULT_IDENTITY_CLIENT_ID", "cluster", 1);
    expect_hello("plain", "", 1);
    clear_azure();
}

static void what_is_given_goes_before_what_is_found(void)
{
    setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", at(""), 1);
    setenv("AZURE_STORAGE_KEY", OTHER, 1);
    unsigned long before = tokens();
    expect_hello("plain", KEY, 1);
    ERROR("plain", "", "403 AuthenticationFailed"); /* the environment's key before the machine */
    check_eq(tokens() - before, 0);
    clear_azure();
}

static void tokens_are_renewed_before_they_end(void)
{
    setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", at(""), 1);
    struct store *s = open_container("plain", "\"client_id\": \"short\"");
    unsigned long before = tokens();
    uint64_t end = clock_ns() + 5000000000ull;
    while (clock_ns() < end) {
        struct got g = read_all(s, "hello");
        if (!check_eq(g.r.rc, 0)) {
            printf("# %s\n", g.r.error.text);
            break;
        }
        free(g.data);
        usleep(20000);
    }
    check(tokens() - before >= 2);
    store_unref(s);
    clear_azure();
}

static void a_token_that_is_refused_is_fetched_anew_once(void)
{
    setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", at(""), 1);
    struct store *s = open_container("plain", "");
    expect_read(s, "hello", "hello from plain");
    store_unref(s);
    s = open_container("expiring", "");
    unsigned long before = tokens();
    struct got g = read_all(s, "k"); /* the token is too young to be asked for anew */
    check_eq(g.r.rc, HR_ESTORE);
    check_has(g.r.error.text, "401 InvalidAuthenticationInfo");
    check(is_clean(g.r.error.text));
    check_eq(tokens() - before, 1);
    usleep(1100000);
    expect_read(s, "hello", "hello from expiring");
    check_eq(tokens() - before, 2);
    store_unref(s);
    clear_azure();
}

/* ---- answers --------------------------------------------------------------------------------- */

static void a_wrong_clock_is_corrected_once(void)
{
    expect_hello("late", KEY, 2);
    expect_hello("wrong-date", KEY, 1);
}

static void throttling_and_server_faults_are_waited_out(void)
{
    expect_hello("busy", KEY, 3);
    expect_hello("timed-out", KEY, 3);
}

static void refusals_say_what_to_do(void)
{
    ERROR("gone", KEY, "az://gone/k: status 404 ContainerNotFound", "no container");
    ERROR("noperm", KEY, "403 AuthorizationPermissionMismatch", "Storage Blob Data Reader");
    ERROR("firewall", KEY, "403 AuthorizationFailure", "firewall");
    ERROR("nokeys", KEY, "403 KeyBasedAuthenticationNotPermitted", "managed identity");
    ERROR("archived", KEY, "409 BlobArchived", "archived");
    ERROR("nohttp", KEY, "400 AccountRequiresHttps", "https");
    ERROR("bare403", KEY, "status 403", "anon");
    ERROR("html", KEY, "status 404", "endpoint");
    ERROR("cut404", KEY, "status 404", "endpoint");
}

static void missing_is_a_positive_answer(void)
{
    static const char *const containers[] = {"plain", "empty404"};
    for (size_t i = 0; i < 2; i++) {
        struct store *s = open_container(containers[i], KEY);
        check_eq(read_all(s, "k").r.rc, STORE_MISSING);
        check_eq(read_range(s, "k", -10, 0).r.rc, STORE_MISSING);
        check_eq(read_range(s, "k", 10, 10).r.rc, STORE_MISSING);
        store_unref(s);
    }
    static const char *const refused[] = {"noperm", "bare403"};
    for (size_t i = 0; i < 2; i++) {
        struct store *s = open_container(refused[i], KEY ", \"missing_403\": true");
        check_eq(read_all(s, "k").r.rc, STORE_MISSING);
        store_unref(s);
    }
    /* A wrong key is not a missing chunk. */
    struct store *s =
        open_container("plain", "\"account_key\": \"" OTHER "\", \"missing_403\": true");
    check_eq(read_all(s, "k").r.rc, HR_ESTORE);
    store_unref(s);
}

static bool is_big(const struct got *g, uint64_t first, uint64_t n)
{
    return g->r.rc == 0 && g->r.size == n && g->r.object_size == BIG &&
           liar_bytes(g->data, first, n, 0);
}

static void ranges_and_ends_are_exact(void)
{
    static const struct {
        int64_t offset;
        uint64_t length, first, size;
    } cases[] = {{0, 0, 0, BIG},           {10, 10, 10, 10},
                 {BIG - 5, 5, BIG - 5, 5}, {-7, 0, BIG - 7, 7},
                 {-BIG, 0, 0, BIG},        {-2 * BIG, 0, 0, BIG},
                 {-1, 0, BIG - 1, 1},      {-100000, 0, 200000, 100000}};
    struct store *s = open_container("plain", KEY);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct got g = read_range(s, "big", cases[i].offset, cases[i].length);
        if (!check(is_big(&g, cases[i].first, cases[i].size)))
            printf("# case %zu: %d %s\n", i, g.r.rc, g.r.error.text);
        check_eq(g.asked, 1);
        free(g.data);
    }
    struct got g = read_range(s, "big", BIG - 5, 10);
    check_eq(g.r.rc, HR_EDATA);
    free(g.data);
    g = read_range(s, "empty", -10, 0);
    check_eq(g.r.rc, 0);
    check_eq(g.r.size, 0);
    check_eq(g.asked, 1);
    free(g.data);
    g = read_range(s, "empty", 0, 0);
    check_eq(g.r.rc, 0);
    free(g.data);
    store_unref(s);
}

static void a_cut_body_is_continued_with_a_signed_condition(void)
{
    struct store *s = open_container("short", KEY);
    struct got g = read_range(s, "big", 1000, 200000);
    if (!check(is_big(&g, 1000, 200000)))
        printf("# %s\n", g.r.error.text);
    free(g.data);
    g = read_range(s, "big", -100000, 0);
    check(is_big(&g, BIG - 100000, 100000));
    free(g.data);
    store_unref(s);
}

static void an_object_that_changes_between_two_answers_is_an_error(void)
{
    struct store *s = open_container("changing", KEY);
    struct got g = read_range(s, "big", -10, 0);
    check_eq(g.r.rc, HR_ESTORE);
    check_has(g.r.error.text, "changed");
    free(g.data);
    store_unref(s);
}

struct end {
    struct got got;
    pthread_mutex_t lock;
    pthread_cond_t done;
    int calls;
};

static void *end_room(void *arg, uint64_t size)
{
    return got_room(&((struct end *)arg)->got, size);
}

static void end_done(void *arg, const struct store_result *r)
{
    struct end *x = arg;
    pthread_mutex_lock(&x->lock);
    x->got.r = *r;
    x->calls++;
    pthread_cond_signal(&x->done);
    pthread_mutex_unlock(&x->lock);
}

static void wait_end(struct end *x)
{
    pthread_mutex_lock(&x->lock);
    while (!x->calls)
        pthread_cond_wait(&x->done, &x->lock);
    pthread_mutex_unlock(&x->lock);
}

enum { ENDS = 64 };

static void start_ends(struct store *s, struct end *ends, uint64_t *tickets)
{
    for (int i = 0; i < ENDS; i++) {
        ends[i] = (struct end){.lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};
        struct store_sink sink = {end_room, &ends[i]};
        struct store_range range = {.offset = -50 - i};
        check_eq(store_start(s, i % 4 ? "big" : "empty", range, &sink, end_done, &ends[i],
                             &tickets[i], NULL),
                 0);
    }
}

static void expect_ends(struct end *ends, bool closed)
{
    for (int i = 0; i < ENDS; i++) {
        wait_end(&ends[i]);
        const struct got *g = &ends[i].got;
        uint64_t n = 50 + (uint64_t)i;
        bool canceled =
            (i % 3 == 0 && g->r.rc == HR_ECANCELED) || (closed && g->r.rc == HR_ECLOSED);
        bool right = i % 4 ? is_big(g, BIG - n, n) : g->r.rc == 0 && g->r.size == 0;
        if (!check(canceled || right))
            printf("# %d: %d %s\n", i, g->r.rc, g->r.error.text);
        check_eq(ends[i].calls, 1);
        free(g->data);
    }
}

/* Asynchronous reads of ends, some of which are canceled, and the store closed, at any moment. */
static void ends_may_be_canceled_at_any_moment(void)
{
    static struct end ends[24][ENDS];
    uint64_t tickets[ENDS];
    struct net *net = net_new(&(struct net_options){0}, NULL);
    struct store *s = open_with(net, "az://plain", KEY);
    for (int round = 0; round < 24; round++) {
        bool close_now = round >= 6;
        start_ends(s, ends[round], tickets);
        usleep((useconds_t)(round % 12 * 3000));
        for (int i = 0; i < ENDS; i += 3)
            store_cancel(s, tickets[i]);
        if (close_now)
            store_unref(s);
        expect_ends(ends[round], close_now);
        if (close_now)
            s = open_with(net, "az://plain", KEY);
    }
    store_unref(s);
    net_unref(net);
}

/* ---- keys and listings ----------------------------------------------------------------------- */

/* The service takes "." and ".." out of names, so that another object would answer. */
static bool has_dots(const char *key)
{
    return !strncmp(key, "./", 2) || strstr(key, "/./") || strstr(key, "/../");
}

static void every_byte_of_a_key_arrives_as_it_is(void)
{
    char sas[512], options[640], key[512], want[600];
    ask_mock("_sas/plain/60/rl", sas, sizeof sas);
    for (int way = 0; way < 2; way++) {
        snprintf(options, sizeof options, way ? "\"sas_token\": \"%s\"" : "%.0s" KEY, sas);
        struct store *s = open_with(NULL, "az://plain/a b=c/%41+", options);
        for (size_t i = 0; i < AWKWARD_KEYS; i++) {
            snprintf(key, sizeof key, "%s/echo", awkward_keys[i].key);
            snprintf(want, sizeof want, "a b=c/%%41+/%s", key);
            struct got g = read_range(s, key, 0, strlen(want));
            if (has_dots(key))
                check_eq(g.r.rc, HR_EINVAL);
            else if (!check_eq(g.r.rc, 0))
                printf("# %s\n", g.r.error.text);
            else
                check(!memcmp(g.data, want, strlen(want)));
            free(g.data);
        }
        store_unref(s);
    }
}

static void names_of_a_listing_are_exact_and_all_there(void)
{
    static const char *const prefixes[] = {"c&d \xc3\xa9=+", "single"};
    for (size_t i = 0; i < 2; i++) {
        struct store *s = open_with(NULL, "az://list-names/a b", KEY);
        struct hr_error e = {0};
        char *names;
        size_t size;
        static const char want[] = "a%20b\0\xef\xbf\xbe&\0sub & dir/\0last";
        if (check_eq(store_list(s, prefixes[i], &names, &size, &e), 0))
            check(size == sizeof want && !memcmp(names, want, size));
        else
            printf("# %s\n", e.text);
        mem_free(names);
        store_unref(s);
    }
}

static void listings_that_are_not_whole_are_errors(void)
{
    static const char *const cases[][2] = {{"list-cut", "ends early"},
                                           {"list-error", "InternalError"},
                                           {"list-endless", "does not say where"},
                                           {"list-html", "XML"},
                                           {"noperm", "SAS"},
                                           {"empty404", "nothing that could be listed"},
                                           {"gone", "ContainerNotFound"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct store *s = open_container(cases[i][0], KEY);
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

/* ---- secrets --------------------------------------------------------------------------------- */

static void secrets_are_in_no_message(void)
{
    static const char *const containers[] = {"gone", "noperm", "busy", "late", "html", "plain"};
    char sas[512], token[1024], options[3][1200];
    struct net *net = net_new(&(struct net_options){.log = log_line, .trace = true}, NULL);
    logged.n = 0;
    ask_mock("_sas/plain/60/rl", sas, sizeof sas);
    ask_mock("_token", token, sizeof token);
    snprintf(options[0], sizeof options[0], KEY);
    snprintf(options[1], sizeof options[1], "\"sas_token\": \"%s\"", sas);
    snprintf(options[2], sizeof options[2], "\"token\": \"%s\"", token);
    for (size_t i = 0; i < sizeof containers / sizeof *containers * 3; i++) {
        char url[64];
        snprintf(url, sizeof url, "az://%s/deep", containers[i / 3]);
        struct store *s = open_with(net, url, options[i % 3]);
        struct got g = read_all(s, "k");
        check(is_clean(g.r.error.text));
        free(g.data);
        store_unref(s);
    }
    net_unref(net);
    check(logged.n > 0);
    check(is_clean(logged.text));
}

static void tokens_do_not_go_over_plain_http(void)
{
    static const char *const options[] = {
        "{\"account_name\": \"acct\", \"endpoint\": \"http://192.0.2.1\", \"token\": \"eyJ\"}",
        "{\"account_name\": \"acct\", \"endpoint\": \"http://192.0.2.1\", \"sas_token\": "
        "\"sig=1\"}"};
    for (size_t i = 0; i < 2; i++) {
        struct store *s = NULL;
        struct store_env env = {NULL, &quick};
        check_eq(store_open_with("az://plain", options[i], &env, &s, NULL), 0);
        struct got g = read_all(s, "hello");
        check_eq(g.r.rc, HR_EINVAL);
        check_has(g.r.error.text, "allow_http");
        store_unref(s);
    }
}

int main(int argc, char **argv)
{
    clear_azure();
    if (argc < 2 || !server_start(&mock, argv[1]))
        return 77;
    RUN(requests_signed_with_the_key_are_answered);
    RUN(a_sas_goes_behind_every_request_as_it_is);
    RUN(a_sas_that_will_not_do_says_why);
    RUN(a_given_token_is_sent);
    RUN(anonymous_requests_carry_nothing);
    RUN(where_no_credential_is_found_access_is_anonymous_and_says_so);
    RUN(keys_and_sas_of_the_environment_are_used);
    RUN(a_client_proves_itself_by_its_secret);
    RUN(a_workload_proves_itself_by_its_clusters_token);
    RUN(machines_have_identities);
    RUN(what_is_given_goes_before_what_is_found);
    RUN(tokens_are_renewed_before_they_end);
    RUN(a_token_that_is_refused_is_fetched_anew_once);
    RUN(a_wrong_clock_is_corrected_once);
    RUN(throttling_and_server_faults_are_waited_out);
    RUN(refusals_say_what_to_do);
    RUN(missing_is_a_positive_answer);
    RUN(ranges_and_ends_are_exact);
    RUN(a_cut_body_is_continued_with_a_signed_condition);
    RUN(an_object_that_changes_between_two_answers_is_an_error);
    RUN(ends_may_be_canceled_at_any_moment);
    RUN(every_byte_of_a_key_arrives_as_it_is);
    RUN(names_of_a_listing_are_exact_and_all_there);
    RUN(listings_that_are_not_whole_are_errors);
    RUN(secrets_are_in_no_message);
    RUN(tokens_do_not_go_over_plain_http);
    server_stop(&mock);
    return t_done();
}
