/* From metadata to a chain: the table of codecs, the rules of v2 and v3, and the sums that follow from them.
 *
 * A chain is built in the order of encoding, because that is how metadata is written and how sizes are known: from the
 * decoded chunk outwards, each codec says what stands behind it. v3's rule (array → array, one array → bytes, bytes →
 * bytes) is checked; v2 has no such rule, its filters see bytes. Whatever is not known is refused here, by name. */
#include "codec/step.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*   name               in v3              as numcodecs.<name>  in v2  */
#define CODECS(X)                                                                                  \
    X("bytes", CODEC_ARRAY_BYTES, CODEC_NONE, false, make_bytes)                                   \
    X("endian", CODEC_ARRAY_BYTES, CODEC_NONE, false, make_bytes)                                  \
    X("transpose", CODEC_ARRAY, CODEC_NONE, false, make_transpose)                                 \
    X("sharding_indexed", CODEC_ARRAY_BYTES, CODEC_NONE, false, make_shard)                        \
    X("vlen-utf8", CODEC_ARRAY_BYTES, CODEC_ARRAY_BYTES, true, make_vlen)                          \
    X("vlen-bytes", CODEC_ARRAY_BYTES, CODEC_ARRAY_BYTES, true, make_vlen)                         \
    X("blosc", CODEC_BYTES, CODEC_BYTES, true, make_blosc)                                         \
    X("zstd", CODEC_BYTES, CODEC_BYTES, true, make_compressor)                                     \
    X("gzip", CODEC_BYTES, CODEC_BYTES, true, make_compressor)                                     \
    X("zlib", CODEC_BYTES, CODEC_BYTES, true, make_compressor)                                     \
    X("lz4", CODEC_BYTES, CODEC_BYTES, true, make_compressor)                                      \
    X("bz2", CODEC_BYTES, CODEC_BYTES, true, make_compressor)                                      \
    X("lzma", CODEC_BYTES, CODEC_BYTES, true, make_lzma)                                           \
    X("shuffle", CODEC_BYTES, CODEC_BYTES, true, make_shuffle)                                     \
    X("crc32c", CODEC_BYTES, CODEC_BYTES, true, make_checksum)                                     \
    X("crc32", CODEC_BYTES, CODEC_BYTES, true, make_checksum)                                      \
    X("adler32", CODEC_BYTES, CODEC_BYTES, true, make_checksum)                                    \
    X("fletcher32", CODEC_BYTES, CODEC_BYTES, true, make_checksum)                                 \
    X("jenkins_lookup3", CODEC_BYTES, CODEC_BYTES, true, make_checksum)                            \
    X("base64", CODEC_BYTES, CODEC_BYTES, true, make_base64)                                       \
    X("delta", CODEC_ARRAY, CODEC_ARRAY, true, make_filter)                                        \
    X("fixedscaleoffset", CODEC_ARRAY, CODEC_ARRAY, true, make_filter)                             \
    X("astype", CODEC_ARRAY, CODEC_ARRAY, true, make_filter)                                       \
    X("quantize", CODEC_ARRAY, CODEC_ARRAY, true, make_filter)                                     \
    X("bitround", CODEC_ARRAY, CODEC_ARRAY, true, make_filter)                                     \
    X("scale_offset", CODEC_ARRAY, CODEC_NONE, false, make_scale_offset)                           \
    X("cast_value", CODEC_ARRAY, CODEC_NONE, false, make_cast_value)                               \
    X("packbits", CODEC_NONE, CODEC_ARRAY, true, make_packbits)

#define ENTRY(name, core, numcodecs, v2, make) {name, core, numcodecs, v2, make},
#define NAME(name, core, numcodecs, v2, make)  name,
static const struct codec_entry entries[] = {
    CODECS(ENTRY){"packbits", CODEC_ARRAY_BYTES, CODEC_NONE, false, make_packbits_v3}};
static const char *const names[] = {CODECS(NAME) NULL};

const char *const *codec_names(void)
{
    return names;
}

static const struct codec_entry *find_v2(const char *id)
{
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        if (entries[i].v2 && !strcmp(entries[i].name, id))
            return &entries[i];
    return NULL;
}

static const struct codec_entry *find_v3(const char *name, enum codec_class *class)
{
    bool numcodecs = !strncmp(name, "numcodecs.", 10);
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        *class = numcodecs ? entries[i].numcodecs : entries[i].core;
        if (*class != CODEC_NONE && !strcmp(entries[i].name, numcodecs ? name + 10 : name))
            return &entries[i];
    }
    return NULL;
}

/* ---- for the codecs ---------------------------------------------------------------------------------------------- */

void *build_alloc(struct build *b, size_t n)
{
    void *p = arena_alloc(b->a, n);
    if (!p)
        error_nomem(b->e, n, "a codec");
    return p;
}

