/* Local jobs: one worker opens, reads, decodes and scatters, chunk after chunk, with buffers it
 * keeps for the whole job.
 *
 * Uncompressed chunks need no buffer: `preadv` puts their runs into the rows. Inner chunks of
 * shards are read in file order, neighbours in one read of at most 1 MiB: local joining stops
 * paying when the read leaves the second-level cache, and a gap costs more to read than a second
 * call once it exceeds 64 KiB (docs/internals/kernels.md §2). Stores that are not directories but
 * block all the same (memory, callbacks) take the same path through store_read.
 *
 * A stored chunk larger than what the ticket allows for ends the job with MESSAGE_LARGER (R1). */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/mem.h"
#include "run/rows.h"

#define JOIN_GAP    (64u << 10)
#define IOV_AT_ONCE 64

struct span {       /* one inner chunk in its shard */
    uint32_t index; /* in the job */
    uint32_t array;
    uint64_t shard, offset, length;
};

/* ---- times ----------------------------------------------------------------------------------- */

/* Every eighth read of a job with many is timed: for small chunks the clock costs more than is
 * known by it. */
static uint64_t read_begin(struct job *j)
{
    return j->counts.reads++ % 8 == 0 || j->n <= 8 ? clock_ns() : 0;
}

static void read_end(struct job *j, uint64_t start)
{
    if (!start)
        return;
    j->counts.read_ns += clock_ns() - start;
    j->counts.timed++;
}

