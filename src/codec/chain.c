/* Running a chain: steps in decoding order between two slots of scratch, the last ones in the caller's memory.
 *
 * Here, and only here, sizes are proved: every step with a known result must give exactly that, and every other is held
 * to a limit derived from what the array's metadata says, so that no frame can make the reader allocate. Steps that
 * work in place are run in place, so that a decompressor followed by a byte swap writes to the caller's memory at once. */
#include "codec/step.h"

#include <string.h>

/* Memory for results whose size no metadata tells (strings; a compressor inside another). */
#define OPEN_START (1u << 20)
#define OPEN_LIMIT (64ull << 20)

int wrong_size(struct hr_error *e, const char *codec, uint64_t made, uint64_t expected)
{
    return error_set(e, HR_EDATA,
                     "decoded %llu bytes, expected %llu (%s); the array metadata may be stale",
                     (unsigned long long)made, (unsigned long long)expected, codec);
}

static int too_large(struct hr_error *e, const char *codec, uint64_t hint, uint64_t cap)
{
    if (hint > cap)
        return wrong_size(e, codec, hint, cap);
    return error_set(
        e, HR_EDATA,
        "decoded more than %llu bytes, expected %llu (%s); the array metadata may be stale",
        (unsigned long long)cap, (unsigned long long)cap, codec);
}

void fill_items(void *dst, const void *item, uint64_t item_size, uint64_t count)
{
    uint8_t *d = dst;
    uint64_t total = item_size * count;
    if (!item) {
        memset(d, 0, total);
        return;
    }
    uint64_t done = total ? item_size : 0;
    if (done)
        memcpy(d, item, item_size);
    for (; done < total; done *= 2) /* what is there is copied behind itself */
        memcpy(d + done, d, total - done < done ? total - done : done);
}

/* ---- one step ----------------------------------------------------------------------------------------------------- */

struct run {
    const struct codec_chain *c;
    struct codec_context *x;
    struct hr_error *e;
    const uint8_t *at; /* what the steps so far made */
    size_t n;
    int slot; /* scratch that holds it (0, 1), or -1 */
    bool writable;
    size_t input; /* bytes of the stored chunk */
};

static uint64_t open_limit(const struct run *r, const struct step *s)
{
    if (s->out)
        return s->out + s->out / 4 + (64 << 10);
    uint64_t limit = OPEN_LIMIT, by_input = 256 * (uint64_t)r->input, by_count = 64 * r->c->count;
    limit = limit < by_input ? by_input : limit;
    return limit < by_count ? by_count : limit;
}

/* A result of unknown size: start small, double until it fits or the limit is reached. */
static int open_step(struct run *r, const struct step *s, int slot)
{
    uint64_t limit = open_limit(r, s), cap = OPEN_START < limit ? OPEN_START : limit;
    if (cap < 4 * (uint64_t)r->n)
        cap = 4 * (uint64_t)r->n < limit ? 4 * (uint64_t)r->n : limit;
    for (;;) {
        size_t made;
        uint8_t *to = context_slot(r->x, r->x->depth + slot, cap, r->e);
        if (!to)
            return HR_ENOMEM;
        int rc = s->kind->decode(s, r->x, r->at, r->n, to, cap, &made, r->e);
        if (rc < 0)
            return rc;
        if (rc == 0) {
            r->at = to;
            r->n = made;
            r->slot = slot;
            r->writable = true;
            return 0;
        }
        if (made > limit || cap == limit)
            return too_large(r->e, s->kind->name, made, limit);
        cap = made > cap ? made : 2 * cap < limit ? 2 * cap : limit;
    }
}

static int view_step(struct run *r, const struct step *s)
{
    TRY(s->kind->view(s, r->at, r->n, &r->at, &r->n, r->e));
    return s->exact && r->n != s->out ? wrong_size(r->e, s->kind->name, r->n, s->out) : 0;
}

/* `final`: the caller's memory, if this step may write there. */
static int exact_step(struct run *r, const struct step *s, uint8_t *final)
{
    uint8_t *to = final;
    int slot = -1;
    if (!to && s->kind->in_place && r->writable) {
        to = (uint8_t *)r->at;
        slot = r->slot;
    } else if (!to) {
        slot = r->slot == 0;
        to = context_slot(r->x, r->x->depth + slot, s->out, r->e);
        if (!to)
            return HR_ENOMEM;
    }
    size_t made;
    int rc = s->kind->decode(s, r->x, r->at, r->n, to, s->out, &made, r->e);
    if (rc < 0)
        return rc;
    if (rc == STEP_SMALL)
        return too_large(r->e, s->kind->name, made, s->out);
    if (made != s->out)
        return wrong_size(r->e, s->kind->name, made, s->out);
    r->at = to;
    r->n = made;
    r->slot = slot;
    r->writable = true;
    return 0;
}