uint64_t build_bound(uint64_t size)
{
    uint64_t bound;
    return !size ? 0 : add_u64(size, size / 64 + 1024, &bound) ? bound : size;
}

int build_step(struct build *b, const struct step_kind *kind, const void *config, uint64_t size,
               bool exact)
{
    if (b->n_steps == BUILD_STEPS)
        return error_set(b->e, HR_EUNSUPPORTED, "%s: a chain of more than %d codecs", b->where,
                         BUILD_STEPS);
    b->steps[b->n_steps++] =
        (struct step){.kind = kind, .config = config, .out = b->size, .exact = b->exact};
    b->size = size;
    b->exact = exact && size;
    return 0;
}

int build_text(struct build *b, const char *format, ...)
{
    char part[256];
    va_list args;
    va_start(args, format);
    vsnprintf(part, sizeof part, format, args);
    va_end(args);
    b->text = b->text ? arena_printf(b->a, "%s → %s", b->text, part) : arena_strdup(b->a, part);
    return b->text ? 0 : error_nomem(b->e, sizeof part, "a codec's description");
}

static bool int_of(const struct json *v, int64_t *out)
{
    double d;
    if (json_int64(v, out))
        return true;
    if (json_str(v) && *v->string) {
        char *end;
        *out = strtoll(v->string, &end, 10);
        return !*end;
    }
    if (!json_is(v, JSON_DOUBLE) || !json_number(v, &d) || !(fabs(d) < 9007199254740992.0) ||
        d != (double)(int64_t)d)
        return false;
    *out = (int64_t)d;
    return true;
}

int config_int(struct build *b, const char *codec, const struct json *config, const char *key,
               int64_t fallback, int64_t min, int64_t max, int64_t *out)
{
    const struct json *v = json_get(config, key);
    *out = fallback;
    if (v && !json_is(v, JSON_NULL) && !int_of(v, out))
        return error_set(b->e, HR_EFORMAT, "%s: %s of %s is %s, must be an integer", b->where, key,
                         codec, json_type_name(v));
    if (*out < min || *out > max)
        return error_set(b->e, HR_EFORMAT, "%s: %s of %s is %lld, must be between %lld and %lld",
                         b->where, key, codec, (long long)*out, (long long)min, (long long)max);
    return 0;
}

int config_number(struct build *b, const char *codec, const struct json *config, const char *key,
                  double *out)
{
    const struct json *v = json_get(config, key);
    struct dtype f8;
    TRY(dtype_from_numpy(b->a, "=f8", b->where, &f8, b->e));
    if (!v || json_is(v, JSON_NULL))
        return 0;
    return dtype_fill_v2(b->a, &f8, v, b->where, out, NULL, NULL, b->e);
}

int config_dtype(struct build *b, const char *codec, const struct json *config, const char *key,
                 struct dtype *out, bool *given)
{
    const struct json *v = json_get(config, key);
    *given = v && !json_is(v, JSON_NULL);
    if (!*given)
        return 0;
    if (!json_str(v))
        return error_set(b->e, HR_EFORMAT, "%s: %s of %s must be a type string", b->where, key,
                         codec);
    return dtype_from_numpy(b->a, v->string, b->where, out, b->e);
}

/* ---- array → bytes ------------------------------------------------------------------------------------------------- */

static int native_decode(const struct step *s, struct codec_context *x, const uint8_t *src,
                         size_t n, uint8_t *dst, size_t cap, size_t *made, struct hr_error *e)
{
    const struct dtype *t = s->config;
    if (n > cap || n % t->item_size)
        return wrong_size(e, "bytes", n, s->out);
    if (dst != src)
        memcpy(dst, src, n);
    dtype_to_native(t, dst, n / t->item_size);
    *made = n;
    return 0;
}

static const struct step_kind native_kind = {
    .name = "bytes", .decode = native_decode, .in_place = true};

int build_native(struct build *b, const struct dtype *stored)
{
    return dtype_is_native(stored) ? 0 : build_step(b, &native_kind, stored, b->size, b->exact);
}

