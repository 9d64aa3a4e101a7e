/* The floor over HTTP: bare parallel GETs of every object of an archive, decoded on the other cores.
 *
 * The main thread turns one libcurl multi handle with a fixed number of transfers. A finished body goes by one queue to the
 * decoding threads, which decode its chunks into the ring that floor.c describes and give the body buffer back. No retries,
 * no order, no batches. By default one core is left to the network thread (and the server, on loopback) and the others
 * decode; --decoders N says otherwise. Whole objects are fetched, so a shard is one GET. HTTP/1.1, 256 KB receive buffers:
 * the settings that were fastest on loopback. */
#include "archive.h"

#include <curl/curl.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct
    body { /* one transfer's buffer; on exactly one of: a transfer, the queue, a decoder, the free list */
    struct body *next;
    uint64_t object;
    size_t n, room;
    uint8_t *bytes;
};

struct fetch {
    struct archive archive;
    struct ring ring;
    const char *url; /* of the store, without a slash at the end */
    CURLM *multi;
    uint64_t started, done, received; /* network thread only */
    struct {
        pthread_mutex_t lock;
        pthread_cond_t ready;
        struct body *first, **last; /* fetched, not yet decoded */
        struct body *idle;
        uint64_t turn;
        int over;
    } synced;
};

static size_t body_write(char *data, size_t size, size_t n, void *arg)
{
    struct body *b = arg;

    n *= size;
    if (n > b->room - b->n)
        return 0; /* larger than any object of this archive: the transfer fails */
    memcpy(b->bytes + b->n, data, n);
    b->n += n;
    return n;
}

/* ---- decoding threads --------------------------------------------------------------------------------------------- */

static void body_decode(struct fetch *f, struct decoder *d, const struct body *b, uint64_t turn)
{
    const struct archive *a = &f->archive;

    if (!a->per_shard) {
        chunk_decode(a, d, b->bytes, b->n, ring_slot(&f->ring, a, turn));
        return;
    }
    if (b->n < shard_index_bytes(a))
        die("short shard", a->root);
    for (uint64_t i = 0; i < a->per_shard; i++) {
        uint64_t offset, n;

        if (!shard_locate(a, b->bytes + b->n - shard_index_bytes(a), i, &offset, &n))
            continue;
        if (offset > b->n || n > b->n - offset)
            die("short shard", a->root);
        chunk_decode(a, d, b->bytes + offset, n, ring_slot(&f->ring, a, turn + i));
    }
}

static void *decoding(void *arg)
{
    struct fetch *f = arg;
    struct decoder *d = decoder_new();
    struct body *b;

    pthread_mutex_lock(&f->synced.lock);
    for (;;) {
        while (!(b = f->synced.first) && !f->synced.over)
            pthread_cond_wait(&f->synced.ready, &f->synced.lock);
        if (!b)
            break;
        if (!(f->synced.first = b->next))
            f->synced.last = &f->synced.first;
        uint64_t turn = f->synced.turn;
        f->synced.turn += f->archive.per_shard ? f->archive.per_shard : 1;
        pthread_mutex_unlock(&f->synced.lock);
        body_decode(f, d, b, turn);
        pthread_mutex_lock(&f->synced.lock);
        int starved = !f->synced.idle;
        b->next = f->synced.idle;
        f->synced.idle = b;
        if (starved) /* the network thread may be waiting for a buffer */
            curl_multi_wakeup(f->multi);
    }
    pthread_mutex_unlock(&f->synced.lock);
    decoder_free(d);
    return NULL;
}

/* ---- network thread ------------------------------------------------------------------------------------------------ */

static CURL *transfer_new(void)
{
    CURL *h = curl_easy_init();

    if (!h)
        die("out of memory", "transfer");
    curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, body_write);
    curl_easy_setopt(h, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(h, CURLOPT_BUFFERSIZE, 256L << 10);
    curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h, CURLOPT_FAILONERROR, 1L);
    return h;
}

/* Start the next object on an idle transfer, if a buffer is free. */
static int transfer_start(struct fetch *f, CURL *h)
{
    char url[1280];
    struct body *b;

    pthread_mutex_lock(&f->synced.lock);
    if ((b = f->synced.idle))
        f->synced.idle = b->next;
    pthread_mutex_unlock(&f->synced.lock);
    if (!b)
        return 0;
    b->object = f->started++;
    b->n = 0;
    snprintf(url, sizeof url, "%s/%s%llu%s", f->url, f->archive.key_before,
             (unsigned long long)b->object, f->archive.key_after);
    curl_easy_setopt(h, CURLOPT_URL, url);
    curl_easy_setopt(h, CURLOPT_WRITEDATA, b);
    curl_easy_setopt(h, CURLOPT_PRIVATE, b);
    curl_multi_add_handle(f->multi, h);
    return 1;
}

