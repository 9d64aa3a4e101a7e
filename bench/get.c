/* GETs of a list of URLs with N in flight: the baseline for everything that reads over HTTP.
 *
 * By default as barely as libcurl allows: one multi handle, N easy handles, bodies copied once
 * into N buffers that are used again; no retries, no checks beyond the status. With --store the
 * same list goes through the library's store (each URL split at its last '/'), so that one
 * program measures both in one run. Prints a line of JSON a round. HTTP/1.1. Receive buffers are
 * 120 KiB: with 256 KiB glibc gives each back to the kernel, at 50 page faults a GET.
 *
 *     get [--store [--adapt] [--threads T] [--as URL [--options JSON]]] [--base URL]
 *         [--before URL] [--in-flight N] [--rounds R] [--largest BYTES] [--buffer BYTES]
 *         [--ca FILE] FILE
 *
 * With --adapt N reads are asked for at once and the store finds out how many of them are in
 * flight; else there are N. T network threads share the work. The store is opened at what is
 * before the last '/' of the first URL, or at --base, and called --as if that is given: s3://…
 * for requests that are signed. --before is fetched first, alone, by the bare loop, as metadata
 * are; its time is part of the first round.
 *
 * FILE has one URL a line; "-" is standard input. */
#include <curl/curl.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/buf.h"
#include "base/thread.h"
#include "net/net.h"
#include "store/store.h"

struct get {
    char **urls;
    size_t n, in_flight, rounds, largest;
    long buffer; /* of libcurl */
    const char *ca, *base, *as, *options, *before;
    size_t base_size; /* with the '/' behind it */
    int threads;
    bool adapt;
    size_t next, done;
    uint64_t bytes;
    char *buffers;
};

struct reads;
struct slot { /* one transfer and its buffer */
    struct get *g;
    struct reads *all; /* of the store */
    CURL *easy;
    char *buffer;
    size_t n;
};

static void die(const char *what, const char *which)
{
    fprintf(stderr, "get: %s: %s\n", what, which);
    exit(1);
}

static void read_urls(struct get *g, const char *path, bool through_store)
{
    FILE *f = strcmp(path, "-") ? fopen(path, "r") : stdin;
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    if (!f)
        die("cannot open", path);
    while ((n = getline(&line, &cap, f)) > 0) {
        if (line[n - 1] == '\n')
            line[n - 1] = 0;
        g->urls = realloc(g->urls, (g->n + 1) * sizeof *g->urls);
        g->urls[g->n++] = strdup(line);
    }
    free(line);
    if (!g->n)
        die("no URLs in", path);
    g->base_size =
        g->base ? strlen(g->base) + 1 : (size_t)(strrchr(g->urls[0], '/') - g->urls[0] + 1);
    for (size_t i = 0; i < g->n && through_store; i++)
        if (strncmp(g->urls[i], g->urls[0], g->base_size) || !g->urls[i][g->base_size])
            die("not below the others", g->urls[i]);
}

/* ---- bare ------------------------------------------------------------------------------------ */

static size_t keep(char *data, size_t size, size_t n, void *arg)
{
    struct slot *s = arg;
    n *= size;
    if (n > s->g->largest - s->n)
        return 0;
    memcpy(s->buffer + s->n, data, n);
    s->n += n;
    return n;
}

static void begin_url(CURLM *multi, struct slot *s, const char *url)
{
    s->n = 0;
    curl_easy_setopt(s->easy, CURLOPT_URL, url);
    curl_multi_add_handle(multi, s->easy);
}

static void begin(CURLM *multi, struct slot *s)
{
    begin_url(multi, s, s->g->urls[s->g->next++]);
}

static void end(CURLM *multi, CURLMsg *m)
{
    struct slot *s;
    long status = 0;
    curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&s);
    curl_easy_getinfo(m->easy_handle, CURLINFO_RESPONSE_CODE, &status);
    if (m->data.result != CURLE_OK || status != 200)
        die("failed", curl_easy_strerror(m->data.result));
    curl_multi_remove_handle(multi, s->easy);
    s->g->bytes += s->n;
    s->g->done++;
}

static void turn_until(struct get *g, CURLM *multi, size_t n)
{
    int running, left;
    CURLMsg *m;
    while (g->done < n) {
        curl_multi_perform(multi, &running);
        while ((m = curl_multi_info_read(multi, &left))) {
            struct slot *s;
            curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&s);
            end(multi, m);
            if (g->next < n)
                begin(multi, s);
        }
        if (g->done < n)
            curl_multi_poll(multi, NULL, 0, 1000, NULL);
    }
}

