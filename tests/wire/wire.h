/* What the wire tests share: a server as a child process, blocking reads with their time, the
 * content the liar serves. A server is started by fork and exec, prints its port, and ends when
 * its standard input closes, so none outlives a test that crashes. Waiting times are shrunk
 * through store_env: the tests are about behaviour, not about patience. */
#ifndef TESTS_WIRE_H
#define TESTS_WIRE_H
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/thread.h"
#include "net/net.h"
#include "store/store.h"
#include "t.h"

struct server {
    pid_t pid;
    int in; /* closing it ends the server */
    int port;
};

static inline bool server_start(struct server *s, const char *script)
{
    int in[2], out[2];
    char line[32] = "";
    signal(SIGPIPE, SIG_IGN);
    if (pipe(in) < 0 || pipe(out) < 0)
        return false;
    s->pid = fork();
    if (s->pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        for (int i = 3; i < 64; i++)
            close(i);
        execlp("python3", "python3", script, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    s->in = in[1];
    for (size_t n = 0; n + 1 < sizeof line && read(out[0], line + n, 1) == 1 && line[n] != '\n';
         n++)
        ;
    close(out[0]);
    s->port = (int)strtol(line, NULL, 10);
    return s->port > 0;
}

static inline void server_stop(struct server *s)
{
    close(s->in);
    kill(s->pid, SIGTERM);
    waitpid(s->pid, NULL, 0);
}

/* What the liar serves. */
static inline unsigned char liar_byte(uint64_t i, unsigned version)
{
    return (unsigned char)((i % 251) ^ (i / 251 % 241) ^ version);
}

static inline bool liar_bytes(const char *data, uint64_t first, uint64_t n, unsigned version)
{
    for (uint64_t i = 0; i < n; i++)
        if ((unsigned char)data[i] != liar_byte(first + i, version))
            return false;
    return true;
}

/* One read. */
struct got {
    struct store_result r;
    char *data;
    uint64_t room, asked; /* size that room was called with; how often */
    uint64_t ms;
};

static inline void *got_room(void *arg, uint64_t size)
{
    struct got *g = arg;
    g->asked++;
    g->room = size;
    free(g->data); /* of an answer that did not last */
    g->data = malloc(size + 1);
    return g->data;
}

static inline struct got read_range(struct store *s, const char *key, int64_t offset,
                                    uint64_t length)
{
    struct got g = {0};
    struct store_sink sink = {got_room, &g};
    uint64_t from = clock_ns();
    store_read(s, key, (struct store_range){offset, length}, &sink, &g.r);
    g.ms = (clock_ns() - from) / 1000000;
    return g;
}

static inline struct got read_all(struct store *s, const char *key)
{
    return read_range(s, key, 0, 0);
}

/* Quick waiting times. */
#define QUICK                                                                                      \
    {                                                                                              \
        .connect_ms = 800, .first_byte_ms = 400, .stall_ms = 400, .max_retries = 4,                \
        .retry_total_ms = 5000, .backoff_ms = 2, .backoff_max_ms = 20,                             \
        .retry_after_max_ms = 60000, .concurrency = 64, .concurrency_max = 256                     \
    }

static inline uint64_t stat_of(struct store *s, const char *name)
{
    struct buf b;
    char quoted[64];
    buf_init(&b);
    store_stats_json(s, &b);
    snprintf(quoted, sizeof quoted, "\"%s\": ", name);
    const char *at = b.data ? strstr(b.data, quoted) : NULL;
    uint64_t v = at ? strtoull(at + strlen(quoted), NULL, 10) : UINT64_MAX;
    buf_dispose(&b);
    return v;
}

#endif