static void transfer_finish(struct fetch *f, const CURLMsg *m)
{
    struct body *b;

    curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&b);
    if (m->data.result != CURLE_OK)
        die(curl_easy_strerror(m->data.result), f->url);
    f->received += b->n;
    f->done++;
    curl_multi_remove_handle(f->multi, m->easy_handle);
    b->next = NULL;
    pthread_mutex_lock(&f->synced.lock);
    *f->synced.last = b;
    f->synced.last = &b->next;
    pthread_cond_signal(&f->synced.ready);
    pthread_mutex_unlock(&f->synced.lock);
}

static void fetch_all(struct fetch *f, CURL **idle, int n_idle)
{
    int running, left, starved;
    const CURLMsg *m;

    while (f->done < f->archive.objects) {
        starved = 0;
        while (n_idle && f->started < f->archive.objects && !starved) {
            if (transfer_start(f, idle[n_idle - 1]))
                n_idle--;
            else
                starved = 1;
        }
        curl_multi_perform(f->multi, &running);
        while ((m = curl_multi_info_read(
                    f->multi, &left))) { /* before the poll: after it, finished ones stall */
            CURL *h = m->easy_handle;

            transfer_finish(f, m);
            idle[n_idle++] = h;
        }
        if (f->done < f->archive.objects &&
            (starved || !n_idle || f->started == f->archive.objects))
            curl_multi_poll(f->multi, NULL, 0, 1000,
                            NULL); /* a decoder that ends a famine wakes it */
    }
}

static void bodies_init(struct fetch *f, int n)
{
    pthread_mutex_init(&f->synced.lock, NULL);
    pthread_cond_init(&f->synced.ready, NULL);
    f->synced.last = &f->synced.first;
    for (int i = 0; i < n; i++) {
        struct body *b = malloc(sizeof *b);

        if (!b)
            die("out of memory", "bodies");
        b->bytes = malloc(f->archive.object_bound);
        if (!b->bytes)
            die("out of memory", "bodies");
        memset(b->bytes, 1, b->room = f->archive.object_bound); /* touched, like the ring */
        b->next = f->synced.idle;
        f->synced.idle = b;
    }
}

/* All transfers are idle and all bodies given back. */
static void fetch_dispose(struct fetch *f, CURL **transfers, int n)
{
    struct body *b;

    while ((b = f->synced.idle)) {
        f->synced.idle = b->next;
        free(b->bytes);
        free(b);
    }
    for (int i = 0; i < n; i++)
        curl_easy_cleanup(transfers[i]);
    curl_multi_cleanup(f->multi);
    curl_global_cleanup();
    pthread_cond_destroy(&f->synced.ready);
    pthread_mutex_destroy(&f->synced.lock);
    ring_dispose(&f->ring);
}

static void usage(void)
{
    fputs(
        "usage: http_floor [--transfers N] [--decoders N] [--ring MB] NAME.plan URL-OF-NAME.zarr\n",
        stderr);
    exit(2);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"transfers", 1, 0, 't'}, {"decoders", 1, 0, 'd'}, {"ring", 1, 0, 'r'}, {0}};
    static struct fetch f;
    int transfers = 16, decoders = cores_available() > 1 ? cores_available() - 1 : 1, ring_mb = 256,
        c;
    CURL *idle[256];
    pthread_t thread[256];

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 't')
            transfers = atoi(optarg);
        else if (c == 'd')
            decoders = atoi(optarg);
        else if (c == 'r')
            ring_mb = atoi(optarg);
        else
            usage();
    }
    if (optind != argc - 2 || transfers < 1 || transfers > 256 || decoders < 1 || decoders > 256 ||
        ring_mb < 1)
        usage();
    archive_load(&f.archive, argv[optind]);
    f.url = argv[optind + 1];
    ring_init(&f.ring, &f.archive, (size_t)ring_mb << 20);
    bodies_init(&f, transfers + 2 * decoders);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    f.multi = curl_multi_init();
    for (int i = 0; i < transfers; i++)
        idle[i] = transfer_new();

    double wall = clock_wall(), cpu = clock_cpu();
    for (int i = 0; i < decoders; i++)
        if (pthread_create(&thread[i], NULL, decoding, &f))
            die("cannot start", "thread");
    fetch_all(&f, idle, transfers);
    pthread_mutex_lock(&f.synced.lock);
    f.synced.over = 1;
    pthread_cond_broadcast(&f.synced.ready);
    pthread_mutex_unlock(&f.synced.lock);
    for (int i = 0; i < decoders; i++)
        pthread_join(thread[i], NULL);
    wall = clock_wall() - wall;
    cpu = clock_cpu() - cpu;

    printf("{\"wall\": %.6f, \"cpu\": %.6f, \"samples\": %llu, \"bytes\": %llu, \"stored\": %llu, "
           "\"objects\": %llu, "
           "\"transfers\": %d, \"decoders\": %d, \"peak_rss\": %ld}\n",
           wall, cpu, (unsigned long long)f.archive.samples,
           (unsigned long long)(f.archive.samples * f.archive.sample_bytes),
           (unsigned long long)f.received, (unsigned long long)f.done, transfers, decoders,
           memory_peak_bytes());
    fetch_dispose(&f, idle, transfers);
    return 0;
}
