/* The floor: a bare loop that reads and decodes every chunk of an archive once and does nothing else.
 *
 * One thread per core takes the next object by an atomic count, opens, reads and closes its file, and decodes each chunk
 * into a slot of one shared ring of 256 MB. The ring is touched before the clock starts and far larger than the caches, so
 * decoded bytes go out to memory, as a batch's must, but no page is ever faulted in. There is no order, no batch, no queue
 * and no hand-over: a loader that reaches 1.0 of this costs nothing.
 *
 * With --list only the chunks named in a file are done: the floor under a first batch, which needs just those. */
#include "archive.h"

#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct job {
    struct archive archive;
    struct ring ring;
    uint64_t *list; /* chunk numbers, or NULL for all */
    uint64_t n;     /* chunks in the list, else objects */
    atomic_ullong next, turn, stored;
};

/* The next ring slot. Acquire and release: a slot is reused only after hundreds of turns, and what its former thread wrote
 * is then ordered before by that thread's own later turns. */
static uint64_t turn_take(struct job *j)
{
    return atomic_fetch_add_explicit(&j->turn, 1, memory_order_acq_rel);
}

static size_t read_at(int fd, uint8_t *out, size_t n, uint64_t offset, const char *path)
{
    size_t got = 0;

    while (got < n) {
        ssize_t r = pread(fd, out + got, n - got, (off_t)(offset + got));

        if (r < 0)
            die("cannot read", path);
        if (r == 0)
            break;
        got += (size_t)r;
        if (got < n && offset == 0) /* a regular file reads short only at its end */
            break;
    }
    return got;
}

static int open_object(const struct archive *a, uint64_t object, char *path, size_t n)
{
    archive_path(a, object, path, n);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        die("cannot open", path);
    return fd;
}

/* A file that is one chunk. Raw ones are read into the ring. */
static void do_plain(struct job *j, struct decoder *d, uint8_t *in, uint64_t object)
{
    char path[1280];
    struct archive *a = &j->archive;
    uint8_t *slot = ring_slot(&j->ring, a, turn_take(j));
    int fd = open_object(a, object, path, sizeof path);
    size_t n;

    if (a->codec == CODEC_RAW) {
        n = read_at(fd, slot, a->chunk_bytes, 0, path);
        if (n != a->chunk_bytes)
            die("short chunk", path);
        close(fd);
    } else {
        n = read_at(fd, in, a->object_bound, 0, path);
        close(fd);
        chunk_decode(a, d, in, n, slot);
    }
    atomic_fetch_add_explicit(&j->stored, n, memory_order_relaxed);
}

/* Inner chunks first…last-1 of one shard: its index, then one read each. */
static void do_shard(struct job *j, struct decoder *d, uint8_t *in, uint64_t object, uint64_t first,
                     uint64_t last)
{
    char path[1280];
    struct archive *a = &j->archive;
    int fd = open_object(a, object, path, sizeof path);
    off_t size = lseek(fd, 0, SEEK_END);
    uint8_t *index = in + a->object_bound - shard_index_bytes(a);

    if (size < (off_t)shard_index_bytes(a) ||
        read_at(fd, index, shard_index_bytes(a), (uint64_t)size - shard_index_bytes(a), path) !=
            shard_index_bytes(a))
        die("short shard", path);
    for (uint64_t i = first; i < last; i++) {
        uint64_t offset, n;

        if (!shard_locate(a, index, i, &offset, &n))
            continue;
        if (n > a->object_bound - shard_index_bytes(a) || read_at(fd, in, n, offset, path) != n)
            die("short shard", path);
        chunk_decode(a, d, in, n, ring_slot(&j->ring, a, turn_take(j)));
        atomic_fetch_add_explicit(&j->stored, n, memory_order_relaxed);
    }
    close(fd);
}

static void *worker(void *arg)
{
    struct job *j = arg;
    struct archive *a = &j->archive;
    struct decoder *d = decoder_new();
    uint8_t *in = malloc(a->object_bound);
    uint64_t i;

    if (!in)
        die("out of memory", "input buffer");
    while ((i = atomic_fetch_add_explicit(&j->next, 1, memory_order_relaxed)) < j->n) {
        uint64_t what = j->list ? j->list[i] : i;

        if (!a->per_shard)
            do_plain(j, d, in, what);
        else if (j->list)
            do_shard(j, d, in, what / a->per_shard, what % a->per_shard, what % a->per_shard + 1);
        else
            do_shard(j, d, in, what, 0, a->per_shard);
    }
    free(in);
    decoder_free(d);
    return NULL;
}

static void list_load(struct job *j, const char *path)
{
    unsigned long long chunk;
    size_t room = 1024;
    FILE *f = fopen(path, "r");

    if (!f)
        die("cannot open the list", path);
    j->list = malloc(room * sizeof *j->list);
    for (j->n = 0; j->list && fscanf(f, "%llu", &chunk) == 1; j->n++) {
        if (chunk >= j->archive.chunks)
            die("a chunk number beyond the archive", path);
        if (j->n == room)
            j->list = realloc(j->list, (room *= 2) * sizeof *j->list);
        if (!j->list)
            break;
        j->list[j->n] = chunk;
    }
    if (!j->list)
        die("out of memory", path);
    fclose(f);
}

static void usage(void)
{
    fputs("usage: floor [--threads N] [--ring MB] [--list FILE] NAME.plan\n", stderr);
    exit(2);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"threads", 1, 0, 't'}, {"ring", 1, 0, 'r'}, {"list", 1, 0, 'l'}, {0}};
    static struct job j;
    int threads = cores_available(), ring_mb = 256, c;
    const char *list = NULL;
    pthread_t thread[256];

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 't')
            threads = atoi(optarg);
        else if (c == 'r')
            ring_mb = atoi(optarg);
        else if (c == 'l')
            list = optarg;
        else
            usage();
    }
    if (optind != argc - 1 || threads < 1 || threads > 256 || ring_mb < 1)
        usage();
    archive_load(&j.archive, argv[optind]);
    j.n = j.archive.objects;
    if (list)
        list_load(&j, list);
    ring_init(&j.ring, &j.archive, (size_t)ring_mb << 20);

    double wall = clock_wall(), cpu = clock_cpu();
    for (int i = 0; i < threads; i++)
        if (pthread_create(&thread[i], NULL, worker, &j))
            die("cannot start", "thread");
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    wall = clock_wall() - wall;
    cpu = clock_cpu() - cpu;

    uint64_t chunks = atomic_load(&j.turn);
    printf("{\"wall\": %.6f, \"cpu\": %.6f, \"samples\": %llu, \"bytes\": %llu, \"stored\": %llu, "
           "\"chunks\": %llu, "
           "\"threads\": %d, \"peak_rss\": %ld}\n",
           wall, cpu, (unsigned long long)(chunks * j.archive.per_chunk),
           (unsigned long long)(chunks * j.archive.chunk_bytes),
           (unsigned long long)atomic_load(&j.stored), (unsigned long long)chunks, threads,
           memory_peak_bytes());
    ring_dispose(&j.ring);
    free(j.list);
    return 0;
}
