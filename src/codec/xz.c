/* lzma in the forms of Python's module: xz (1), the older "alone" (2), raw with its filters in the configuration (3).
 *
 * liblzma allocates a dictionary as large as the stream's header asks for, so it runs under a memory limit: what the
 * largest preset needs (64 MiB dictionary), or a little more than the chunk if that is larger. Its allocations go
 * through base/mem like all others. */
#include "codec/step.h"

#include <lzma.h>
#include <string.h>

struct xz {
    int format;
    lzma_filter filters[LZMA_FILTERS_MAX + 1];
};
enum { FORMAT_AUTO = 0, FORMAT_XZ = 1, FORMAT_ALONE = 2, FORMAT_RAW = 3 };

static void *xz_alloc(void *unused, size_t n, size_t size)
{
    return mem_array(n, size);
}
static void xz_free(void *unused, void *p)
{
    mem_free(p);
}

static lzma_ret xz_begin(const struct xz *c, lzma_stream *z, uint64_t limit)
{
    switch (c->format) {
    case FORMAT_ALONE:
        return lzma_alone_decoder(z, limit);
    case FORMAT_RAW:
        return lzma_raw_decoder(z, c->filters);
    case FORMAT_AUTO:
        return lzma_auto_decoder(z, limit, LZMA_CONCATENATED);
    default:
        return lzma_stream_decoder(z, limit, LZMA_CONCATENATED);
    }
}

static int xz_decode(const struct step *s, struct codec_context *x, const uint8_t *src, size_t n,
                     uint8_t *dst, size_t cap, size_t *made, struct hr_error *e)
{
    const struct xz *c = s->config;
    lzma_allocator allocator = {.alloc = xz_alloc, .free = xz_free};
    lzma_stream z = LZMA_STREAM_INIT;
    uint8_t spare; /* a full target may still have an end of stream to read */
    z.allocator = &allocator;
    lzma_ret rc = xz_begin(c, &z, (80u << 20) + 2 * (uint64_t)cap);
    z.next_in = src;
    z.avail_in = n;
    z.next_out = dst;
    z.avail_out = cap;
    while (rc == LZMA_OK) {
        if (!z.avail_out) {
            if (z.next_out == &spare + 1)
                break;
            z.next_out = &spare;
            z.avail_out = 1;
        }
        rc = lzma_code(&z, LZMA_FINISH);
    }
    bool small = z.next_out == &spare + 1, has_rest = z.avail_in;
    *made = small ? 0 : z.total_out;
    lzma_end(&z);
    if (small)
        return STEP_SMALL;
    /* raw streams of LZMA1 have no end marker of their own: all input read and the size right is their end */
    if (rc == LZMA_BUF_ERROR && c->format == FORMAT_RAW && !has_rest)
        rc = LZMA_STREAM_END;
    if (rc == LZMA_MEM_ERROR)
        return error_nomem(e, 0, "lzma");
    if (rc == LZMA_MEMLIMIT_ERROR)
        return error_set(e, HR_EDATA,
                         "lzma: the stream asks for a dictionary far larger than its chunk");
    if (rc != LZMA_STREAM_END || has_rest)
        return error_set(
            e, HR_EDATA,
            "lzma: not a whole stream, or its checksum does not match; the chunk is damaged");
    return 0;
}

static const struct step_kind xz_kind = {.name = "lzma", .decode = xz_decode};

/* Options of one LZMA1 or LZMA2 filter: a preset, then single settings over it. */
static int lzma_options(struct build *b, const struct json *v, lzma_filter *out)
{
    int64_t preset, dict, lc, lp, pb;
    lzma_options_lzma *o = build_alloc(b, sizeof *o);
    if (!o)
        return HR_ENOMEM;
    TRY(config_int(b, "lzma", v, "preset", 6, 0, UINT32_MAX, &preset));
    if (lzma_lzma_preset(o, (uint32_t)preset))
        return error_set(b->e, HR_EFORMAT, "%s: lzma has no preset %lld", b->where,
                         (long long)preset);
    TRY(config_int(b, "lzma", v, "dict_size", o->dict_size, 4096, 64 << 20, &dict));
    TRY(config_int(b, "lzma", v, "lc", o->lc, 0, 4, &lc));
    TRY(config_int(b, "lzma", v, "lp", o->lp, 0, 4, &lp));
    TRY(config_int(b, "lzma", v, "pb", o->pb, 0, 4, &pb));
    o->dict_size = (uint32_t)dict;
    o->lc = (uint32_t)lc;
    o->lp = (uint32_t)lp;
    o->pb = (uint32_t)pb;
    out->options = o;
    return 0;
}

static int filter(struct build *b, const struct json *v, lzma_filter *out)
{
    int64_t id, dist;
    TRY(config_int(b, "lzma", v, "id", -1, 0, INT64_MAX, &id));
    out->id = (lzma_vli)id;
    if (out->id == LZMA_FILTER_LZMA1 || out->id == LZMA_FILTER_LZMA2)
        return lzma_options(b, v, out);
    /* delta and the branch filters of Python's module; liblzma knows more, some of which crash without options */
    if (out->id < LZMA_FILTER_DELTA || out->id > LZMA_FILTER_SPARC)
        return error_set(b->e, HR_EUNSUPPORTED, "%s: lzma filter %lld is not supported", b->where,
                         (long long)id);
    if (out->id != LZMA_FILTER_DELTA)
        return 0;
    lzma_options_delta *o = build_alloc(b, sizeof *o);
    if (!o)
        return HR_ENOMEM;
    TRY(config_int(b, "lzma", v, "dist", 1, LZMA_DELTA_DIST_MIN, LZMA_DELTA_DIST_MAX, &dist));
    o->type = LZMA_DELTA_TYPE_BYTE;
    o->dist = (uint32_t)dist;
    out->options = o;
    return 0;
}

int make_lzma(struct build *b, const struct codec_entry *self, const struct json *config)
{
    const struct json *filters = json_get(config, "filters");
    int64_t format;
    struct xz *c = build_alloc(b, sizeof *c);
    if (!c)
        return HR_ENOMEM;
    TRY(config_int(b, "lzma", config, "format", FORMAT_XZ, FORMAT_AUTO, FORMAT_RAW, &format));
    c->format = (int)format;
    uint32_t n = json_is(filters, JSON_ARRAY) ? filters->size : 0;
    if (c->format == FORMAT_RAW && (!n || n > LZMA_FILTERS_MAX))
        return error_set(b->e, HR_EFORMAT, "%s: raw lzma needs between 1 and %d filters", b->where,
                         LZMA_FILTERS_MAX);
    for (uint32_t i = 0; c->format == FORMAT_RAW && i < n; i++)
        TRY(filter(b, &filters->items[i], &c->filters[i]));
    if (c->format == FORMAT_RAW) {
        c->filters[n].id = LZMA_VLI_UNKNOWN;
        if (lzma_raw_decoder_memusage(c->filters) == UINT64_MAX)
            return error_set(b->e, HR_EFORMAT, "%s: these lzma filters do not make a chain",
                             b->where);
    }
    TRY(build_step(b, &xz_kind, c, build_bound(b->size), false));
    b->steps[b->n_steps - 1].scratch = 9
                                       << 20; /* preset 6, the default; the largest takes 65 MiB */
    return build_text(b, "lzma");
}
