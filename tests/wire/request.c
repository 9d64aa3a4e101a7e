/* What goes out on the wire, and what must never come out elsewhere: keys, queries and headers
 * as given, byte for byte; proxies; secrets in no error, log line or URL for people. */
#include <stdarg.h>

#include "wire/keys.h"
#include "wire/wire.h"

static struct server liar;
static const struct net_policy quick = QUICK;

static struct store *open_url(struct net *net, const char *options, const char *format, ...)
{
    char url[512];
    struct store *s = NULL;
    struct hr_error e = {0};
    struct store_env env = {.net = net, .policy = &quick};
    va_list args;
    va_start(args, format);
    vsnprintf(url, sizeof url, format, args);
    va_end(args);
    if (!check(store_open_with(url, options, &env, &s, &e) == 0))
        printf("# %s\n", e.text);
    return s;
}

/* The head of the request for `key`, as the server saw it; free it. */
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

static void keys_are_strictly_encoded_and_never_normalised(void)
{
    struct store *s = open_url(NULL, NULL, "http://127.0.0.1:%d/echo", liar.port);
    for (size_t i = 0; i < AWKWARD_KEYS; i++) {
        const char *key = awkward_keys[i].key;
        char line[512];
        if (!strncmp(key, "./", 2) || strstr(key, "/./") || strstr(key, "/../"))
            continue; /* refused: see below */
        snprintf(line, sizeof line, "GET /echo/%s HTTP/1.1\r\n", awkward_keys[i].encoded);
        char *head = head_of(s, key);
        check(!strncmp(head, line, strlen(line)));
        free(head);
    }
    store_unref(s);
}

static void dot_segments_are_refused(void)
{
    struct store *s = open_url(NULL, NULL, "http://127.0.0.1:%d/echo", liar.port);
    const char *const keys[] = {"../x", "a/../b", "./a", "a/.", "..", "a/./b", ""};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct got g = read_all(s, keys[i]);
        check_eq(g.r.rc, HR_EINVAL);
    }
    store_unref(s);
}

static void the_query_of_the_base_follows_every_key(void)
{
    const char *query = "?sv=2022&se=2030-01-01T00%3A00%3A00Z&sig=a%2Fb+c%3d==&x";
    char line[256];
    struct store *s =
        open_url(NULL, NULL, "http://127.0.0.1:%d/echo/base%%20dir/%s#part", liar.port, query);
    snprintf(line, sizeof line, "GET /echo/base%%20dir/c/0/0%s HTTP/1.1\r\n", query);
    char *head = head_of(s, "c/0/0");
    check(!strncmp(head, line, strlen(line)));
    check(!strstr(store_url(s), "sig"));
    free(head);
    store_unref(s);
}

static void headers_are_sent_as_given(void)
{
    struct store *s =
        open_url(NULL, "{\"headers\": {\"Authorization\": \"Bearer SECRET\", \"X-Two\": \"b c\"}}",
                 "http://127.0.0.1:%d/echo", liar.port);
    char *head = head_of(s, "k");
    check_has(head, "\r\nAuthorization: Bearer SECRET");
    check_has(head, "\r\nX-Two: b c");
    check_has(head, "\r\nAccept-Encoding: identity");
    check_has(head, "\r\nUser-Agent: headrace");
    check(!strstr(head, "Range:"));
    free(head);
    store_unref(s);
}

static void a_user_part_becomes_basic_authorization(void)
{
    struct store *s = open_url(NULL, NULL, "http://user:pa%%20ss@127.0.0.1:%d/echo", liar.port);
    char *head = head_of(s, "k");
    check_has(head, "\r\nAuthorization: Basic dXNlcjpwYSBzcw=="); /* user:pa ss */
    check(!strstr(store_url(s), "user"));
    free(head);
    store_unref(s);
}

