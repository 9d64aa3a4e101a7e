/* A real web server: nginx on loopback, plain and TLS, with its own 503s. Skipped where nginx is
 * not installed. */
#include <arpa/inet.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/wire.h"

static const struct net_policy quick = QUICK;
static char dir[] = "/tmp/headrace-nginx-XXXXXX";
static int plain, busy, tls;
static pid_t pid;

static int free_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bind(fd, (struct sockaddr *)&a, sizeof a);
    getsockname(fd, (struct sockaddr *)&a, &n);
    close(fd);
    return ntohs(a.sin_port);
}

static int run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int run(const char *format, ...)
{
    char command[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    return system(command);
}

static void write_file(const char *name, const char *data, size_t n)
{
    char path[512];
    snprintf(path, sizeof path, "%s/www/%s", dir, name);
    FILE *f = fopen(path, "w");
    check(f && fwrite(data, 1, n, f) == n);
    if (f)
        fclose(f);
}

static void write_object(const char *name, size_t n, unsigned version)
{
    char *data = malloc(n + 1);
    for (size_t i = 0; i < n; i++)
        data[i] = (char)liar_byte(i, version);
    write_file(name, data, n);
    free(data);
}

static bool answers(int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool ok = connect(fd, (struct sockaddr *)&a, sizeof a) == 0;
    close(fd);
    return ok;
}

static bool start(void)
{
    char conf[128], certificates[512] = "";
    plain = free_port();
    busy = free_port();
    if (run("nginx -v 2>/dev/null") != 0 || !mkdtemp(dir) ||
        run("mkdir -p %s/www/a/b %s/tmp", dir, dir) != 0)
        return false;
    if (run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
            "-subj /CN=localhost "
            "-addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout %s/key -out %s/pem "
            "2>/dev/null",
            dir, dir) == 0) {
        tls = free_port();
        snprintf(certificates, sizeof certificates,
                 "server { listen 127.0.0.1:%d ssl; ssl_certificate %s/pem; ssl_certificate_key "
                 "%s/key; location / { } }",
                 tls, dir, dir);
    }
    snprintf(conf, sizeof conf, "%s/conf", dir);
    FILE *f = fopen(conf, "w");
    if (!f)
        return false;
    fprintf(
        f,
        "%s daemon off; worker_processes 1; pid %s/pid; error_log %s/errors warn; events { "
        "worker_connections 1024; }\n"
        "http { access_log off; root %s/www; default_type application/octet-stream; "
        "keepalive_timeout 2s;\n"
        "client_body_temp_path %s/tmp; proxy_temp_path %s/tmp; fastcgi_temp_path %s/tmp; "
        "uwsgi_temp_path %s/tmp;\n"
        "scgi_temp_path %s/tmp; limit_conn_zone $server_port zone=c:1m; limit_conn_status 503;\n"
        "server { listen 127.0.0.1:%d; location / { } }\n"
        "server { listen 127.0.0.1:%d; location / { limit_conn c 3; limit_rate 2m; } }\n%s }\n",
        getuid() == 0 ? "user root;" : "", dir, dir, dir, dir, dir, dir, dir, dir, plain, busy,
        certificates);
    fclose(f);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM); /* a test that is killed leaves no server behind */
        execlp("nginx", "nginx", "-p", dir, "-c", conf, (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < 300 && !answers(plain); i++)
        usleep(10000);
    return answers(plain);
}

