/* Whole shuffled epochs through the C API against a server with every fault there is (faulty.py), so
 * that the checkers of memory and threads see them: all kinds of stores, an address that goes dead, a
 * server that is killed and comes back, loaders closed in mid-flight. The archive's numbers are known,
 * so every batch is checked. getaddrinfo is the test's own. */
#include <dlfcn.h>
#include <netdb.h>
#include <sys/socket.h>

#include "headrace.h"
#include "wire/wire.h"

enum { STEPS = 96, ROW = 48, BATCH = 4 };
static const char *script;

/* both.test has two addresses. */
__attribute__((visibility("default"))) int getaddrinfo(const char *node, const char *service,
                                                       const struct addrinfo *hints,
                                                       struct addrinfo **out)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    struct addrinfo numeric = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (!node || strcmp(node, "both.test") != 0)
        return real(node, service, hints, out);
    int rc = real("127.0.0.1", service, &numeric, out);
    return rc ? rc : real("127.0.0.2", service, &numeric, &(*out)->ai_next);
}

/* ---- the server ------------------------------------------------------------------------------ */

struct faulty {
    const char *kind;
    struct server server;
    int out;
};

static void read_line(int fd, char *line, size_t n)
{
    size_t used = 0;
    while (used + 1 < n && read(fd, line + used, 1) == 1 && line[used] != '\n')
        used++;
    line[used] = 0;
}