static void proxies_come_from_the_option_or_the_environment(void)
{
    char options[128], proxy[64];
    snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", liar.port);
    snprintf(options, sizeof options, "{\"proxy\": \"%s\"}", proxy);
    setenv("http_proxy", proxy, 1);
    setenv("no_proxy", "127.0.0.1", 1);
    struct store *excepted = open_url(NULL, NULL, "http://127.0.0.1:%d/echo", liar.port);
    setenv("no_proxy", "elsewhere", 1);
    struct store *by_env = open_url(NULL, NULL, "http://data.invalid/echo");
    unsetenv("http_proxy");
    setenv("HTTP_PROXY", proxy, 1);
    struct store *by_capitals = open_url(NULL, NULL, "http://data.invalid/echo");
    setenv("REQUEST_METHOD", "GET", 1); /* a CGI program: whoever asked it may have set that */
    struct store *of_cgi = open_url(NULL, NULL, "http://127.0.0.1:%d/echo", liar.port);
    unsetenv("REQUEST_METHOD");
    unsetenv("HTTP_PROXY");
    unsetenv("no_proxy");
    struct store *by_option = open_url(NULL, options, "http://data.invalid/echo");
    char *a = head_of(excepted, "k"), *b = head_of(by_env, "k"), *c = head_of(by_option, "k");
    check(!strncmp(a, "GET /echo/k ", 12));
    check(!strncmp(b, "GET http://data.invalid/echo/k ", 31));
    check(!strncmp(c, "GET http://data.invalid/echo/k ", 31));
    free(a), free(b), free(c);
    a = head_of(by_capitals, "k"), b = head_of(of_cgi, "k");
    check(!strncmp(a, "GET http://data.invalid/echo/k ", 31));
    check(!strncmp(b, "GET /echo/k ", 12));
    free(a), free(b);
    store_unref(by_capitals), store_unref(of_cgi);
    store_unref(excepted), store_unref(by_env), store_unref(by_option);
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
    logged.n += (size_t)snprintf(logged.text + logged.n, sizeof logged.text - logged.n, "%d %s\n",
                                 level, text);
    pthread_mutex_unlock(&logged.lock);
}

static void secrets_are_in_no_message(void)
{
    struct net *net = net_new(&(struct net_options){.log = log_line}, NULL);
    const char *const how[] = {"status,code=403",
                               "status,code=503",
                               "truncate,at=0",
                               "shift",
                               "status,code=302,location=1",
                               "gzip",
                               "junk",
                               "reset,at=-1",
                               "ignore"};
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        struct store *s =
            open_url(net, "{\"headers\": {\"X-Token\": \"SECRET-3\"}}",
                     "http://me:SECRET-1@127.0.0.1:%d/%s?sig=SECRET-2", liar.port, how[i]);
        struct got g = read_range(s, "k", 1, 5);
        struct buf stats;
        buf_init(&stats);
        store_stats_json(s, &stats);
        check(!strstr(g.r.error.text, "SECRET") && !strstr(store_url(s), "SECRET") &&
              !strstr(stats.data, "SECRET"));
        check(strcmp(how[i], "ignore") == 0 || strstr(g.r.error.text, "127.0.0.1"));
        buf_dispose(&stats);
        free(g.data);
        store_unref(s);
    }
    net_unref(net);
    check_has(logged.text, "10 http://127.0.0.1"); /* each retry is a debug line … */
    check_has(logged.text, "next try in");
    check_has(logged.text, "30 http://127.0.0.1"); /* … and a server without ranges a warning */
    check(!strstr(logged.text, "SECRET"));
}

static void bad_urls_are_refused_without_repeating_secrets(void)
{
    const char *const urls[] = {"http://",
                                "http:///x",
                                "http://a b/x",
                                "http://h:0/x",
                                "http://h:99999/x",
                                "http://h:x/",
                                "http://[::1/x",
                                "http://h/x?sig=SECRET\n",
                                "http://me\r\n:SECRET@h/x",
                                "https://?SECRET"};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        struct store *s = NULL;
        struct hr_error e = {0};
        check_eq(store_open(urls[i], NULL, &s, &e), HR_EINVAL);
        check(!strstr(e.text, "SECRET") && e.text[0]);
        check(s == NULL);
    }
}

int main(int argc, char **argv)
{
    const char *const clean[] = {"http_proxy", "HTTP_PROXY", "all_proxy",
                                 "ALL_PROXY",  "no_proxy",   "NO_PROXY"};
    for (size_t i = 0; i < sizeof clean / sizeof *clean; i++)
        unsetenv(clean[i]);
    if (argc < 2 || !server_start(&liar, argv[1]))
        return 77;
    RUN(keys_are_strictly_encoded_and_never_normalised);
    RUN(dot_segments_are_refused);
    RUN(the_query_of_the_base_follows_every_key);
    RUN(headers_are_sent_as_given);
    RUN(a_user_part_becomes_basic_authorization);
    RUN(proxies_come_from_the_option_or_the_environment);
    RUN(secrets_are_in_no_message);
    RUN(bad_urls_are_refused_without_repeating_secrets);
    server_stop(&liar);
    return t_done();
}
