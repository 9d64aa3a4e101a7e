/* See npz.h. In decoding order a chain is: the member is taken out of its zip (one pass of inflate, CRC-32 checked), then
 * the items are what follows the NPY header in it. Formats: PKWARE APPNOTE 6.3.10 §4.3.7, RFC 1951, numpy.lib.format. */
#include "codec/npz.h"

#include <libdeflate.h>
#include <stdio.h>
#include <string.h>
#include "codec/step.h"

#define DEFLATE_MOST 1032 /* bytes that one byte of deflate can stand for */

/* ---- the NPY header --------------------------------------------------------------------------------------------- */

struct text {
    const char *at, *end;
};

static int wrong_head(struct hr_error *e, const char *what)
{
    return error_set(e, HR_EDATA, "npy: %s", what);
}

static void skip_spaces(struct text *t)
{
    while (t->at < t->end && (*t->at == ' ' || *t->at == '\n'))
        t->at++;
}

static bool take_char(struct text *t, char c)
{
    skip_spaces(t);
    if (t->at == t->end || *t->at != c)
        return false;
    t->at++;
    return true;
}

static bool take_word(struct text *t, const char *word)
{
    size_t n = strlen(word);
    skip_spaces(t);
    if ((size_t)(t->end - t->at) < n || memcmp(t->at, word, n))
        return false;
    t->at += n;
    return true;
}

/* 'text', without escapes. */
static bool take_quoted(struct text *t, char *out, size_t room)
{
    skip_spaces(t);
    if (t->at == t->end || (*t->at != '\'' && *t->at != '"'))
        return false;
    const char *close = memchr(t->at + 1, *t->at, (size_t)(t->end - t->at - 1));
    size_t n = close ? (size_t)(close - t->at - 1) : room;
    if (n >= room)
        return false;
    memcpy(out, t->at + 1, n);
    out[n] = '\0';
    t->at = close + 1;
    return true;
}

static bool take_length(struct text *t, uint64_t *out)
{
    skip_spaces(t);
    const char *begin = t->at;
    for (*out = 0; t->at < t->end && *t->at >= '0' && *t->at <= '9'; t->at++)
        if (!mul_u64(*out, 10, out) || !add_u64(*out, (uint64_t)(*t->at - '0'), out))
            return false;
    return t->at > begin;
}

static bool take_shape(struct text *t, struct npy_head *h)
{
    if (!take_char(t, '('))
        return false;
    for (h->ndim = 0; !take_char(t, ')'); h->ndim++) {
        if (h->ndim == NPY_DIMS || !take_length(t, &h->shape[h->ndim]))
            return false;
        if (!take_char(t, ',')) {
            h->ndim++;
            return take_char(t, ')');
        }
    }
    return true;
}

/* {'descr': '<f4', 'fortran_order': False, 'shape': (3,), } in any order. */
static bool take_dict(struct text *t, struct npy_head *h)
{
    char key[16];
    bool descr = false, order = false, shape = false;
    if (!take_char(t, '{'))
        return false;
    while (!take_char(t, '}')) {
        if (!take_quoted(t, key, sizeof key) || !take_char(t, ':'))
            return false;
        if (!strcmp(key, "descr") && !descr)
            descr = take_quoted(t, h->descr, sizeof h->descr);
        else if (!strcmp(key, "fortran_order") && !order)
            order = (h->fortran = take_word(t, "True")) || take_word(t, "False");
        else if (!strcmp(key, "shape") && !shape)
            shape = take_shape(t, h);
        else
            return false;
        if (!take_char(t, ',')) {
            if (!take_char(t, '}'))
                return false;
            break;
        }
    }
    skip_spaces(t);
    return descr && order && shape && t->at == t->end;
}