/* Without `endian` only single bytes have a meaning; structs of zarr-python before 3.1 lack it and are little-endian. */
int make_bytes(struct build *b, const struct codec_entry *self, const struct json *config)
{
    const struct json *endian = json_get(config, "endian");
    bool big = json_equal(endian, "big"), absent = !endian || json_is(endian, JSON_NULL);
    if (b->type.kind == HR_STRING || b->type.kind == HR_BYTES)
        return error_set(b->e, HR_EFORMAT, "%s: the bytes codec cannot hold %s of variable length",
                         b->where, b->type.name);
    if (!absent && !big && !json_equal(endian, "little"))
        return error_set(b->e, HR_EFORMAT,
                         "%s: endian of the bytes codec must be \"little\" or \"big\"", b->where);
    bool has_order = dtype_has_order(&b->type);
    if (absent && has_order && !b->type.n_fields)
        return error_set(b->e, HR_EFORMAT, "%s: the bytes codec needs an endian for %s", b->where,
                         b->type.name);
    struct dtype *stored = dtype_with_order(b->a, &b->type, big);
    if (!stored)
        return error_nomem(b->e, sizeof *stored, "a codec");
    TRY(build_native(b, stored));
    b->is_bytes = true;
    return has_order ? build_text(b, "bytes(%s)", big ? "big" : "little") : build_text(b, "bytes");
}

/* ---- the chain ------------------------------------------------------------------------------------------------------- */

int build_begin(struct build *b, const struct dtype *type, int ndim, const uint64_t *shape,
                const void *fill)
{
    if (ndim > 32)
        return error_set(b->e, HR_EUNSUPPORTED, "%s: %d dimensions; at most 32 are read", b->where,
                         ndim);
    uint64_t *own =
        build_alloc(b, (size_t)ndim * sizeof *own); /* the chain outlives the caller's arrays */
    void *item = fill && type->item_size ? build_alloc(b, type->item_size) : NULL;
    if (!own || (fill && type->item_size && !item))
        return HR_ENOMEM;
    if (ndim)
        memcpy(own, shape, (size_t)ndim * sizeof *own);
    if (item)
        memcpy(item, fill, type->item_size);
    b->type = *type;
    b->array_type = type;
    b->ndim = ndim;
    b->shape = shape = own;
    b->fill = b->array_fill = item;
    b->count = 1;
    b->elementwise = true;
    for (int d = 0; d < ndim; d++)
        if (!mul_u64(b->count, shape[d], &b->count))
            b->count = UINT64_MAX;
    if (b->count > INT64_MAX / 64 || !mul_u64(b->count, type->item_size, &b->size) ||
        b->size > INT64_MAX / 4)
        return error_set(b->e, HR_EFORMAT, "%s: a chunk's size overflows", b->where);
    b->exact = b->size;
    b->chain = build_alloc(b, sizeof *b->chain);
    if (!b->chain)
        return HR_ENOMEM;
    b->chain->decoded_size = b->size;
    b->chain->count = b->count;
    b->chain->strings = !type->item_size;
    b->chain->ndim = ndim;
    b->chain->shape = shape;
    return 0;
}

/* Two results can be alive at once between steps; those of the last steps lie with the caller. */
static uint64_t scratch_of(const struct codec_chain *c)
{
    uint64_t largest = 0, second = 0, own = 0;
    for (int i = 0; i < c->n_steps; i++) {
        const struct step *s = &c->steps[i];
        if (s->scratch > own)
            own = s->scratch;
        if (s->kind->view || (s->kind->in_place && i) || (!c->strings && i + 1 >= c->tail))
            continue;
        uint64_t made = s->out ? s->out : 4 * c->bound;
        if (made > largest) {
            second = largest;
            largest = made;
        } else if (made > second) {
            second = made;
        }
    }
    return largest + second + own;
}

int build_finish(struct build *b, struct codec_chain **out)
{
    struct codec_chain *c = b->chain;
    struct step *steps = build_alloc(b, (size_t)b->n_steps * sizeof *steps);
    if (!steps)
        return HR_ENOMEM;
    for (int i = 0; i < b->n_steps; i++)
        steps[i] = b->steps[b->n_steps - 1 - i];
    c->steps = steps;
    c->n_steps = b->n_steps;
    c->tail = c->n_steps;
    while (c->tail > 0 && steps[c->tail - 1].kind->in_place)
        c->tail--;
    c->stored_size = b->exact ? b->size : 0;
    c->bound = b->size ? b->size : 64 * c->count + (64 << 10); /* strings: a guess */
    c->scratch = scratch_of(c);
    c->text = b->text ? b->text : "raw";
    *out = c;
    return 0;
}

/* ---- v3 ---------------------------------------------------------------------------------------------------------------- */

static const char *const class_names[] = {"", "array → array", "array → bytes", "bytes → bytes"};