/* What is not reading is decoding and scattering. */
static void job_timed(struct job *j, uint64_t start)
{
    uint64_t all = clock_ns() - start;
    if (j->counts.timed)
        j->counts.read_ns = j->counts.read_ns * j->counts.reads / j->counts.timed;
    j->counts.decode_ns = all > j->counts.read_ns ? all - j->counts.read_ns : 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

static int read_failed(struct hr_error *e, uint64_t at)
{
    if (errno == EIO || errno == ESTALE)
        return error_set_retryable(e, HR_ESTORE, "read at byte %" PRIu64 ": %s", at,
                                   strerror(errno));
    return error_set(e, HR_ESTORE, "read at byte %" PRIu64 ": %s", at, strerror(errno));
}

/* Exactly the bytes that the vectors hold, whatever the kernel gives at once. */
static int read_vectors(int fd, struct iovec *v, int n, uint64_t at, struct hr_error *e)
{
    while (n) {
        ssize_t got =
            n == 1 ? pread(fd, v->iov_base, v->iov_len, (off_t)at) : preadv(fd, v, n, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return read_failed(e, at);
        if (got == 0)
            return error_set(e, HR_EDATA,
                             "the file was cut to %" PRIu64 " bytes while it was being read", at);
        at += (uint64_t)got;
        for (; n && (size_t)got >= v->iov_len; v++, n--)
            got -= (ssize_t)v->iov_len;
        if (n) {
            v->iov_base = (char *)v->iov_base + got;
            v->iov_len -= (size_t)got;
        }
    }
    return 0;
}

static int read_bytes(struct job *j, int fd, void *to, uint64_t n, uint64_t at, struct hr_error *e)
{
    struct iovec v = {to, n};
    uint64_t start = read_begin(j);
    int rc = n ? read_vectors(fd, &v, 1, at, e) : 0;
    read_end(j, start);
    j->counts.read_bytes += n;
    return rc;
}

/* The runs of a chunk whose items lie in the file from `base` on. */
static int read_runs(struct job *j, const struct scatter *s, int fd, uint64_t base,
                     struct hr_error *e)
{
    struct iovec v[IOV_AT_ONCE];
    uint64_t start = read_begin(j);
    int rc = 0;
    for (size_t i = 0; i < s->n_runs && rc >= 0;) {
        uint64_t from = s->runs[i].from, end = from;
        int n = 0;
        for (; i < s->n_runs && n < IOV_AT_ONCE && s->runs[i].from == end; i++, n++) {
            v[n] = (struct iovec){s->runs[i].to, s->runs[i].bytes};
            end += s->runs[i].bytes;
        }
        j->counts.read_bytes += end - from;
        rc = read_vectors(fd, v, n, base + from, e);
    }
    read_end(j, start);
    return rc;
}

/* Many short reads cost more than one that takes the gaps along. */
static bool runs_are_worth_it(const struct scatter *s)
{
    uint64_t reads = 0, bytes = 0, end = UINT64_MAX;
    for (size_t i = 0; i < s->n_runs; i++) {
        reads += s->runs[i].from != end;
        bytes += s->runs[i].bytes;
        end = s->runs[i].from + s->runs[i].bytes;
    }
    return reads <= 1 || bytes / reads >= 16384;
}

/* ---- uncompressed chunks --------------------------------------------------------------------- */

static int raw_held(struct job *j, struct worker *w, uint32_t i, int fd, uint64_t base, uint64_t n,
                    struct hr_error *e)
{
    struct held *h = &j->states[i].held;
    void *memory = pool_get(j->driver->fixed.pool, n);
    if (!memory)
        return error_nomem(e, n, "a chunk");
    *h = (struct held){.kind = HELD_ITEMS, .memory = memory, .bytes = n};
    TRY(read_bytes(j, fd, memory, n, base, e));
    return decode_items(j, w, memory, e);
}

static int raw_chunk(struct job *j, struct worker *w, uint32_t i, int fd, uint64_t base, uint64_t n,
                     struct hr_error *e)
{
    struct scatter *s = &w->scatter;
    uint64_t first, end;
    TRY(decode_collect(j, w, i, e));
    if (j->chunks[i].hold != ENGINE_NO_HOLD)
        return raw_held(j, w, i, fd, base, n, e);
    int as_runs = scatter_runs(s, e);
    TRY(as_runs);
    if (as_runs && runs_are_worth_it(s))
        return read_runs(j, s, fd, base, e);
    char *decoded = job_decoded(j);
    if (!decoded)
        return error_nomem(e, j->decoded_bytes, "a chunk");
    scatter_span(s, &first, &end);
    TRY(read_bytes(j, fd, decoded + first, end - first, base + first, e));
    return decode_items(j, w, decoded, e);
}

/* ---- one chunk in an open file --------------------------------------------------------------- */

static bool too_large(struct job *j, uint32_t i, uint64_t bytes)
{
    if (bytes <= j->chunks[i].stored)
        return false;
    j->larger_index = i;
    j->larger_bytes = bytes;
    return true;
}

/* ---- a part of a chunk ----------------------------------------------------------------------- */

#define PART_LEAST (256u << 10) /* of a smaller one all is read as quickly */

/* The bytes of a stored chunk that are needed, each at its place in `stored`; the rest of that is not written. */
static int read_needed(struct job *j, struct worker *w, uint32_t i, int fd, uint64_t base,
                       uint64_t n, uint8_t *stored, struct hr_error *e)
{
    uint64_t first, end, head, from = 0, to = n;
    const struct array *x = j->driver->fixed.c.arrays[j->chunks[i].array];
    if (n < PART_LEAST || x->members || !codec_chain_parted(x->chain))
        return read_bytes(j, fd, stored, n, base, e);
    TRY(decode_collect(j, w, i, e));
    if (!decode_part(j, w, i, &first, &end))
        return read_bytes(j, fd, stored, n, base, e);
    TRY(read_bytes(j, fd, stored, 16, base, e));
    head = codec_part_head(stored, n);
    if (head)
        TRY(read_bytes(j, fd, stored + 16, head - 16, base + 16, e));
    if (!head || !codec_part_span(stored, n, first, end, &from, &to))
        return read_bytes(j, fd, stored, n, base, e);
    return read_bytes(j, fd, stored + from, to - from, base + from, e);
}

/* 0, 1 when the ticket is too small, or an error. */
static int file_chunk(struct job *j, struct worker *w, uint32_t i, int fd, uint64_t base,
                      uint64_t n, struct hr_error *e)
{
    const struct array *x = j->driver->fixed.c.arrays[j->chunks[i].array];
    TRY(decode_check_size(j, i, n, e));
    if (array_chunk_raw(x, j->chunks[i].chunk)) {
        j->counts.decoded_bytes += n;
        return raw_chunk(j, w, i, fd, base, n, e);
    }
    if (too_large(j, i, n))
        return 1;
    void *stored = job_compressed(j, j->chunks[i].stored);
    if (!stored)
        return error_nomem(e, n, "a stored chunk");
    TRY(read_needed(j, w, i, fd, base, n, stored, e));
    decode_stored(j, w, i, stored, n);
    return 0;
}

/* ---- chunks that are objects ----------------------------------------------------------------- */

static int file_object(struct job *j, struct worker *w, uint32_t i, const struct where *where,
                       struct hr_error *e)
{
    int fd;
    uint64_t size;
    int rc = store_open_file(j->driver->fixed.c.store, where->key, &fd, &size, e);
    if (rc == STORE_MISSING) {
        decode_missing(j, w, i);
        return 0;
    }
    TRY(rc);
    bool part = where->kind == WHERE_RANGE; /* of an object that is no shard */
    rc = file_chunk(j, w, i, fd, part ? where->offset : 0, part ? where->length : size, e);
    close(fd);
    return rc;
}

struct object_sink {
    struct job *job;
    uint32_t index;
    bool too_large;
    struct hr_error refusal; /* of a size that cannot be */
};
static void *object_room(void *arg, uint64_t size)
{
    struct object_sink *o = arg;
    if (decode_check_size(o->job, o->index, size, &o->refusal) < 0)
        return NULL;
    o->too_large = too_large(o->job, o->index, size);
    return o->too_large ? NULL : job_compressed(o->job, o->job->chunks[o->index].stored);
}

/* Any other store that blocks. */
static int read_range(struct job *j, struct worker *w, uint32_t i, const char *key,
                      struct store_range range, struct hr_error *e)
{
    struct object_sink o = {.job = j, .index = i};
    struct store_sink sink = {object_room, &o};
    struct store_result r = {0};
    uint64_t start = read_begin(j);
    int rc = store_read(j->driver->fixed.c.store, key, range, &sink, &r);
    read_end(j, start);
    if (o.too_large)
        return 1;
    if (rc < 0) {
        *e = o.refusal.code ? o.refusal : r.error;
        return e->code;
    }
    j->counts.read_bytes += r.size;
    if (rc == STORE_MISSING)
        decode_missing(j, w, i);
    else
        decode_stored(j, w, i, j->compressed, r.size);
    return 0;
}

static int read_object(struct job *j, struct worker *w, uint32_t i, struct hr_error *e)
{
    struct driver *d = j->driver;
    struct where where;
    TRY(array_locate(d->fixed.c.arrays[j->chunks[i].array], NULL, j->chunks[i].chunk, &where, e));
    if (store_local(d->fixed.c.store))
        return file_object(j, w, i, &where, e);
    return read_range(j, w, i, where.key, (struct store_range){(int64_t)where.offset, where.length},
                      e);
}

/* ---- inner chunks of shards ------------------------------------------------------------------ */

static int by_place(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    if (x->array != y->array)
        return x->array < y->array ? -1 : 1;
    if (x->shard != y->shard)
        return x->shard < y->shard ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Where the job's inner chunks lie; those that do not exist are filled at once. Returns how many
 * spans there are. */
static uint32_t find_spans(struct job *j, struct worker *w)
{
    uint32_t n = 0;
    struct hr_error e = {0};
    if (mem_grow((void **)&w->spans, &w->cap_spans, j->n, sizeof *w->spans)) {
        error_nomem(&e, j->n * sizeof *w->spans, "the places of chunks");
        for (uint32_t i = 0; i < j->n; i++)
            if (job_sharded(j, i))
                decode_failed(j, w, i, &e);
        return 0;
    }
    for (uint32_t i = 0; i < j->n; i++) {
        const struct engine_chunk *c = &j->chunks[i];
        const struct array *x = j->driver->fixed.c.arrays[c->array];
        struct where where;
        if (!job_sharded(j, i))
            continue;
        int rc = index_locate_now(j, w, x, c->chunk, &where, &e);
        if (rc < 0)
            decode_failed(j, w, i, &e);
        else if (where.kind == WHERE_MISSING)
            decode_missing(j, w, i);
        else
            w->spans[n++] = (struct span){i, c->array, where.shard, where.offset, where.length};
    }
    qsort(w->spans, n, sizeof *w->spans, by_place);
    return n;
}

/* How many spans one read takes, and its bytes. Uncompressed chunks go straight to their rows, each
 * for itself. */
static uint32_t join(const struct job *j, const struct span *spans, uint32_t n, uint64_t *bytes)
{
    uint64_t end = spans[0].offset + spans[0].length;
    uint32_t taken = 1;
    uint64_t most = j->driver->fixed.c.engine.join_bytes;
    bool raw =
        array_chunk_raw(j->driver->fixed.c.arrays[spans[0].array], j->chunks[spans[0].index].chunk);
    most = most < WORKER_JOINED ? most : WORKER_JOINED;
    for (; taken < n && !raw; taken++) {
        const struct span *s = &spans[taken];
        uint64_t next = s->offset + s->length;
        if (s->offset < end || s->offset - end > JOIN_GAP || next - spans[0].offset > most)
            break;
        end = next;
    }
    *bytes = end - spans[0].offset;
    return taken;
}

static int read_joined(struct job *j, struct worker *w, const struct span *spans, uint32_t n,
                       int fd, uint64_t bytes, struct hr_error *e)
{
    if (!w->joined)
        w->joined = mem_alloc(WORKER_JOINED);
    if (!w->joined)
        return error_nomem(e, WORKER_JOINED, "stored chunks");
    TRY(read_bytes(j, fd, w->joined, bytes, spans[0].offset, e));
    for (uint32_t i = 0; i < n; i++)
        decode_stored(j, w, spans[i].index, w->joined + (spans[i].offset - spans[0].offset),
                      spans[i].length);
    return 0;
}

/* All spans of one shard: 1 when the ticket is too small. */
static int read_shard(struct job *j, struct worker *w, const struct span *spans, uint32_t n, int fd)
{
    struct hr_error e = {0};
    for (uint32_t i = 0; i < n;) {
        uint64_t bytes;
        uint32_t taken = join(j, spans + i, n - i, &bytes);
        int rc = taken == 1
                     ? file_chunk(j, w, spans[i].index, fd, spans[i].offset, spans[i].length, &e)
                     : read_joined(j, w, spans + i, taken, fd, bytes, &e);
        if (rc > 0)
            return 1;
        for (uint32_t k = 0; k < taken && rc < 0; k++)
            decode_failed(j, w, spans[i + k].index, &e);
        i += taken;
    }
    return 0;
}

static uint32_t same_shard(const struct span *spans, uint32_t n)
{
    uint32_t same = 1;
    while (same < n && spans[same].array == spans[0].array && spans[same].shard == spans[0].shard)
        same++;
    return same;
}

static int open_and_read_shard(struct job *j, struct worker *w, const struct span *spans,
                               uint32_t n)
{
    struct driver *d = j->driver;
    struct hr_error e = {0};
    struct where where;
    int fd = -1, rc;
    uint64_t size;
    rc = index_locate_now(j, w, d->fixed.c.arrays[spans[0].array], j->chunks[spans[0].index].chunk,
                          &where, &e);
    if (rc >= 0 && !store_local(d->fixed.c.store)) {
        for (uint32_t i = 0; i < n; i++) {
            struct store_range range = {(int64_t)spans[i].offset, spans[i].length};
            rc = read_range(j, w, spans[i].index, where.key, range, &e);
            if (rc > 0)
                return rc;
            if (rc < 0)
                decode_failed(j, w, spans[i].index, &e);
        }
        return 0;
    }
    if (rc >= 0)
        rc = store_open_file(d->fixed.c.store, where.key, &fd, &size, &e);
    if (rc == STORE_MISSING)
        rc = error_set(&e, HR_EDATA, "the shard is gone since its index was read");
    if (rc >= 0)
        rc = read_shard(j, w, spans, n, fd);
    else
        for (uint32_t i = 0; i < n; i++)
            decode_failed(j, w, spans[i].index, &e);
    if (fd >= 0)
        close(fd);
    return rc > 0 ? rc : 0;
}

/* ---- ahead ----------------------------------------------------------------------------------- */

/* Ask the kernel for what the job is going to read, then queue the job. Failures will be met again,
 * and told, there. */
void read_ahead_run(struct task *t, struct worker *w)
{
    struct job *j = (struct job *)t;
    struct driver *d = j->driver;
    (void)w;
    for (uint32_t i = 0; i < j->n; i++) {
        const struct array *x = d->fixed.c.arrays[j->chunks[i].array];
        struct where where;
        uint64_t size;
        int fd;
        if (x->sparse || index_locate(d, x, j->chunks[i].chunk, &where, NULL) < 0 ||
            (where.kind != WHERE_OBJECT && where.kind != WHERE_RANGE) ||
            store_open_file(d->fixed.c.store, where.key, &fd, &size, NULL) != STORE_OK)
            continue;
        posix_fadvise(fd, (off_t)where.offset, (off_t)where.length,
                      POSIX_FADV_WILLNEED); /* 0, 0: the whole */
        close(fd);
    }
    j->task.run = read_run;
    workers_push(d->fixed.c.workers, &j->task, false);
}

/* ---- the job --------------------------------------------------------------------------------- */

static int read_chunks(struct job *j, struct worker *w)
{
    struct hr_error e = {0};
    bool sharded = false;
    for (uint32_t i = 0; i < j->n; i++) {
        if (job_sharded(j, i)) {
            sharded = true;
            continue;
        }
        int rc = rows_matrix(j, i) ? rows_read(j, w, i, &e) : read_object(j, w, i, &e);
        if (rc > 0)
            return rc;
        if (rc < 0)
            decode_failed(j, w, i, &e);
    }
    uint32_t n = sharded ? find_spans(j, w) : 0;
    for (uint32_t i = 0; i < n;) {
        uint32_t same = same_shard(w->spans + i, n - i);
        if (open_and_read_shard(j, w, w->spans + i, same))
            return 1;
        i += same;
    }
    return 0;
}

void read_run(struct task *t, struct worker *w)
{
    struct job *j = (struct job *)t;
    uint64_t start = clock_ns();
    int larger = read_chunks(j, w);
    job_timed(j, start);
    job_buffers_free(j);
    if (j->driver->fixed.stream)
        codec_fence();
    driver_news(j, larger ? MESSAGE_LARGER : MESSAGE_DONE, true);
}
