/* What the bare loops know of an archive: where its chunks lie and how one decodes.
 *
 * The baselines must owe nothing to the library they measure, so this shares no code with src/ and reads no zarr.json:
 * make_archives.py leaves a plan of nine `key value` lines beside each archive. Anything unexpected ends the program.
 * A chunk is the smallest unit that decodes alone (the inner chunk of a sharded archive), an object is one file. */
#ifndef BENCH_ARCHIVE_H
#define BENCH_ARCHIVE_H
#include <stddef.h>
#include <stdint.h>

enum codec { CODEC_RAW, CODEC_ZSTD, CODEC_BLOSC };

struct archive {
    char root[1024];                    /* of the store, no slash at the end */
    char key_before[64], key_after[64]; /* an object's key: before, its number, after */
    enum codec codec;
    size_t sample_bytes, chunk_bytes;  /* decoded */
    uint64_t samples, chunks, objects; /* chunks = objects unless sharded */
    uint64_t per_chunk, per_shard;     /* samples a chunk; chunks a shard, 0 when not sharded */
    size_t object_bound;               /* no object is larger */
};

void die(const char *what, const char *where) __attribute__((noreturn));

/* plan: path of NAME.plan. */
void archive_load(struct archive *a, const char *plan);
void archive_path(const struct archive *a, uint64_t object, char *path, size_t n);

/* Where inner chunk i of a shard lies, out of the index (16 bytes a chunk) at its end. 0 if it is missing. */
int shard_locate(const struct archive *a, const uint8_t *index, uint64_t i, uint64_t *offset,
                 uint64_t *n);
size_t shard_index_bytes(const struct archive *a);

/* One per thread: a decompression context of its own. */
struct decoder;
struct decoder *decoder_new(void);
void decoder_free(struct decoder *d);
void chunk_decode(const struct archive *a, struct decoder *d, const uint8_t *in, size_t n,
                  uint8_t *out);

/* Memory that batches would land in: mapped and touched once, then reused slot after slot, a chunk each. */
struct ring {
    uint8_t *base;
    size_t bytes;
    uint64_t slots;
};
void ring_init(struct ring *r, const struct archive *a, size_t bytes);
void ring_dispose(struct ring *r);
static inline uint8_t *ring_slot(const struct ring *r, const struct archive *a, uint64_t turn)
{
    return r->base + turn % r->slots * a->chunk_bytes;
}

double clock_wall(void);
double clock_cpu(void);       /* of the whole process, user + system */
long memory_peak_bytes(void); /* VmHWM */
int cores_available(void);
#endif