int npy_head_parse(const uint8_t *data, size_t n, struct npy_head *out, struct hr_error *e)
{
    *out = (struct npy_head){0};
    if (n < 10 || memcmp(data, "\x93NUMPY", 6))
        return wrong_head(e, "no NPY header where one should stand");
    bool wide = data[6] >= 2;
    if (data[6] < 1 || data[6] > 3)
        return error_set(e, HR_EUNSUPPORTED, "npy: format version %u; 1 to 3 are read", data[6]);
    size_t at = wide ? 12 : 10;
    if (n < at)
        return wrong_head(e, "cut short in its header");
    uint64_t length = data[8] | (uint64_t)data[9] << 8;
    if (wide)
        length |= (uint64_t)data[10] << 16 | (uint64_t)data[11] << 24;
    if (length > NPY_HEAD_MOST - 12)
        return wrong_head(e, "a header of more than 64 KiB");
    if (length > n - at)
        return wrong_head(e, "cut short in its header");
    struct text t = {(const char *)data + at, (const char *)data + at + length};
    if (!take_dict(&t, out))
        return wrong_head(e, "its header is not that of a plain array");
    out->size = at + length;
    return 0;
}

/* ---- the member of a zip ---------------------------------------------------------------------------------------- */

static uint16_t load_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static int wrong_zip(struct hr_error *e, const char *what)
{
    return error_set(e, HR_EDATA, "zip: %s; the object is damaged", what);
}

/* The compressed bytes of the member whose local header is at src. */
static int find_member(const struct zip_member *m, const uint8_t *src, size_t n,
                       const uint8_t **out, struct hr_error *e)
{
    if (n < ZIP_LOCAL || memcmp(src, "PK\3\4", 4))
        return wrong_zip(e, "no member begins where its directory says");
    size_t head = (size_t)ZIP_LOCAL + load_u16(src + 26) + load_u16(src + 28);
    if (load_u16(src + 8) != m->method || load_u16(src + 6) & 1)
        return wrong_zip(e, "a member is packed in another way than its directory says");
    if (n < head || n - head < m->stored)
        return wrong_zip(e, "a member runs into what follows it");
    *out = src + head;
    return 0;
}

/* size bytes, all of the member. */
static int unpack(struct codec_context *x, const struct zip_member *m, const uint8_t *src, size_t n,
                  uint8_t *dst, struct hr_error *e)
{
    const uint8_t *packed = NULL;
    size_t read = m->stored, made = m->size;
    TRY(find_member(m, src, n, &packed, e));
    if (m->method == 0) {
        if (m->stored != m->size)
            return wrong_zip(e, "a member that is stored has two sizes");
        memcpy(dst, packed, m->size);
    } else {
        struct libdeflate_decompressor *d = context_deflate(x, e);
        if (!d)
            return HR_ENOMEM;
        enum libdeflate_result rc =
            libdeflate_deflate_decompress_ex(d, packed, m->stored, dst, m->size, &read, &made);
        if (rc != LIBDEFLATE_SUCCESS || read != m->stored || made != m->size)
            return wrong_zip(e, "a member is not the deflate stream its directory describes");
    }
    uint32_t crc = libdeflate_crc32(0, dst, m->size);
    if (crc != m->crc)
        return error_set(e, HR_EDATA,
                         "zip: checksum mismatch (stored %08x, computed %08x); the object is "
                         "damaged",
                         m->crc, crc);
    return 0;
}

static int check_member(const struct zip_member *m, struct hr_error *e)
{
    if (m->method != 0 && m->method != 8)
        return error_set(e, HR_EUNSUPPORTED,
                         "zip: packing method %u; 0 (stored) and 8 (deflate) are read", m->method);
    uint64_t most;
    if (m->size > INT64_MAX / 4 || m->stored > INT64_MAX / 4 ||
        !mul_u64(m->stored, DEFLATE_MOST, &most) || m->size > most)
        return wrong_zip(e, "a member is said to be larger than its bytes can tell");
    return 0;
}

