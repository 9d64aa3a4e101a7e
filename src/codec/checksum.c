/* Checksums in front of or behind the bytes they cover: crc32c (v3's own, and the one of shard indexes), crc32, adler32,
 * HDF5's fletcher32 and lookup3. A mismatch is always an error: the check is part of reading the chunk.
 *
 * The result is a view of the input, so that a checksum costs one pass and no copy. */
#include "base/crc32c.h"
#include "codec/step.h"

#include <libdeflate.h>
#include <string.h>

struct checksum {
    uint32_t (*sum)(const struct checksum *c, const uint8_t *data, size_t n);
    bool at_start;
    uint32_t initial;      /* lookup3 */
    const uint8_t *prefix; /* lookup3: bytes hashed before the data */
    size_t n_prefix;
    const uint32_t (*table)[256]; /* crc32c without the instruction */
};

static uint32_t load_u32(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint32_t sum_crc32c(const struct checksum *c, const uint8_t *p, size_t n)
{
    return crc32c(c->table, p, n);
}

static int use_crc32c(struct build *b, struct checksum *c)
{
    c->sum = sum_crc32c;
    if (!crc32c_needs_table())
        return 0;
    crc32c_table *t = build_alloc(b, sizeof *t);
    if (!t)
        return HR_ENOMEM;
    crc32c_make_table(*t);
    c->table = *t;
    return 0;
}

/* ---- the others ------------------------------------------------------------------------------------------------- */

static uint32_t sum_crc32(const struct checksum *c, const uint8_t *p, size_t n)
{
    return libdeflate_crc32(0, p, n);
}

static uint32_t sum_adler32(const struct checksum *c, const uint8_t *p, size_t n)
{
    return libdeflate_adler32(1, p, n);
}

/* HDF5's H5_checksum_fletcher32: big-endian 16-bit words; sums are folded, not reduced modulo 65535. */
static uint32_t sum_fletcher32(const struct checksum *c, const uint8_t *p, size_t n)
{
    uint32_t low = 0, high = 0;
    for (size_t words = n / 2; words;) {
        size_t block = words > 360 ? 360 : words; /* the most before 32 bits could overflow */
        words -= block;
        for (; block; block--, p += 2) {
            low += (uint32_t)p[0] << 8 | p[1];
            high += low;
        }
        low = (low & 0xffff) + (low >> 16);
        high = (high & 0xffff) + (high >> 16);
    }
    if (n % 2) {
        low += (uint32_t)*p << 8;
        high += low;
        low = (low & 0xffff) + (low >> 16);
        high = (high & 0xffff) + (high >> 16);
    }
    low = (low & 0xffff) + (low >> 16);
    high = (high & 0xffff) + (high >> 16);
    return high << 16 | low;
}

static uint32_t rotate(uint32_t v, int by)
{
    return v << by | v >> (32 - by);
}

/* Bob Jenkins' lookup3 hashlittle, the part for 12 more bytes … */
static void lookup3_mix(uint32_t s[3])
{
    static const int by[] = {4, 6, 8, 16, 19, 4};
    for (int i = 0; i < 6; i++) {
        uint32_t *a = &s[i % 3], *b = &s[(i + 1) % 3], *c = &s[(i + 2) % 3];
        *a -= *c;
        *a ^= rotate(*c, by[i]);
        *c += *b;
    }
}

/* … and for the end. */
static void lookup3_final(uint32_t s[3])
{
    static const int by[] = {14, 11, 25, 16, 4, 14, 24};
    for (int i = 0; i < 7; i++) {
        uint32_t *x = &s[(i + 2) % 3], *y = &s[(i + 1) % 3];
        *x ^= *y;
        *x -= rotate(*y, by[i]);
    }
}

static uint8_t byte_at(const struct checksum *c, const uint8_t *p, size_t i)
{
    return i < c->n_prefix ? c->prefix[i] : p[i - c->n_prefix];
}

static uint32_t sum_lookup3(const struct checksum *c, const uint8_t *p, size_t n)
{
    size_t left = n + c->n_prefix, at = 0;
    uint32_t start = 0xdeadbeef + (uint32_t)left + c->initial, s[3] = {start, start, start};
    for (; left > 12; left -= 12) {
        for (int w = 0; w < 3; w++, at += 4)
            s[w] += byte_at(c, p, at) | (uint32_t)byte_at(c, p, at + 1) << 8 |
                    (uint32_t)byte_at(c, p, at + 2) << 16 | (uint32_t)byte_at(c, p, at + 3) << 24;
        lookup3_mix(s);
    }
    if (!left)
        return s[2];
    for (size_t i = 0; i < left; i++)
        s[i / 4] += (uint32_t)byte_at(c, p, at + i) << (8 * (i % 4));
    lookup3_final(s);
    return s[2];
}

/* ---- the step ----------------------------------------------------------------------------------------------------- */

static int checksum_view(const struct step *s, const uint8_t *src, size_t n, const uint8_t **out,
                         size_t *made, struct hr_error *e)
{
    const struct checksum *c = s->config;
    const char *name = s->kind->name;
    if (n < 4)
        return error_set(e, HR_EDATA, "%s: %zu bytes cannot hold a checksum of 4", name, n);
    const uint8_t *data = c->at_start ? src + 4 : src;
    uint32_t stored = load_u32(c->at_start ? src : src + n - 4), computed = c->sum(c, data, n - 4);
    if (stored != computed)
        return error_set(e, HR_EDATA,
                         "%s: checksum mismatch (stored %08x, computed %08x); the chunk is damaged",
                         name, stored, computed);
    *out = data;
    *made = n - 4;
    return 0;
}

static const struct step_kind kinds[] = {
    {.name = "crc32c", .view = checksum_view},
    {.name = "crc32", .view = checksum_view},
    {.name = "adler32", .view = checksum_view},
    {.name = "fletcher32", .view = checksum_view},
    {.name = "jenkins_lookup3", .view = checksum_view},
};

static int lookup3_config(struct build *b, struct checksum *c, const struct json *config)
{
    const struct json *prefix = json_get(config, "prefix");
    int64_t initial;
    TRY(config_int(b, "jenkins_lookup3", config, "initval", 0, 0, UINT32_MAX, &initial));
    c->initial = (uint32_t)initial;
    if (!prefix || json_is(prefix, JSON_NULL))
        return 0;
    bool is_list = json_is(prefix, JSON_ARRAY);
    if (!is_list && !json_is(prefix, JSON_STRING))
        return error_set(b->e, HR_EFORMAT, "%s: prefix of jenkins_lookup3 must be bytes", b->where);
    uint8_t *bytes = build_alloc(b, prefix->size);
    if (!bytes)
        return HR_ENOMEM;
    for (uint32_t i = 0; i < prefix->size; i++) {
        int64_t v = is_list ? -1 : (uint8_t)prefix->string[i];
        if (is_list && (!json_int64(&prefix->items[i], &v) || v < 0 || v > 255))
            return error_set(b->e, HR_EFORMAT, "%s: prefix of jenkins_lookup3 must be bytes",
                             b->where);
        bytes[i] = (uint8_t)v;
    }
    c->prefix = bytes;
    c->n_prefix = prefix->size;
    return 0;
}

int make_checksum(struct build *b, const struct codec_entry *self, const struct json *config)
{
    static uint32_t (*const sums[])(const struct checksum *, const uint8_t *, size_t) = {
        NULL, sum_crc32, sum_adler32, sum_fletcher32, sum_lookup3};
    const char *name = self->name;
    struct checksum *c = build_alloc(b, sizeof *c);
    if (!c)
        return HR_ENOMEM;
    size_t i = 0;
    while (strcmp(kinds[i].name, name))
        i++;
    c->sum = sums[i];
    if (i == 0)
        TRY(use_crc32c(b, c));
    if (i == 4)
        TRY(lookup3_config(b, c, config));
    const struct json *location = json_get(config, "location");
    c->at_start = i == 1 || i == 2; /* numcodecs' defaults */
    if (json_equal(location, "start") || json_equal(location, "end"))
        c->at_start = json_equal(location, "start");
    else if (location && !json_is(location, JSON_NULL))
        return error_set(b->e, HR_EFORMAT, "%s: location of %s must be \"start\" or \"end\"",
                         b->where, name);
    TRY(build_step(b, &kinds[i], c, b->size ? b->size + 4 : 0, b->exact));
    return build_text(b, "%s", name);
}
