/* Codecs that rearrange bytes and bits: numcodecs' and HDF5's shuffle, packbits in its two forms, base64. */
#include "codec/step.h"

#include <string.h>
#include "codec/base64.h"

/* ---- shuffle: byte planes over the whole chunk; a remainder is copied through, as HDF5 does ---------------------- */

static void shuffle_planes(const struct step *s, const uint8_t *src, size_t n, struct planes *p)
{
    p->width = *(const size_t *)s->config;
    p->n_items = n / p->width;
    p->n_rest = n % p->width;
    p->rest = src + p->n_items * p->width;
    p->at = 0;
    for (size_t j = 0; j < p->width; j++)
        p->plane[j] = src + j * p->n_items;
}

static int shuffle_scatter(const struct step *s, struct codec_context *x, const uint8_t *src,
                           size_t n, const struct codec_run *runs, size_t n_runs, bool stream,
                           struct hr_error *e)
{
    struct planes p;
    size_t first = 0;
    if (s->exact && n != s->out)
        return wrong_size(e, "shuffle", n, s->out);
    shuffle_planes(s, src, n, &p);
    planes_scatter(&p, &x->kernels, runs, n_runs, &first, stream);
    return 0;
}

static int shuffle_decode(const struct step *s, struct codec_context *x, const uint8_t *src,
                          size_t n, uint8_t *dst, size_t cap, size_t *made, struct hr_error *e)
{
    struct planes p;
    struct codec_run all = {0, n, dst};
    size_t first = 0;
    *made = n;
    if (n > cap)
        return STEP_SMALL;
    shuffle_planes(s, src, n, &p);
    planes_scatter(&p, &x->kernels, &all, 1, &first, false);
    return 0;
}

static const struct step_kind shuffle_kind = {
    .name = "shuffle", .decode = shuffle_decode, .scatter = shuffle_scatter};

int make_shuffle(struct build *b, const struct codec_entry *self, const struct json *config)
{
    int64_t width;
    size_t *kept = build_alloc(b, sizeof *kept);
    if (!kept)
        return HR_ENOMEM;
    int64_t fallback = b->v3 && b->type.item_size <= PLANES_MAX ? (int64_t)b->type.item_size : 4;
    const struct json *v = json_get(config, "elementsize");
    TRY(config_int(b, "shuffle", json_is(v, JSON_NULL) ? NULL : config, "elementsize", fallback, 0,
                   PLANES_MAX, &width));
    *kept = (size_t)width;
    if (width > 1)
        TRY(build_step(b, &shuffle_kind, kept, b->size, b->exact));
    return build_text(b, "shuffle(%d)", (int)width);
}

/* ---- packbits ------------------------------------------------------------------------------------------------------ */

enum padding { PAD_NONE, PAD_FIRST, PAD_LAST };
struct packbits {
    enum padding padding;
    bool msb_first;       /* numcodecs packs from the top bit, v3 from the bottom */
    unsigned first, bits; /* of each component that are stored */
    unsigned width;       /* bytes of a component */
    bool is_signed;
    uint64_t components; /* in the chunk; 0: as many as the input holds */
};

static unsigned bit_at(const uint8_t *data, uint64_t i, bool msb_first)
{
    return data[i / 8] >> (msb_first ? 7 - i % 8 : i % 8) & 1;
}

static int packbits_decode(const struct step *s, struct codec_context *x, const uint8_t *src,
                           size_t n, uint8_t *dst, size_t cap, size_t *made, struct hr_error *e)
{
    const struct packbits *c = s->config;
    size_t extra = c->padding != PAD_NONE;
    if (n < extra || (extra && (c->padding == PAD_FIRST ? src[0] : src[n - 1]) > 7))
        return error_set(e, HR_EDATA, "packbits: the number of padding bits is missing or above 7");
    unsigned pad = !extra ? 0 : c->padding == PAD_FIRST ? src[0] : src[n - 1];
    uint64_t stored = (uint64_t)(n - extra) * 8;
    if (pad > stored)
        return error_set(e, HR_EDATA, "packbits: %u padding bits and no data", pad);
    uint64_t count = extra           ? (stored - pad) / c->bits
                     : c->components ? c->components
                                     : stored / c->bits;
    if (c->components && (stored + 7) / 8 != (c->components * c->bits + 7) / 8)
        return wrong_size(e, "packbits", stored / 8, (c->components * c->bits + 7) / 8);
    *made = (size_t)(count * c->width);
    if (*made > cap)
        return STEP_SMALL;
    const uint8_t *data = src + (c->padding == PAD_FIRST);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t v = 0;
        for (unsigned k = 0; k < c->bits; k++)
            v |= (uint64_t)bit_at(data, i * c->bits + k, c->msb_first) << k;
        if (c->is_signed && v >> (c->bits - 1) & 1 && c->bits < 64)
            v |= ~0ull << c->bits;
        v <<= c->first;
        memcpy(dst + i * c->width, &v, c->width); /* little-endian words; see make_packbits_v3 */
    }
    return 0;
}

static const struct step_kind packbits_kind = {.name = "packbits", .decode = packbits_decode};

/* numcodecs: bool only; one byte with the number of padding bits, then bits from the top. In v3 it makes the array one
 * of bytes. */
