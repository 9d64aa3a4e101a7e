/* What the Azure tests share: a service of their own (azure_server.py) and reads from it. */
#ifndef TESTS_WIRE_AZURE_H
#define TESTS_WIRE_AZURE_H
#include "store/shared.h"
#include "wire/patience.h"
#include "wire/wire.h"

static struct server mock;
static const struct net_policy quick __attribute__((unused)) = UNHURRIED;

/* Bytes 0 to 63, and 64 to 127. */
#define SECRET                                                                                     \
    "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw=="
#define OTHER                                                                                      \
    "QEFCQ0RFRkdISUpLTE1OT1BRUlNUVVZXWFlaW1xdXl9gYWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+fw=="
#define KEY        "\"account_key\": \"" SECRET "\""
#define TENANT     "72f988bf-86f1-41af-91ab-2d7cd011db47"
#define BIG        300000
#define NO_SECRETS "AAECAwQF", "QEFCQ0RF", "s3cret", "eyJ", "sig=", "SharedKey ", "Bearer "

static inline bool is_clean(const char *text)
{
    static const char *const secrets[] = {NO_SECRETS};
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++)
        if (strstr(text, secrets[i]))
            return false;
    return true;
}

static inline struct store *open_for(const struct store_env *env, const char *url,
                                     const char *options)
{
    char text[4096];
    struct store *s = NULL;
    struct hr_error e = {0};
    snprintf(text, sizeof text,
             "{\"account_name\": \"acct\", \"endpoint\": \"http://127.0.0.1:%d/acct\"%s%s}",
             mock.port, *options ? ", " : "", options);
    if (!check(store_open_with(url, text, env, &s, &e) == 0))
        printf("# %s\n", e.text);
    return s;
}

static inline struct store *open_with(struct net *net, const char *url, const char *options)
{
    return open_for(&(struct store_env){net, &quick}, url, options);
}

static inline struct store *open_as_one(struct store_shared *shared, const char *container,
                                        const char *options)
{
    char url[128];
    snprintf(url, sizeof url, "az://%s", container);
    return open_for(&(struct store_env){NULL, &quick, shared}, url, options);
}

static inline struct store *open_container(const char *container, const char *options)
{
    char url[128];
    snprintf(url, sizeof url, "az://%s", container);
    return open_with(NULL, url, options);
}

/* What the mock says at a path of its own. */
static inline void ask_mock(const char *path, char *out, size_t room)
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

static inline unsigned long requests_of(const char *container)
{
    char path[128], text[32];
    snprintf(path, sizeof path, "_count/%s", container);
    ask_mock(path, text, sizeof text);
    return strtoul(text, NULL, 10);
}

static inline unsigned long tokens(void)
{
    char text[32];
    ask_mock("_tokens", text, sizeof text);
    return strtoul(text, NULL, 10);
}

static inline void expect_read(struct store *s, const char *key, const char *want)
{
    struct got g = read_all(s, key);
    if (!check_eq(g.r.rc, 0))
        printf("# %s\n", g.r.error.text);
    else
        check(g.r.size == strlen(want) && !memcmp(g.data, want, g.r.size));
    free(g.data);
}

/* Reading "hello" of the container gives its text, in so many requests. */
static inline void expect_hello(const char *container, const char *options, unsigned long requests)
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

static inline void expect_error(const char *container, const char *options, const char *key,
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

static inline void clear_azure(void)
{
    static const char *const names[] = {
        "http_proxy",
        "HTTP_PROXY",
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

static inline const char *at(const char *path)
{
    static char urls[4][128];
    static unsigned turn;
    char *url = urls[turn++ % 4];
    snprintf(url, sizeof urls[0], "http://127.0.0.1:%d%s", mock.port, path);
    return url;
}

/* Runs a program's tests: argv has the service's script. */
static inline bool azure_begin(int argc, char **argv)
{
    clear_azure();
    return argc > 1 && server_start(&mock, argv[1]);
}

#endif