static struct store *open_url(const char *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static struct store *open_url(const char *options, const char *format, ...)
{
    char url[256];
    struct store *s = NULL;
    struct hr_error e = {0};
    struct store_env env = {.policy = &quick};
    va_list args;
    va_start(args, format);
    vsnprintf(url, sizeof url, format, args);
    va_end(args);
    if (!check(store_open_with(url, options, &env, &s, &e) == 0))
        printf("# %s\n", e.text);
    return s;
}

static void expect(struct store *s, const char *key, int64_t offset, uint64_t length,
                   uint64_t first, uint64_t size)
{
    struct got g = read_range(s, key, offset, length);
    if (!check_eq(g.r.rc, 0))
        printf("# %s\n", g.r.error.text);
    check_eq(g.r.size, size);
    check(g.r.rc == 0 && liar_bytes(g.data, first, size, 1));
    free(g.data);
}

static void objects_and_ranges_are_read(void)
{
    struct store *s = open_url(NULL, "http://127.0.0.1:%d", plain);
    write_object("a/b/0.0", 300000, 1);
    write_object("empty", 0, 1);
    expect(s, "a/b/0.0", 0, 0, 0, 300000);
    expect(s, "a/b/0.0", 1000, 200000, 1000, 200000);
    expect(s, "a/b/0.0", -10, 0, 299990, 10);
    expect(s, "a/b/0.0", -400000, 0, 0, 300000);
    expect(s, "empty", 0, 0, 0, 0);
    expect(s, "empty", -16, 0, 0, 0);
    check_eq(stat_of(s, "connections"), 1);
    check_eq(stat_of(s, "requests"), 6);
    store_unref(s);
}

static void absent_objects_are_missing_and_short_ones_errors(void)
{
    struct store *s = open_url(NULL, "http://127.0.0.1:%d", plain);
    write_object("short", 100, 1);
    struct got a = read_all(s, "a/b/1.0"), b = read_range(s, "short", 50, 100),
               c = read_range(s, "short", 500, 100);
    check_eq(a.r.rc, STORE_MISSING);
    check_eq(b.r.rc, HR_EDATA);
    check_eq(c.r.rc, HR_EDATA);
    check_has(c.r.error.text, "has 100 bytes");
    store_unref(s);
}

static void awkward_names_reach_their_files(void)
{
    const char *const names[] = {"with space",
                                 "plus+plus",
                                 "percent%41literal",
                                 "percent%zz",
                                 "eq=uals",
                                 "lat:0",
                                 "star*paren()excl!apos'",
                                 "comma,semi;colon:at@dollar$amp&",
                                 "hash#quest?mark",
                                 "brackets[x]{y}",
                                 "pipe|caret^back`tick",
                                 "back\\slash",
                                 "quote\"lt<gt>",
                                 "uml-\303\274-\346\227\245",
                                 "tab\ttab",
                                 "a b+c%20d=e"};
    struct store *s = open_url(NULL, "http://127.0.0.1:%d", plain);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        write_object(names[i], 100 + i, 1);
        expect(s, names[i], 0, 0, 0, 100 + i);
    }
    store_unref(s);
}

static void an_object_that_is_replaced_is_an_error(void)
{
    struct store *s = open_url(NULL, "http://127.0.0.1:%d", plain);
    write_object("shard", 5000, 1);
    expect(s, "shard", -100, 0, 4900, 100);
    write_object("shard", 5001, 2);
    struct got g = read_range(s, "shard", 0, 100);
    check_eq(g.r.rc, HR_ESTORE);
    check_has(g.r.error.text, "changed");
    store_unref(s);
}

static void kept_connections_that_the_server_closed_do_not_show(void)
{
    struct store *s = open_url(NULL, "http://127.0.0.1:%d", plain);
    write_object("a/b/0.0", 1000, 1);
    expect(s, "a/b/0.0", 0, 0, 0, 1000);
    usleep(2200000); /* keepalive_timeout 2s */
    expect(s, "a/b/0.0", 0, 0, 0, 1000);
    check_eq(stat_of(s, "requests") - stat_of(s, "stale"), 2);
    store_unref(s);
}

struct reader {
    struct store *s;
    int wrong;
};

static void *read_busy(void *arg)
{
    struct reader *r = arg;
    for (int i = 0; i < 3; i++) {
        struct got g = read_all(r->s, "a/b/0.0");
        r->wrong += g.r.rc != 0 || !liar_bytes(g.data, 0, 40000, 1);
        free(g.data);
    }
    return NULL;
}

static void a_server_that_refuses_more_connections_gets_fewer(void)
{
    struct net_policy p = quick;
    struct store_env env = {.policy = &p};
    struct store *s = NULL;
    struct reader readers[12];
    pthread_t threads[12];
    char url[64];
    p.max_retries = 200;
    write_object("a/b/0.0", 40000, 1); /* 20 ms each at the server's rate */
    snprintf(url, sizeof url, "http://127.0.0.1:%d", busy);
    check_eq(store_open_with(url, NULL, &env, &s, NULL), 0);
    for (int i = 0; i < 12; i++) {
        readers[i] = (struct reader){s, 0};
        thread_start(&threads[i], "reader", read_busy, &readers[i]);
    }
    for (int i = 0; i < 12; i++) {
        pthread_join(threads[i], NULL);
        check_eq(readers[i].wrong, 0);
    }
    check(stat_of(s, "throttles") > 0);
    check(stat_of(s, "limit") < 16);
    store_unref(s);
}