int make_packbits(struct build *b, const struct codec_entry *self, const struct json *config)
{
    struct packbits *c = build_alloc(b, sizeof *c);
    if (!c)
        return HR_ENOMEM;
    if (b->v3 && b->type.kind != HR_BOOL)
        return error_set(b->e, HR_EFORMAT, "%s: packbits of %s; it packs bool alone", b->where,
                         b->type.name);
    *c = (struct packbits){.padding = PAD_FIRST, .msb_first = true, .bits = 1, .width = 1};
    c->components = b->exact ? b->size : 0;
    uint64_t packed = b->size ? 1 + (b->size + 7) / 8 : 0;
    TRY(build_step(b, &packbits_kind, c, packed, b->exact));
    if (b->v3) {
        uint64_t *shape = build_alloc(b, sizeof *shape);
        if (!shape)
            return HR_ENOMEM;
        *shape = packed;
        b->type = (struct dtype){
            .kind = HR_U8, .item_size = 1, .swap_size = 1, .time_count = 1, .name = "uint8"};
        b->ndim = 1;
        b->shape = shape;
        b->count = packed;
        b->order = NULL;
        b->fill = NULL;
        b->elementwise = false;
    }
    return build_text(b, "packbits");
}

static unsigned natural_bits(const struct dtype *t)
{
    if (t->kind == HR_BOOL)
        return 1;
    if (t->kind == HR_RAW && t->item_size == 1 && !t->n_fields) {
        const char *digit = strpbrk(t->name, "2468");
        return !digit || *t->name == 'S' || *t->name == 'V' ? 8 : (unsigned)(*digit - '0');
    }
    return 8 * (t->swap_size > 1 ? t->swap_size : (unsigned)t->item_size);
}

/* zarr-extensions codecs/packbits: array → bytes, any fixed number of bits of each component, from the lowest bit up. */
int make_packbits_v3(struct build *b, const struct codec_entry *self, const struct json *config)
{
    const struct json *padding = json_get(config, "padding_encoding");
    struct packbits *c = build_alloc(b, sizeof *c);
    if (!c)
        return HR_ENOMEM;
    unsigned natural = natural_bits(&b->type);
    bool words = (b->type.kind >= HR_BOOL && b->type.kind <= HR_C128) ||
                 (b->type.kind == HR_RAW && !b->type.n_fields && *b->type.name != 'S' &&
                  *b->type.name != 'V');
    int64_t first = 0, last = natural - 1;
    if (!words)
        return error_set(b->e, HR_EFORMAT, "%s: packbits of %s", b->where, b->type.name);
    if (!json_is(json_get(config, "first_bit"), JSON_NULL))
        TRY(config_int(b, "packbits", config, "first_bit", 0, 0, natural - 1, &first));
    if (!json_is(json_get(config, "last_bit"), JSON_NULL))
        TRY(config_int(b, "packbits", config, "last_bit", natural - 1, first, natural - 1, &last));
    if (padding && !json_equal(padding, "none") && !json_equal(padding, "first_byte") &&
        !json_equal(padding, "last_byte"))
        return error_set(b->e, HR_EFORMAT,
                         "%s: padding_encoding of packbits must be \"none\", \"first_byte\" or "
                         "\"last_byte\"",
                         b->where);
    c->padding = json_equal(padding, "first_byte")  ? PAD_FIRST
                 : json_equal(padding, "last_byte") ? PAD_LAST
                                                    : PAD_NONE;
    c->first = (unsigned)first;
    c->bits = (unsigned)(last - first + 1);
    c->width = natural < 8 ? 1 : natural / 8;
    c->is_signed = (b->type.kind >= HR_I8 && b->type.kind <= HR_I64) ||
                   (b->type.kind == HR_RAW && *b->type.name == 'i');
    c->components = b->size / c->width;
    uint64_t bits;
    if (!mul_u64(c->components, c->bits, &bits) || !add_u64(bits, 7, &bits))
        return error_set(b->e, HR_EFORMAT, "%s: the chunk size overflows (packbits)", b->where);
    struct dtype *little = dtype_with_order(b->a, &b->type, false);
    if (!little)
        return error_nomem(b->e, sizeof *little, "a codec");
    if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
        TRY(build_native(b, little));
    TRY(build_step(b, &packbits_kind, c, bits / 8 + (c->padding != PAD_NONE), true));
    b->is_bytes = true;
    return build_text(b, "packbits");
}

/* ---- base64 -------------------------------------------------------------------------------------------------------- */

static int base64_step(const struct step *s, struct codec_context *x, const uint8_t *src, size_t n,
                       uint8_t *dst, size_t cap, size_t *made, struct hr_error *e)
{
    *made = base64_decode((const char *)src, n, NULL);
    if (*made == SIZE_MAX)
        return error_set(e, HR_EDATA, "base64: the chunk holds other characters, or a broken end");
    if (*made > cap)
        return STEP_SMALL;
    base64_decode((const char *)src, n, dst);
    return 0;
}

static const struct step_kind base64_kind = {.name = "base64", .decode = base64_step};

int make_base64(struct build *b, const struct codec_entry *self, const struct json *config)
{
    TRY(build_step(b, &base64_kind, NULL, b->size ? b->size / 3 * 4 + 4 : 0, false));
    return build_text(b, "base64");
}