int npz_member_read(struct codec_context *x, const struct zip_member *m, const void *src, size_t n,
                    struct npy_head *head, const uint8_t **items, uint64_t *bytes,
                    struct hr_error *e)
{
    TRY(check_member(m, e));
    uint8_t *to = context_slot(x, x->depth, m->size, e);
    if (!to)
        return HR_ENOMEM;
    TRY(unpack(x, m, src, n, to, e));
    TRY(npy_head_parse(to, m->size, head, e));
    *items = to + head->size;
    *bytes = m->size - head->size;
    return 0;
}

/* ---- the chain -------------------------------------------------------------------------------------------------- */

static int zip_decode(const struct step *s, struct codec_context *x, const uint8_t *src, size_t n,
                      uint8_t *dst, size_t cap, size_t *made, struct hr_error *e)
{
    const struct zip_member *m = s->config;
    *made = m->size;
    return m->size > cap ? STEP_SMALL : unpack(x, m, src, n, dst, e);
}

static const struct step_kind zip_kind = {.name = "zip", .decode = zip_decode};

struct npy_config {
    char descr[8];
    uint64_t count;
};

static int npy_view(const struct step *s, const uint8_t *src, size_t n, const uint8_t **out,
                    size_t *made, struct hr_error *e)
{
    const struct npy_config *c = s->config;
    struct npy_head h;
    TRY(npy_head_parse(src, n, &h, e));
    if (strcmp(h.descr, c->descr) || h.ndim != 1 || h.shape[0] != c->count)
        return error_set(e, HR_EDATA,
                         "npy: an array of type %s and %llu items in %d dimensions, where %llu of "
                         "type %s in one are expected",
                         h.descr, (unsigned long long)(h.ndim ? h.shape[0] : 1), h.ndim,
                         (unsigned long long)c->count, c->descr);
    *out = src + h.size;
    *made = n - h.size;
    return 0;
}

/* As numpy writes the type of little-endian numbers. */
static int npy_descr(const struct dtype *t, char *out, size_t room, struct hr_error *e)
{
    bool is_unsigned = t->kind >= HR_U8 && t->kind <= HR_U64;
    bool is_float = t->kind == HR_F16 || t->kind == HR_F32 || t->kind == HR_F64;
    if (!is_unsigned && !is_float && (t->kind < HR_I8 || t->kind > HR_I64))
        return error_set(e, HR_EUNSUPPORTED, "npy: arrays of type %s are not read", t->name);
    snprintf(out, room, "%c%c%u", t->item_size == 1 ? '|' : '<',
             is_unsigned ? 'u'
             : is_float  ? 'f'
                         : 'i',
             (unsigned)t->item_size);
    return 0;
}

static const struct step_kind npy_kind = {.name = "npy", .view = npy_view};

int codec_chain_npz(struct arena *a, const struct zip_member *m, const struct dtype *type,
                    uint64_t count, uint64_t span, const char *where, struct codec_chain **out,
                    struct hr_error *e)
{
    struct build b = {.a = a, .where = where, .e = e, .is_bytes = true};
    TRY(check_member(m, e));
    TRY(build_begin(&b, type, 1, &count, NULL));
    if (m->size < b.size || m->size - b.size > NPY_HEAD_MOST)
        return error_set(e, HR_EDATA,
                         "%s: a member of %llu bytes cannot hold %llu items of %llu bytes", where,
                         (unsigned long long)m->size, (unsigned long long)count,
                         (unsigned long long)type->item_size);
    struct zip_member *member = build_alloc(&b, sizeof *member);
    struct npy_config *npy = build_alloc(&b, sizeof *npy);
    struct dtype *stored = build_alloc(&b, sizeof *stored);
    if (!member || !npy || !stored)
        return HR_ENOMEM;
    *member = *m;
    *stored = *type;
    npy->count = count;
    TRY(npy_descr(type, npy->descr, sizeof npy->descr, e));
    TRY(build_native(&b, stored));
    TRY(build_step(&b, &npy_kind, npy, m->size, true));
    TRY(build_step(&b, &zip_kind, member, span, false));
    TRY(build_text(&b, "npy → %s", m->method ? "zip(deflate)" : "zip(stored)"));
    return build_finish(&b, out);
}
