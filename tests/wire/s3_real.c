/* Real S3 servers: Ceph's gateway and moto, filled by botocore (s3_server.py). Which of the two is
 * the second argument; skipped, with the reason, where it cannot run. */
#include <stdarg.h>

#include "base/mem.h"
#include "wire/keys.h"
#include "wire/wire.h"

/* Waits that a busy machine does not reach. */
static const struct net_policy patient = {.connect_ms = 5000,
                                          .first_byte_ms = 20000,
                                          .stall_ms = 20000,
                                          .max_retries = 4,
                                          .retry_total_ms = 30000,
                                          .backoff_ms = 2,
                                          .backoff_max_ms = 50,
                                          .retry_after_max_ms = 1000,
                                          .concurrency = 64,
                                          .concurrency_max = 256};

static struct {
    pid_t pid;
    FILE *to, *from;
    int port, tls_port;
    char certificate[128], id[64], secret[128];
} server;
static bool ceph;

/* ---- the server ------------------------------------------------------------------------------ */

static bool start(const char *script, const char *kind)
{
    int in[2], out[2];
    char line[512] = "";
    if (pipe(in) < 0 || pipe(out) < 0)
        return false;
    signal(SIGPIPE, SIG_IGN);
    server.pid = fork();
    if (server.pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        for (int i = 3; i < 64; i++)
            close(i);
        execlp("python3", "python3", script, kind, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    server.to = fdopen(in[1], "w");
    server.from = fdopen(out[0], "r");
    if (!fgets(line, sizeof line, server.from) || !strncmp(line, "skip", 4)) {
        printf("1..0 # SKIP %s", *line ? line + 5 : "the server does not start\n");
        return false;
    }
    return sscanf(line, "%d %d %127s %63s %127s", &server.port, &server.tls_port,
                  server.certificate, server.id, server.secret) == 5;
}

/* A command of s3_server.py; its answer, without the line's end. */
static const char *command(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *command(const char *format, ...)
{
    static char line[4096];
    va_list args;
    va_start(args, format);
    vfprintf(server.to, format, args);
    va_end(args);
    fputc('\n', server.to);
    fflush(server.to);
    if (!fgets(line, sizeof line, server.from))
        line[0] = 0;
    line[strcspn(line, "\n")] = 0;
    return line;
}

static const char *hex(const char *text)
{
    static char out[4][1024];
    static int turn;
    char *p = out[turn = (turn + 1) % 4];
    *p = 0;
    for (size_t i = 0; text[i]; i++)
        sprintf(p + 2 * i, "%02x", (unsigned char)text[i]);
    return p;
}

static void put(const char *bucket, const char *key, const char *body)
{
    check_str(command("put %s %s %s", bucket, hex(key), hex(body)), "ok");
}

static struct store *open_as(const char *url, const char *id, const char *secret, const char *more)
{
    char options[2048];
    struct store *s = NULL;
    struct hr_error e = {0};
    struct store_env env = {NULL, &patient};
    snprintf(options, sizeof options,
             "{\"endpoint_url\": \"http://127.0.0.1:%d\", \"key\": \"%s\", \"secret\": \"%s\"%s%s}",
             server.port, id, secret, *more ? ", " : "", more);
    if (!check(store_open_with(url, options, &env, &s, &e) == 0))
        printf("# %s\n", e.text);
    return s;
}

static struct store *open_url(const char *url)
{
    return open_as(url, server.id, server.secret, "");
}

static void expect(struct store *s, const char *key, const char *want)
{
    struct got g = read_all(s, key);
    if (!check_eq(g.r.rc, 0))
        printf("# \"%s\": %s\n", key, g.r.error.text);
    else
        check(g.r.size == strlen(want) && !memcmp(g.data, want, g.r.size));
    free(g.data);
}

static void expect_error(struct store *s, const char *key, const char *part)
{
    struct got g = read_all(s, key);
    check_eq(g.r.rc, HR_ESTORE);
    check_has(g.r.error.text, part);
    check_has(g.r.error.text, store_url(s));
    free(g.data);
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* moto's web framework squeezes slashes and resolves dots before it looks. */
static bool moto_knows(const char *key)
{
    return key[0] != '/' && key[0] != '.' && !strstr(key, "//") && !strstr(key, "/./") &&
           !strstr(key, "/../");
}

static void every_awkward_key_is_read_exactly(void)
{
    struct store *whole = open_url("s3://bkt"), *below = open_url("s3://bkt/deep = er/");
    for (size_t i = 0; i < AWKWARD_KEYS; i++) {
        const char *key = awkward_keys[i].key;
        char deeper[256];
        if (!ceph && !moto_knows(key))
            continue;
        snprintf(deeper, sizeof deeper, "deep = er/%s", key);
        put("bkt", key, key);
        put("bkt", deeper, deeper);
        expect(whole, key, key);
        expect(below, key, deeper);
    }
    store_unref(whole);
    store_unref(below);
}

static void every_byte_in_a_key_is_read_exactly(void)
{
    struct store *s = open_url("s3://bkt/bytes");
    for (unsigned c = 1; c < 128; c++) {
        char key[32], full[64];
        if (!ceph && (c < ' ' || c == '/' || c == '.' || c == 127))
            continue;
        snprintf(key, sizeof key, "x%cy", (int)c);
        snprintf(full, sizeof full, "bytes/%s", key);
        put("bkt", full, key);
        expect(s, key, key);
    }
    store_unref(s);
}

static void ranges_are_exact(void)
{
    put("bkt", "digits", "0123456789");
    struct store *s = open_url("s3://bkt");
    static const struct {
        int64_t offset;
        uint64_t length;
        const char *want;
    } cases[] = {{0, 3, "012"}, {4, 6, "456789"}, {-3, 0, "789"}, {-50, 0, "0123456789"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct got g = read_range(s, "digits", cases[i].offset, cases[i].length);
        if (check_eq(g.r.rc, 0))
            check(g.r.size == strlen(cases[i].want) && !memcmp(g.data, cases[i].want, g.r.size));
        else
            printf("# %s\n", g.r.error.text);
        check_eq(g.r.object_size, 10);
        free(g.data);
    }
    check_eq(read_range(s, "digits", 8, 5).r.rc, HR_EDATA);
    check_eq(read_range(s, "digits", 20, 5).r.rc, HR_EDATA);
    store_unref(s);
}

static void missing_and_forbidden_differ(void)
{
    struct store *s = open_url("s3://bkt");
    check_eq(read_all(s, "not/there").r.rc, STORE_MISSING);
    store_unref(s);
    s = open_url("s3://no-such-bucket");
    expect_error(s, "k", "404 NoSuchBucket");
    store_unref(s);
    if (!ceph)
        return;
    put("reader", "here", "seen");
    s = open_as("s3://reader", "READER", "readersecret", "");
    expect(s, "here", "seen");
    expect_error(s, "not/there", "403 AccessDenied; the keys are wrong here, or lack s3:GetObject");
    store_unref(s);
    s = open_as("s3://reader", "READER", "readersecret", "\"missing_403\": true");
    expect(s, "here", "seen");
    check_eq(read_all(s, "not/there").r.rc, STORE_MISSING);
    store_unref(s);
}

static void wrong_keys_are_named(void)
{
    struct store *s = open_as("s3://bkt", server.id, "wrong", "");
    /* Ceph does not tell, where it could also have been a token of STS. */
    expect_error(s, "digits",
                 ceph ? "403 AccessDenied; the keys are wrong here"
                      : "403 SignatureDoesNotMatch; the secret key");
    store_unref(s);
    s = open_as("s3://bkt", "NOBODY00000000000000", "wrong", "");
    expect_error(s, "digits",
                 ceph ? "403 AccessDenied; the keys are wrong here" : "403 InvalidAccessKeyId");
    store_unref(s);
}

static void anonymous_access_to_what_is_public(void)
{
    char options[256];
    struct store *s = NULL;
    put("open", "k", "for all");
    snprintf(options, sizeof options,
             "{\"endpoint\": \"http://127.0.0.1:%d\", \"skip_signature\": true}", server.port);
    check_eq(store_open("s3://open", options, &s, NULL), 0);
    expect(s, "k", "for all");
    store_unref(s);
    check_eq(store_open("s3://bkt", options, &s, NULL), 0);
    expect_error(s, "digits", "403 AccessDenied; requests are anonymous");
    store_unref(s);
}

static void the_requester_pays_only_when_asked(void)
{
    put("payer", "k", "paid");
    struct store *s = open_as("s3://payer", "READER", "readersecret", "");
    expect_error(s, "k", "403 AccessDenied");
    store_unref(s);
    s = open_as("s3://payer", "READER", "readersecret", "\"requester_pays\": true");
    expect(s, "k", "paid");
    store_unref(s);
}

static void dots_virtual_hosts_and_tls(void)
{
    char options[512];
    struct store *s = open_url("s3://dotted.bkt");
    put("dotted.bkt", "k", "dotted");
    put("bkt", "k", "plain");
    expect(s, "k", "dotted");
    store_unref(s);
    if (!ceph)
        return;
    snprintf(options, sizeof options,
             "{\"endpoint_url\": \"http://localhost:%d\", \"key\": \"%s\", \"secret\": \"%s\", "
             "\"addressing_style\": \"virtual\"}",
             server.port, server.id, server.secret);
    check_eq(store_open("s3://bkt", options, &s, NULL), 0);
    expect(s, "k", "plain");
    store_unref(s);
    snprintf(options, sizeof options,
             "{\"endpoint_url\": \"https://localhost:%d\", \"key\": \"%s\", \"secret\": \"%s\", "
             "\"ca_file\": \"%s\"}",
             server.tls_port, server.id, server.secret, server.certificate);
    check_eq(store_open("s3://bkt", options, &s, NULL), 0);
    expect(s, "k", "plain");
    store_unref(s);
}

static size_t names_in(struct store *s, const char *prefix, char **names)
{
    size_t size = 0, n = 0;
    struct hr_error e = {0};
    if (!check_eq(store_list(s, prefix, names, &size, &e), 0)) {
        printf("# %s\n", e.text);
        return 0;
    }
    for (size_t i = 0; i < size; i++)
        n += (*names)[i] == 0;
    return n;
}

static bool has_name(const char *names, size_t n, const char *want)
{
    for (; n; n--, names += strlen(names) + 1)
        if (!strcmp(names, want))
            return true;
    return false;
}

static void listings_are_complete_over_pages(void)
{
    char *names;
    check_str(command("fill bkt %s 1100", hex("many/a b/")), "ok");
    put("bkt", "many/a b/sub+dir/k", "x");
    struct store *s = open_url("s3://bkt/many");
    size_t n = names_in(s, "a b", &names);
    check_eq(n, 1101);
    if (n == 1101) {
        check_str(names, "00000");
        check(has_name(names, n, "01099") && has_name(names, n, "sub+dir/"));
    }
    mem_free(names);
    check_eq(names_in(s, "", &names), 1);
    check_str(names, "a b/");
    mem_free(names);
    check_eq(names_in(s, "nothing/here", &names), 0);
    mem_free(names);
    store_unref(s);
}

static void awkward_names_are_listed_exactly(void)
{
    char *names;
    for (size_t i = 0; i < AWKWARD_KEYS; i++) {
        char key[256];
        if (strchr(awkward_keys[i].key, '/'))
            continue;
        snprintf(key, sizeof key, "awkward/%s", awkward_keys[i].key);
        put("bkt", key, "x");
    }
    struct store *s = open_url("s3://bkt");
    size_t n = names_in(s, "awkward", &names);
    for (size_t i = 0; i < AWKWARD_KEYS; i++)
        if (!strchr(awkward_keys[i].key, '/') && !check(has_name(names, n, awkward_keys[i].key)))
            printf("# %s\n", awkward_keys[i].key);
    mem_free(names);
    store_unref(s);
}

static void refused_listings_say_so(void)
{
    struct store *s = open_as("s3://reader", "READER", "readersecret", "");
    char *names;
    size_t size;
    struct hr_error e = {0};
    check_eq(store_list(s, "", &names, &size, &e), HR_ESTORE);
    check_has(e.text, "s3:ListBucket");
    store_unref(s);
}

/* A URL that somebody else has signed is used as it is, by the http store. */
static void presigned_urls_are_sent_byte_for_byte(void)
{
    static const char *const keys[] = {"digits", "eq=uals"};
    put("bkt", "eq=uals", "0123456789");
    for (size_t i = 0; i < 2; i++) {
        char url[2048], *slash, *query;
        struct store *s = NULL;
        snprintf(url, sizeof url, "%s", command("presign bkt %s", hex(keys[i])));
        query = strchr(url, '?');
        slash = query ? memrchr(url, '/', (size_t)(query - url)) : NULL;
        if (!check(query && slash))
            return;
        memmove(slash, query, strlen(query) + 1); /* the key is asked for by itself */
        check_eq(store_open(url, NULL, &s, NULL), 0);
        struct got g = read_range(s, keys[i], 2, 3);
        if (check_eq(g.r.rc, 0))
            check(!memcmp(g.data, "234", 3));
        else
            printf("# %s\n", g.r.error.text);
        free(g.data);
        store_unref(s);
    }
}

static void session_tokens_are_sent(void)
{
    char answer[4096], *id, *secret, *token, more[4096];
    snprintf(answer, sizeof answer, "%s", command("token 900"));
    id = strtok(answer, " "), secret = strtok(NULL, " "), token = strtok(NULL, " ");
    if (!check(token))
        return;
    snprintf(more, sizeof more, "\"token\": \"%s\"", token);
    struct store *s = open_as("s3://bkt", id, secret, more);
    expect(s, "digits", "0123456789");
    store_unref(s);
    more[strlen(more) - 8] ^= 1; /* not what was given out */
    s = open_as("s3://bkt", id, secret, more);
    struct got g = read_all(s, "digits");
    check_eq(g.r.rc, HR_ESTORE);
    check(!strstr(g.r.error.text, secret));
    store_unref(s);
}

struct counter {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int done, right;
};
struct one {
    struct counter *c;
    char place[16];
};

static void *one_room(void *arg, uint64_t size)
{
    return size <= 16 ? ((struct one *)arg)->place : NULL;
}

static void one_done(void *arg, const struct store_result *r)
{
    struct one *o = arg;
    pthread_mutex_lock(&o->c->lock);
    o->c->done++;
    o->c->right += r->rc == 0 && r->size == 10 && !memcmp(o->place, "0123456789", 10);
    pthread_cond_signal(&o->c->changed);
    pthread_mutex_unlock(&o->c->lock);
}

static void throttled_to_four_requests_all_still_come(void)
{
    enum { N = 200 };
    static struct one ones[N];
    struct counter c = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
    struct store *s =
        open_as("s3://bkt", server.id, server.secret, "\"max_retries\": 100, \"retry_total\": 30");
    check_str(command("throttle 4"), "ok");
    for (int i = 0; i < N; i++) {
        uint64_t ticket;
        ones[i].c = &c;
        struct store_sink sink = {one_room, &ones[i]};
        check_eq(store_start(s, "digits", (struct store_range){0}, &sink, one_done, &ones[i],
                             &ticket, NULL),
                 0);
    }
    pthread_mutex_lock(&c.lock);
    while (c.done < N)
        pthread_cond_wait(&c.changed, &c.lock);
    pthread_mutex_unlock(&c.lock);
    check_eq(c.right, N);
    check(stat_of(s, "throttles") > 0);
    check_str(command("throttle 1024"), "ok");
    store_unref(s);
}

int main(int argc, char **argv)
{
    static const char *const clean[] = {"http_proxy",          "https_proxy", "all_proxy",
                                        "ALL_PROXY",           "AWS_PROFILE", "AWS_ENDPOINT_URL",
                                        "AWS_ENDPOINT_URL_S3", "AWS_REGION",  "AWS_CA_BUNDLE"};
    for (size_t i = 0; i < sizeof clean / sizeof *clean; i++)
        unsetenv(clean[i]);
    setenv("AWS_CONFIG_FILE", "/nonexistent", 1);
    setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent", 1);
    if (argc < 3 || !start(argv[1], argv[2]))
        return 0;
    ceph = !strcmp(argv[2], "rgw");
    RUN(every_awkward_key_is_read_exactly);
    RUN(every_byte_in_a_key_is_read_exactly);
    RUN(ranges_are_exact);
    RUN(missing_and_forbidden_differ);
    RUN(wrong_keys_are_named);
    RUN(dots_virtual_hosts_and_tls);
    RUN(listings_are_complete_over_pages);
    RUN(awkward_names_are_listed_exactly);
    if (ceph) { /* moto has no such thing */
        RUN(presigned_urls_are_sent_byte_for_byte);
        RUN(anonymous_access_to_what_is_public);
        RUN(the_requester_pays_only_when_asked);
        RUN(refused_listings_say_so);
        RUN(session_tokens_are_sent);
        RUN(throttled_to_four_requests_all_still_come);
    }
    fclose(server.to);
    waitpid(server.pid, NULL, 0);
    return t_done();
}