static void bare_round(struct get *g, CURLM *multi, struct slot *slots)
{
    if (g->before) {
        begin_url(multi, &slots[0], g->before);
        g->next = 1; /* nothing is begun behind it */
        turn_until(g, multi, 1);
        g->next = g->done = g->bytes = 0;
        g->before = NULL;
    }
    for (size_t i = 0; i < g->in_flight && g->next < g->n; i++)
        begin(multi, &slots[i]);
    turn_until(g, multi, g->n);
}

static void bare_open(struct get *g, CURLM **multi, struct slot **slots)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
    *multi = curl_multi_init();
    curl_multi_setopt(*multi, CURLMOPT_MAXCONNECTS, (long)g->in_flight + 8);
    *slots = calloc(g->in_flight, sizeof **slots);
    for (size_t i = 0; i < g->in_flight; i++) {
        struct slot *s = &(*slots)[i];
        *s = (struct slot){.g = g, .easy = curl_easy_init(), .buffer = g->buffers + i * g->largest};
        curl_easy_setopt(s->easy, CURLOPT_PRIVATE, s);
        curl_easy_setopt(s->easy, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(s->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
        curl_easy_setopt(s->easy, CURLOPT_BUFFERSIZE, g->buffer);
        if (g->ca)
            curl_easy_setopt(s->easy, CURLOPT_CAINFO, g->ca);
        curl_easy_setopt(s->easy, CURLOPT_WRITEFUNCTION, keep);
        curl_easy_setopt(s->easy, CURLOPT_WRITEDATA, s);
    }
}

/* ---- through the store ----------------------------------------------------------------------- */

/* A read has a buffer from its first byte to its last, the one that was used last, as from a loader's pool: so no more are in
 * use than requests are in flight, however many reads wait. */
struct reads {
    struct get *g;
    struct store *store;
    pthread_mutex_t lock;
    pthread_cond_t over;
    struct slot *slots;
    char **free; /* buffers; under the lock */
    size_t n_free;
};

static void *room(void *arg, uint64_t size)
{
    struct slot *s = arg;
    if (size > s->g->largest)
        return NULL;
    pthread_mutex_lock(&s->all->lock);
    if (!s->buffer)
        s->buffer = s->all->free[--s->all->n_free];
    pthread_mutex_unlock(&s->all->lock);
    return s->buffer;
}

static void give_back(struct slot *s)
{
    pthread_mutex_lock(&s->all->lock);
    if (s->buffer)
        s->all->free[s->all->n_free++] = s->buffer;
    s->buffer = NULL;
    pthread_mutex_unlock(&s->all->lock);
}

static void read_next(struct slot *s);

static void read_done(void *arg, const struct store_result *r)
{
    struct slot *s = arg;
    if (r->rc != STORE_OK)
        die("failed", r->error.text);
    uint64_t size = r->size;
    give_back(s);
    read_next(s);
    pthread_mutex_lock(
        &s->all->lock); /* after the next has begun: the round ends with its last use of a slot */
    s->g->bytes += size;
    if (++s->g->done == s->g->n)
        pthread_cond_signal(&s->all->over);
    pthread_mutex_unlock(&s->all->lock);
}

static void read_next(struct slot *s)
{
    pthread_mutex_lock(&s->all->lock);
    const char *url = s->g->next < s->g->n ? s->g->urls[s->g->next++] : NULL;
    pthread_mutex_unlock(&s->all->lock);
    struct store_sink sink = {room, s};
    struct hr_error e;
    uint64_t ticket;
    if (url && store_start(s->all->store, url + s->g->base_size, (struct store_range){0}, &sink,
                           read_done, s, &ticket, &e) < 0)
        die("failed", e.text);
}

static void store_round(struct get *g, struct reads *all)
{
    for (size_t i = 0; i < g->in_flight; i++)
        read_next(&all->slots[i]);
    pthread_mutex_lock(&all->lock);
    while (g->done < g->n)
        pthread_cond_wait(&all->over, &all->lock);
    pthread_mutex_unlock(&all->lock);
}

static void store_options(const struct get *g, struct buf *out)
{
    const char *between = "";
    if (g->options) {
        buf_puts(out, g->options);
        return;
    }
    buf_putc(out, '{');
    if (!g->adapt) {
        buf_printf(out, "\"concurrency\": %zu", g->in_flight);
        between = ", ";
    }
    if (g->ca)
        buf_printf(out, "%s\"ca_file\": \"%s\"", between, g->ca);
    buf_putc(out, '}');
}

static void store_begin(struct get *g, struct reads *r)
{
    struct hr_error e;
    struct buf options;
    buf_init(&options);
    store_options(g, &options);
    char *base = strndup(g->urls[0], g->base_size - 1);
    *r = (struct reads){.g = g,
                        .slots = calloc(g->in_flight, sizeof *r->slots),
                        .free = calloc(g->in_flight, sizeof *r->free)};
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->over, NULL);
    for (size_t i = 0; i < g->in_flight; i++)
        r->slots[i] = (struct slot){.g = g, .all = r};
    while (r->n_free < g->in_flight) {
        r->free[r->n_free] = g->buffers + r->n_free * g->largest;
        r->n_free++;
    }
    struct net *net = net_new(&(struct net_options){.threads = g->threads}, &e);
    struct store_env env = {.net = net};
    if (!net || store_open_with(g->as ? g->as : base, options.data, &env, &r->store, &e) < 0)
        die("cannot open", e.text);
    net_unref(net);
    buf_dispose(&options);
    free(base);
}

