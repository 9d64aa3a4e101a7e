/* Plans, chunk decoding and clocks for the bare loops. What is here runs once per program or is the decoding itself, which
 * calls the stock libraries in the plainest way that reuses their contexts: ZSTD_decompressDCtx on a kept context and
 * blosc_decompress_ctx with one thread. */
#include "archive.h"

#include <blosc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <zstd.h>

void die(const char *what, const char *where)
{
    fprintf(stderr, "bench: %s: %s\n", what, where);
    exit(1);
}

/* ---- plan -------------------------------------------------------------------------------------------------------- */

static void plan_set(struct archive *a, const char *key, const char *value, const char *plan)
{
    uint64_t number = strtoull(value, NULL, 10);

    if (!strcmp(key, "archive")) {
        const char *slash = strrchr(plan, '/');
        int dir = slash ? (int)(slash - plan) : 1;

        if (snprintf(a->root, sizeof a->root, "%.*s/%s", dir, slash ? plan : ".", value) >=
            (int)sizeof a->root)
            die("path too long", plan);
    } else if (!strcmp(key, "codec")) {
        a->codec = !strcmp(value, "zstd")  ? CODEC_ZSTD
                   : !strcmp(value, "lz4") ? CODEC_BLOSC
                                           : CODEC_RAW;
        if (a->codec == CODEC_RAW && strcmp(value, "raw"))
            die("unknown codec", value);
    } else if (!strcmp(key, "samples")) {
        a->samples = number;
    } else if (!strcmp(key, "per_chunk")) {
        a->per_chunk = number;
    } else if (!strcmp(key, "sample_bytes")) {
        a->sample_bytes = number;
    } else if (!strcmp(key, "per_shard")) {
        a->per_shard = number;
    } else if (!strcmp(key, "key_before")) {
        snprintf(a->key_before, sizeof a->key_before, "%.63s", value);
    } else if (!strcmp(key, "key_after")) {
        snprintf(a->key_after, sizeof a->key_after, "%.63s", value);
    } else if (strcmp(key, "version")) {
        die("unknown line in plan", key);
    }
}

void archive_load(struct archive *a, const char *plan)
{
    char key[32], value[256];
    FILE *f = fopen(plan, "r");

    if (!f)
        die("cannot open the plan (bench/make_archives.py writes it)", plan);
    memset(a, 0, sizeof *a);
    while (fscanf(f, "%31s %255s", key, value) == 2)
        plan_set(a, key, value, plan);
    fclose(f);
    if (!a->samples || !a->per_chunk || !a->sample_bytes || a->samples % a->per_chunk)
        die("incomplete plan", plan);
    a->chunk_bytes = a->sample_bytes * a->per_chunk;
    a->chunks = a->samples / a->per_chunk;
    a->objects = a->per_shard ? a->chunks / a->per_shard : a->chunks;
    a->object_bound = a->chunk_bytes + a->chunk_bytes / 8 + 4096;
    if (a->per_shard)
        a->object_bound = a->object_bound * a->per_shard + shard_index_bytes(a);
}

void archive_path(const struct archive *a, uint64_t object, char *path, size_t n)
{
    snprintf(path, n, "%s/%s%llu%s", a->root, a->key_before, (unsigned long long)object,
             a->key_after);
}

size_t shard_index_bytes(const struct archive *a)
{
    return 16 * a->per_shard + 4; /* zarr v3 sharding_indexed: offset and length a chunk, crc32c */
}

int shard_locate(const struct archive *a, const uint8_t *index, uint64_t i, uint64_t *offset,
                 uint64_t *n)
{
    (void)a;
    memcpy(offset, index + 16 * i, 8);
    memcpy(n, index + 16 * i + 8, 8);
    return *offset != UINT64_MAX;
}

/* ---- decoding ---------------------------------------------------------------------------------------------------- */

struct decoder {
    ZSTD_DCtx *zstd;
};

struct decoder *decoder_new(void)
{
    struct decoder *d = malloc(sizeof *d);

    if (!d || !(d->zstd = ZSTD_createDCtx()))
        die("out of memory", "decoder");
    return d;
}

void decoder_free(struct decoder *d)
{
    ZSTD_freeDCtx(d->zstd);
    free(d);
}

void chunk_decode(const struct archive *a, struct decoder *d, const uint8_t *in, size_t n,
                  uint8_t *out)
{
    size_t got = 0;

    if (a->codec == CODEC_ZSTD) {
        got = ZSTD_decompressDCtx(d->zstd, out, a->chunk_bytes, in, n);
    } else if (a->codec == CODEC_BLOSC) {
        int r = blosc_decompress_ctx(in, out, a->chunk_bytes, 1);

        got = r < 0 ? 0 : (size_t)r;
    } else {
        memcpy(out, in, got = n < a->chunk_bytes ? n : a->chunk_bytes);
    }
    if (got != a->chunk_bytes)
        die("a chunk does not decode to its size", a->root);
}

/* ---- memory and clocks -------------------------------------------------------------------------------------------- */

void ring_init(struct ring *r, const struct archive *a, size_t bytes)
{
    r->slots = bytes / a->chunk_bytes ? bytes / a->chunk_bytes : 1;
    r->bytes = r->slots * a->chunk_bytes;
    r->base = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (r->base == MAP_FAILED)
        die("out of memory", "ring");
    memset(r->base, 1, r->bytes);
}

void ring_dispose(struct ring *r)
{
    munmap(r->base, r->bytes);
}

double clock_wall(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double clock_cpu(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

long memory_peak_bytes(void)
{
    char line[256];
    long kb = 0;
    FILE *f = fopen("/proc/self/status", "r");

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %ld", &kb) == 1)
            break;
    if (f)
        fclose(f);
    return kb * 1024;
}

int cores_available(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}