static int add_v3(struct build *b, const struct json *v)
{
    const char *name = json_str(json_is(v, JSON_OBJECT) ? json_get(v, "name") : v);
    const struct json *config = json_get(v, "configuration");
    enum codec_class class;
    if (!name || (config && !json_is(config, JSON_OBJECT) && !json_is(config, JSON_NULL)))
        return error_set(b->e, HR_EFORMAT, "%s: a codec must be a name or an object with a name",
                         b->where);
    const struct codec_entry *entry = find_v3(name, &class);
    if (!entry)
        return error_set(b->e, HR_EUNSUPPORTED, "%s: codec \"%.80s\" is not supported", b->where,
                         name);
    if ((class == CODEC_BYTES) != b->is_bytes)
        return error_set(b->e, HR_EFORMAT,
                         "%s: codec \"%.80s\" (%s) stands %s the one array → bytes codec", b->where,
                         name, class_names[class], b->is_bytes ? "behind" : "before");
    if (class == CODEC_BYTES)
        b->chain->shard = NULL; /* what wraps a shard hides its inner chunks */
    return entry->make(b, entry, config);
}

int build_v3(struct build *b, const struct json *codecs, struct codec_chain **out)
{
    if (!json_is(codecs, JSON_ARRAY) || !codecs->size)
        return error_set(b->e, HR_EFORMAT, "%s: codecs must be a list of at least one codec",
                         b->where);
    b->codecs = codecs;
    for (b->at = 0; b->at < codecs->size; b->at++)
        TRY(add_v3(b, &codecs->items[b->at]));
    if (!b->is_bytes)
        return error_set(b->e, HR_EFORMAT,
                         "%s: codecs lack an array → bytes codec such as \"bytes\"", b->where);
    return build_finish(b, out);
}

int codec_chain_v3(struct arena *a, const struct json *codecs, const struct dtype *type, int ndim,
                   const uint64_t *shape, const void *fill, const char *where,
                   struct codec_chain **out, struct hr_error *e)
{
    struct build b = {.a = a, .where = where, .e = e, .v3 = true};
    TRY(build_begin(&b, type, ndim, shape, fill));
    return build_v3(&b, codecs, out);
}

/* ---- v2 ---------------------------------------------------------------------------------------------------------------- */

static int add_v2(struct build *b, const struct json *v)
{
    const char *id = json_str(json_is(v, JSON_OBJECT) ? json_get(v, "id") : v);
    if (!id)
        return error_set(b->e, HR_EFORMAT,
                         "%s: a compressor or filter must be an object with an id", b->where);
    if (!strcmp(id, "pickle"))
        return error_set(
            b->e, HR_EUNSUPPORTED,
            "%s: codec \"pickle\" is refused: reading it would run code from the archive",
            b->where);
    const struct codec_entry *entry = find_v2(id);
    if (!entry)
        return error_set(b->e, HR_EUNSUPPORTED, "%s: codec \"%.80s\" is not supported", b->where,
                         id);
    if (!b->is_bytes && b->chain->strings && entry->make != make_vlen)
        return error_set(b->e, HR_EFORMAT,
                         "%s: objects need an object codec such as vlen-utf8 before \"%.80s\"",
                         b->where, id);
    return entry->make(b, entry, v);
}

static int order_f(struct build *b)
{
    int *order = build_alloc(b, (size_t)b->ndim * sizeof *order);
    if (!order)
        return HR_ENOMEM;
    for (int i = 0; i < b->ndim; i++)
        order[i] = b->ndim - 1 - i;
    TRY(build_transpose(b, order));
    return build_text(b, "order F");
}

int codec_chain_v2(struct arena *a, const struct json *compressor, const struct json *filters,
                   char order, const struct dtype *type, int ndim, const uint64_t *shape,
                   const void *fill, const char *where, struct codec_chain **out,
                   struct hr_error *e)
{
    struct build b = {.a = a, .where = where, .e = e};
    bool has_filters = filters && !json_is(filters, JSON_NULL),
         has_compressor = compressor && !json_is(compressor, JSON_NULL);
    if (order != 'C' && order != 'F')
        return error_set(e, HR_EFORMAT, "%s: order must be \"C\" or \"F\"", where);
    if (has_filters && !json_is(filters, JSON_ARRAY))
        return error_set(e, HR_EFORMAT, "%s: filters must be a list or null", where);
    TRY(build_begin(&b, type, ndim, shape, fill));
    if (order == 'F' && ndim > 1)
        TRY(order_f(&b));
    if (!b.chain->strings) {
        struct dtype *stored = build_alloc(&b, sizeof *stored);
        if (!stored)
            return HR_ENOMEM;
        *stored = *type;
        TRY(build_native(&b, stored));
        b.is_bytes = true;
        if (dtype_has_order(type) && !type->n_fields)
            TRY(build_text(&b, "bytes(%s)", type->big_endian ? "big" : "little"));
    }
    for (uint32_t i = 0; has_filters && i < filters->size; i++)
        TRY(add_v2(&b, &filters->items[i]));
    if (has_compressor)
        TRY(add_v2(&b, compressor));
    if (!b.is_bytes)
        return error_set(e, HR_EFORMAT,
                         "%s: an object array without an object codec such as vlen-utf8", where);
    return build_finish(&b, out);
}