static bool faulty_start(struct faulty *f, const char *kind, const char *faults, const char *rate,
                         const char *seed)
{
    int in[2], out[2];
    char line[32];
    signal(SIGPIPE, SIG_IGN);
    f->kind = kind;
    if (pipe(in) < 0 || pipe(out) < 0)
        return false;
    f->server.pid = fork();
    if (f->server.pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        for (int i = 3; i < 64; i++)
            close(i);
        execlp("python3", "python3", script, kind, faults, rate, seed, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    f->server.in = in[1];
    f->out = out[0];
    read_line(f->out, line, sizeof line);
    f->server.port = (int)strtol(line, NULL, 10);
    return check(f->server.port > 0);
}

static void tell(struct faulty *f, const char *command)
{
    char line[32];
    check(write(f->server.in, command, strlen(command)) > 0);
    read_line(f->out, line, sizeof line);
    check_str(line, "ok");
}

static void faulty_stop(struct faulty *f)
{
    server_stop(&f->server);
    close(f->out);
}

/* ---- loaders --------------------------------------------------------------------------------- */

#define QUICK_OPTIONS                                                                              \
    "\"connect_timeout\": 5, \"first_byte_timeout\": 0.4, \"stall_timeout\": 0.4, "                \
    "\"max_retries\": 30"

static void address(const struct faulty *f, const char *host, char *url, char *options, size_t n)
{
    int port = f->server.port;
    if (!strcmp(f->kind, "s3")) {
        snprintf(url, n, "s3://bkt");
        snprintf(options, n,
                 "{" QUICK_OPTIONS ", \"endpoint_url\": \"http://%s:%d\", \"key\": \"KEY\", "
                 "\"secret\": \"SECRET\", \"region\": \"us-east-1\"}",
                 host, port);
    } else if (!strcmp(f->kind, "gs")) {
        snprintf(url, n, "gs://bkt");
        snprintf(options, n,
                 "{" QUICK_OPTIONS ", \"endpoint_url\": \"http://%s:%d\", \"token\": \"anon\"}",
                 host, port);
    } else if (!strcmp(f->kind, "az")) {
        snprintf(url, n, "az://box");
        snprintf(options, n,
                 "{" QUICK_OPTIONS ", \"endpoint\": \"http://%s:%d/acct\", \"account_name\": "
                 "\"acct\", \"anon\": true}",
                 host, port);
    } else {
        snprintf(url, n, "http://%s:%d", host, port);
        snprintf(options, n, "{" QUICK_OPTIONS "}");
    }
}

static struct hr_loader *open_loader(const struct faulty *f, const char *host)
{
    struct hr_loader_options o = HR_LOADER_OPTIONS;
    struct hr_archive *a = NULL;
    struct hr_samples *s = NULL;
    struct hr_loader *l = NULL;
    struct hr_error e = {0};
    char url[512], options[512];
    const char *whole = "whole", *sharded = "sharded";
    address(f, host, url, options, sizeof url);
    o.n = BATCH;
    o.shuffle = HR_SHUFFLE_SPREAD;
    o.seed = 5;
    int rc = hr_open(url, options, &a, &e);
    if (rc == 0)
        rc = hr_samples_new(a, "time", &s, &e);
    if (rc == 0)
        rc = hr_samples_view(s, "x", &whole, 1, NULL, &e);
    if (rc == 0)
        rc = hr_samples_view(s, "y", &sharded, 1, NULL, &e);
    if (rc == 0)
        rc = hr_loader_open(s, &o, &l, &e);
    if (rc < 0)
        printf("# %s\n", e.text);
    hr_samples_unref(s);
    hr_archive_unref(a);
    return l;
}

static bool right(const struct hr_batch *b)
{
    struct hr_tensor t;
    bool ok = hr_batch_filled(b) == 0 && hr_batch_rows(b) == BATCH;
    for (int view = 0; view < 2 && ok; view++) {
        ok = hr_batch_tensor(b, view, &t) == 0 && t.bytes == BATCH * ROW * sizeof(int32_t);
        int64_t a = !strcmp(t.name, "x") ? 1 : 3, c = a == 1 ? 0 : 1;
        const int32_t *v = t.data;
        for (int64_t i = 0; i < BATCH * ROW && ok; i++)
            ok = v[i] == a * (hr_batch_index(b)[i / ROW] * ROW + i % ROW) + c;
    }
    return ok;
}

/* The batches up to the end of the epoch, or to `most`; a negative code otherwise. */
static int take(struct hr_loader *l, int most, struct hr_error *e)
{
    struct hr_batch *b;
    int n = 0, rc = 1;
    while (n < most && (rc = hr_loader_next(l, 60000, &b, e)) > 0) {
        n += check(right(b));
        hr_batch_release(b);
    }
    return rc < 0 ? rc : n;
}

static void expect_epoch(struct hr_loader *l, int taken)
{
    struct hr_error e = {0};
    if (!check_eq(take(l, 1000, &e), STEPS / BATCH - taken))
        printf("# %s\n", e.text);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void epochs_among_all_faults(const char *kind)
{
    struct faulty f;
    const char *rates[] = {"0.02", "0.2"};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        if (!faulty_start(&f, kind, "all", rates[i], i ? "11" : "12"))
            return;
        struct hr_loader *l = open_loader(&f, "127.0.0.1");
        if (check(l)) {
            expect_epoch(l, 0);
            hr_loader_close(l);
        }
        hr_loader_unref(l);
        faulty_stop(&f);
    }
}

static void over_http(void)
{
    epochs_among_all_faults("http");
}

static void over_s3(void)
{
    epochs_among_all_faults("s3");
}

static void over_gs(void)
{
    epochs_among_all_faults("gs");
}

static void over_az(void)
{
    epochs_among_all_faults("az");
}

static void an_address_that_goes_dead_does_not_show(void)
{
    const char *kinds[] = {"http", "s3"};
    for (size_t i = 0; i < 2; i++) {
        struct faulty f;
        struct hr_error e = {0};
        if (!faulty_start(&f, kinds[i], "busy", "0.05", "3"))
            return;
        struct hr_loader *l = open_loader(&f, "both.test");
        if (check(l) && check_eq(take(l, 1, &e), 1)) {
            tell(&f, "kill\n");
            expect_epoch(l, 1);
            expect_epoch(l, 0);
        }
        hr_loader_unref(l);
        faulty_stop(&f);
    }
}

static void a_server_that_comes_back_does_not_show(void)
{
    struct faulty f;
    struct hr_error e = {0};
    if (!faulty_start(&f, "s3", "-", "0", "3"))
        return;
    struct hr_loader *l = open_loader(&f, "127.0.0.1");
    if (check(l) && check_eq(take(l, 1, &e), 1)) {
        tell(&f, "stop\n");
        tell(&f, "start\n");
        expect_epoch(l, 1);
    }
    hr_loader_unref(l);
    faulty_stop(&f);
}

/* Whatever is under way when it is closed. */
static void loaders_close_at_once_in_any_state(void)
{
    const char *const states[] = {"faults - 0\n",      "faults stall 1\n", "faults silent 1\n",
                                  "faults busy 1\n",   "faults short 1\n", "faults reset 1\n",
                                  "faults login 0.5\n"};
    struct faulty f;
    struct hr_error e = {0};
    if (!faulty_start(&f, "s3", "-", "0", "3"))
        return;
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        uint64_t best = UINT64_MAX;
        for (int again = 0; again < 4; again++) {
            struct hr_batch *b = NULL;
            tell(&f, "faults - 0\n");
            struct hr_loader *l = open_loader(&f, "127.0.0.1");
            if (!check(l))
                break;
            take(l, again, &e);
            tell(&f, states[i]);
            if (hr_loader_next(l, 50, &b, &e) > 0)
                hr_batch_release(b);
            uint64_t from = clock_ns();
            hr_loader_close(l);
            uint64_t took = clock_ns() - from;
            best = took < best ? took : best;
            hr_loader_unref(l);
        }
        check(best < 100000000);
    }
    faulty_stop(&f);
}

static void beyond_all_retries_one_error_and_the_rest_later(void)
{
    struct faulty f;
    struct hr_error e = {0};
    char *state = NULL;
    if (!faulty_start(&f, "http", "-", "0", "3"))
        return;
    struct hr_loader *l = open_loader(&f, "127.0.0.1");
    int got = l ? take(l, 1, &e) : 0;
    tell(&f, "faults redirect 1\n");
    for (int rc = 1; rc > 0 && got<STEPS / BATCH; got += rc> 0)
        rc = take(l, 1, &e);
    if (check(l) && got < STEPS / BATCH) /* else all was there before */
        check_has(e.text, "redirect");
    check_eq(hr_loader_state(l, &state, &e), 0);
    hr_loader_unref(l);
    tell(&f, "faults - 0\n");
    l = open_loader(&f, "127.0.0.1");
    check_eq(hr_loader_load_state(l, state, 0, &e), 0);
    expect_epoch(l, got == STEPS / BATCH ? 0 : got);
    hr_loader_unref(l);
    hr_free(state);
    faulty_stop(&f);
}

int main(int argc, char **argv)
{
    script = argc > 1 ? argv[1] : "faulty.py";
    RUN(over_http);
    RUN(over_s3);
    RUN(over_gs);
    RUN(over_az);
    RUN(an_address_that_goes_dead_does_not_show);
    RUN(a_server_that_comes_back_does_not_show);
    RUN(loaders_close_at_once_in_any_state);
    RUN(beyond_all_retries_one_error_and_the_rest_later);
    return t_done();
}