int chain_run(const struct codec_chain *c, struct codec_context *x, const uint8_t *src, size_t n,
              int n_steps, uint8_t *dst, const uint8_t **out, size_t *made, struct hr_error *e)
{
    struct run r = {.c = c, .x = x, .e = e, .at = src, .n = n, .slot = -1, .input = n};
    for (int i = 0; i < n_steps; i++) {
        const struct step *s = &c->steps[i];
        uint8_t *final = dst && i + 1 >= c->tail ? dst : NULL;
        if (s->kind->view)
            TRY(view_step(&r, s));
        else if (s->exact)
            TRY(exact_step(&r, s, final));
        else
            TRY(open_step(&r, s, r.slot == 0));
    }
    if (dst) {
        if (r.n != c->decoded_size)
            return wrong_size(e, n_steps ? c->steps[n_steps - 1].kind->name : "bytes", r.n,
                              c->decoded_size);
        if (r.at != dst)
            memcpy(dst, r.at, r.n);
        return 0;
    }
    *out = r.at;
    *made = r.n;
    return 0;
}

/* ---- whole chunks ---------------------------------------------------------------------------------------------------- */

int codec_chain_decode(const struct codec_chain *c, struct codec_context *x, const void *src,
                       size_t n, void *dst, struct hr_error *e)
{
    if (c->strings)
        return error_set(e, HR_EINVAL,
                         "strings have no fixed size; decode them with codec_chain_decode_strings");
    return chain_run(c, x, src, n, c->n_steps, dst, NULL, NULL, e);
}

/* ---- scatter ---------------------------------------------------------------------------------------------------------- */

/* Do the runs, end to end, put the whole chunk in one place? */
static bool one_place(const struct codec_chain *c, const struct codec_run *runs, size_t n_runs)
{
    uint64_t at = 0;
    for (size_t i = 0; i < n_runs; i++) {
        if (runs[i].from != at || (uint8_t *)runs[i].to != (uint8_t *)runs[0].to + at)
            return false;
        at += runs[i].bytes;
    }
    return at == c->decoded_size && n_runs;
}

static void copy_runs(const uint8_t *data, uint64_t n, const struct codec_run *runs, size_t n_runs,
                      bool stream)
{
    size_t first = 0;
    bytes_scatter(data, 0, n, runs, n_runs, &first, stream);
}

int codec_chain_scatter(const struct codec_chain *c, struct codec_context *x, const void *src,
                        size_t n, const struct codec_run *runs, size_t n_runs, void *scratch,
                        bool stream, struct hr_error *e)
{
    const struct step *last = c->n_steps ? &c->steps[c->n_steps - 1] : NULL;
    const uint8_t *data;
    size_t made;
    if (c->strings)
        return error_set(e, HR_EINVAL, "strings cannot be scattered");
    struct codec_run all = {0, c->decoded_size, n_runs ? runs[0].to : NULL};
    bool one = one_place(c, runs, n_runs);
    if (one) {
        runs = &all;
        n_runs = 1;
    }
    if (last && last->kind->scatter) {
        TRY(chain_run(c, x, src, n, c->n_steps - 1, NULL, &data, &made, e));
        return last->kind->scatter(last, x, data, made, runs, n_runs, stream, e);
    }
    if (!last || last->kind->view) { /* the items lie in the input, or in what wraps it */
        TRY(chain_run(c, x, src, n, c->n_steps, NULL, &data, &made, e));
        if (made != c->decoded_size)
            return wrong_size(e, last ? last->kind->name : "bytes", made, c->decoded_size);
        copy_runs(data, made, runs, n_runs, stream);
        return 0;
    }
    if (one)
        return codec_chain_decode(c, x, src, n, runs->to, e);
    if (!scratch && !(scratch = context_slot(x, x->depth, c->decoded_size, e)))
        return HR_ENOMEM;
    int before = x->depth++;
    int rc = codec_chain_decode(c, x, src, n, scratch, e);
    x->depth = before;
    if (rc == 0)
        copy_runs(scratch, c->decoded_size, runs, n_runs, stream);
    return rc;
}

/* ---- facts -------------------------------------------------------------------------------------------------------------- */

const struct codec_shard *codec_chain_shard(const struct codec_chain *c)
{
    return c->shard;
}
uint64_t codec_chain_decoded_size(const struct codec_chain *c)
{
    return c->decoded_size;
}
bool codec_chain_is_raw(const struct codec_chain *c)
{
    return !c->n_steps && !c->strings;
}
uint64_t codec_chain_bound(const struct codec_chain *c)
{
    return c->bound;
}
uint64_t codec_chain_scratch(const struct codec_chain *c)
{
    return c->scratch;
}
const char *codec_chain_text(const struct codec_chain *c)
{
    return c->text;
}