static void tls_needs_a_certificate_that_is_trusted(void)
{
    char options[128];
    if (!tls)
        SKIP("no openssl program to make a certificate");
    write_object("a/b/0.0", 300000, 1);
    snprintf(options, sizeof options, "{\"ca_file\": \"%s/pem\"}", dir);
    struct store *s = open_url(options, "https://127.0.0.1:%d", tls),
                 *t = open_url(NULL, "https://127.0.0.1:%d", tls);
    expect(s, "a/b/0.0", 0, 0, 0, 300000);
    expect(s, "a/b/0.0", 100, 200000, 100, 200000);
    check_eq(stat_of(s, "connections"), 1);
    struct got g = read_all(t, "a/b/0.0");
    check_eq(g.r.rc, HR_ESTORE);
    check_has(g.r.error.text, "ca_file");
    check_eq(stat_of(t, "requests"), 1); /* no reason to try again */
    store_unref(s);
    store_unref(t);
}

static struct server proxy;

static struct got read_through(const char *host, const char *more)
{
    char options[512];
    snprintf(options, sizeof options,
             "{\"proxy\": \"http://127.0.0.1:%d\", \"ca_file\": \"%s/pem\"%s}", proxy.port, dir,
             more);
    struct store *s = open_url(options, "https://%s:%d", host, tls);
    struct got g = read_all(s, "a/b/0.0");
    if (g.r.rc == 0)
        check_eq(stat_of(s, "addresses"), 0); /* the proxy looks names up */
    else
        printf("# %s\n", g.r.error.text);
    store_unref(s);
    return g;
}

static void proxies_carry_tls_and_their_refusals_are_clear(void)
{
    if (!tls || !proxy.port)
        SKIP("no openssl program, or no proxy");
    write_object("a/b/0.0", 300000, 1);
    struct got g = read_through("localhost", "");
    check(g.r.rc == 0 && liar_bytes(g.data, 0, 300000, 1));
    free(g.data);
    g = read_through("refuse.test", "");
    check_eq(g.r.rc, HR_ESTORE);
    check_has(g.r.error.text, "407");
    g = read_through("broken.test", ", \"max_retries\": 1");
    check_eq(g.r.rc, HR_ESTORE);
    check_has(g.r.error.text, "through the proxy");
    g = read_through("other.test", ""); /* reaches nginx, whose certificate is for localhost */
    check_eq(g.r.rc, HR_ESTORE);
    check_has(g.r.error.text, "other.test");
    check_has(g.r.error.text, "ca_file");
}

static void tls_where_there_is_none_is_one_clear_error(void)
{
    struct store *s = open_url(NULL, "https://127.0.0.1:%d", plain);
    struct got g = read_all(s, "a/b/0.0");
    printf("# %s\n", g.r.error.text);
    check_eq(g.r.rc, HR_ESTORE);
    check_has(g.r.error.text, "https");
    store_unref(s);
}

static void large_objects_come_in_parts(void)
{
    struct net_policy p = QUICK;
    struct store_env env = {.policy = &p};
    struct store *s = NULL;
    char url[64];
    p.split_bytes = 1 << 20;
    write_object("large", 20000001, 1);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", plain);
    check_eq(store_open_with(url, NULL, &env, &s, NULL), 0);
    expect(s, "large", 0, 0, 0, 20000001);
    expect(s, "large", 77, 9000000, 77, 9000000);
    check_eq(stat_of(s, "parts"), 20 + 9);
    store_unref(s);
}

int main(int argc, char **argv)
{
    if (argc > 2)
        server_start(&proxy, argv[2]);
    if (!start()) {
        printf("1..0 # SKIP nginx is not installed or does not start\n");
        return 77;
    }
    RUN(objects_and_ranges_are_read);
    RUN(absent_objects_are_missing_and_short_ones_errors);
    RUN(awkward_names_reach_their_files);
    RUN(an_object_that_is_replaced_is_an_error);
    RUN(kept_connections_that_the_server_closed_do_not_show);
    RUN(a_server_that_refuses_more_connections_gets_fewer);
    RUN(tls_needs_a_certificate_that_is_trusted);
    RUN(proxies_carry_tls_and_their_refusals_are_clear);
    RUN(tls_where_there_is_none_is_one_clear_error);
    RUN(large_objects_come_in_parts);
    if (proxy.port)
        server_stop(&proxy);
    kill(pid, SIGTERM);
    waitpid(pid, NULL, 0);
    run("rm -rf %s", dir);
    return t_done();
}