/* ---- both ------------------------------------------------------------------------------------ */

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {{"store", no_argument, NULL, 's'},
                                          {"in-flight", required_argument, NULL, 'n'},
                                          {"rounds", required_argument, NULL, 'r'},
                                          {"largest", required_argument, NULL, 'l'},
                                          {"buffer", required_argument, NULL, 'b'},
                                          {"ca", required_argument, NULL, 'c'},
                                          {"threads", required_argument, NULL, 't'},
                                          {"adapt", no_argument, NULL, 'a'},
                                          {"base", required_argument, NULL, 'B'},
                                          {"before", required_argument, NULL, 'F'},
                                          {"as", required_argument, NULL, 'A'},
                                          {"options", required_argument, NULL, 'O'},
                                          {0}};
    struct get g = {.in_flight = 32, .rounds = 1, .largest = 16 << 20, .buffer = 120 << 10};
    bool through_store = false;
    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        if (c == 's')
            through_store = true;
        else if (c == 'n')
            g.in_flight = strtoul(optarg, NULL, 10);
        else if (c == 'r')
            g.rounds = strtoul(optarg, NULL, 10);
        else if (c == 'l')
            g.largest = strtoul(optarg, NULL, 10);
        else if (c == 'b')
            g.buffer = strtol(optarg, NULL, 10);
        else if (c == 'c')
            g.ca = optarg;
        else if (c == 't')
            g.threads = (int)strtol(optarg, NULL, 10);
        else if (c == 'a')
            g.adapt = true;
        else if (c == 'B')
            g.base = optarg;
        else if (c == 'F')
            g.before = optarg;
        else if (c == 'A')
            g.as = optarg;
        else if (c == 'O')
            g.options = optarg;
        else
            return 2;
    }
    if (optind + 1 != argc || !g.in_flight || g.in_flight > 4096 || !g.rounds)
        die("usage", "get [--store] [--adapt] [--threads T] [--in-flight N] [--rounds R] "
                     "[--largest BYTES] [--buffer BYTES] [--ca FILE] FILE");
    read_urls(&g, argv[optind], through_store);
    g.buffers = calloc(g.in_flight, g.largest);
    memset(g.buffers, 1,
           g.in_flight * g.largest); /* their pages are there before the first round */
    CURLM *multi = NULL;
    struct slot *slots = NULL;
    struct reads reads;
    if (through_store)
        store_begin(&g, &reads);
    else
        bare_open(&g, &multi, &slots);
    for (size_t r = 0; r < g.rounds; r++) {
        uint64_t from = clock_ns();
        double cpu = cpu_seconds();
        g.next = g.done = g.bytes = 0;
        if (through_store)
            store_round(&g, &reads);
        else
            bare_round(&g, multi, slots);
        double seconds = (double)(clock_ns() - from) / 1e9;
        printf("{\"way\": \"%s\", \"in_flight\": %zu, \"gets\": %zu, \"bytes\": %llu, \"seconds\": "
               "%.6f, \"cpu\": %.6f}\n",
               through_store ? "store" : "bare", g.in_flight, g.n, (unsigned long long)g.bytes,
               seconds, cpu_seconds() - cpu);
    }
    if (through_store) {
        struct buf stats;
        buf_init(&stats);
        store_stats_json(reads.store, &stats);
        fprintf(stderr, "%s\n", stats.data);
        buf_dispose(&stats);
        store_unref(reads.store);
    }
    return 0;
}
