/* Who asks an Azure store: keys, SAS, tokens, identities, nobody. The service checks each as the
 * real one does (azure_server.py). */
#include <time.h>

#include "base/mem.h"
#include "wire/azure.h"

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
    expect_hello("plain", "", 2); /* once anonymous access is refused */
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

/* Nobody has said that there is an identity: its service is asked when a request was refused
 * without, and by one store for all. */
static void a_metadata_service_is_asked_on_refusal_and_once(void)
{
    static const char *const hidden[] = {"plain", "shut", "closed"};
    struct store_shared *shared = shared_new(NULL);
    setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", at(""), 1);
    unsigned long before = tokens(), first = requests_of("shut");
    for (int i = 0; i < 3; i++) {
        struct store *s = open_as_one(shared, "public", "");
        expect_read(s, "hello", "hello from public");
        store_unref(s);
    }
    check_eq(tokens() - before, 0);
    for (int i = 0; i < 9; i++) {
        struct store *s = open_as_one(shared, hidden[i % 3], "");
        char want[64];
        snprintf(want, sizeof want, "hello from %s", hidden[i % 3]);
        expect_read(s, "hello", want);
        store_unref(s);
    }
    check_eq(tokens() - before, 1);
    check_eq(requests_of("shut") - first, 4); /* refused once, for all of them */
    struct store *s = open_as_one(shared, "public", "\"anon\": false"); /* asked for at once */
    check_eq(read_all(s, "hello").r.rc, HR_ESTORE); /* it refuses who is somebody */
    store_unref(s);
    check_eq(tokens() - before, 1);
    clear_azure();
    shared_unref(shared);
}

/* Where no service answers, that costs a wait once, and only for what is not public. */
static void a_machine_without_identity_waits_once(void)
{
    struct store_shared *shared = shared_new(NULL);
    setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", at("/_silence"), 1);
    uint64_t from = clock_ns();
    struct store *s = open_as_one(shared, "public", "");
    expect_read(s, "hello", "hello from public");
    store_unref(s);
    uint64_t quick_ms = (clock_ns() - from) / 1000000;
    for (int i = 0; i < 20; i++) {
        s = open_as_one(shared, "plain", "");
        struct got g = read_all(s, "k");
        check_eq(g.r.rc, HR_ESTORE);
        check_has(g.r.error.text, "no answer");
        store_unref(s);
    }
    uint64_t all_ms = (clock_ns() - from) / 1000000;
    printf("# public: %d ms; twenty others: %d ms\n", (int)quick_ms, (int)all_ms);
    check(all_ms >= 1900 && all_ms < 20000); /* one silence is twice a second, twenty are 40 s */
    clear_azure();
    shared_unref(shared);
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
    if (!azure_begin(argc, argv))
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
    RUN(a_metadata_service_is_asked_on_refusal_and_once);
    RUN(a_machine_without_identity_waits_once);
    RUN(what_is_given_goes_before_what_is_found);
    RUN(tokens_are_renewed_before_they_end);
    RUN(a_token_that_is_refused_is_fetched_anew_once);
    RUN(secrets_are_in_no_message);
    RUN(tokens_do_not_go_over_plain_http);
    server_stop(&mock);
    return t_done();
}
