/* Axes in another order: v3's `transpose`, v2's order F.
 *
 * Encoding stores B with B.shape[i] = A.shape[order[i]]; decoding copies back into A. The copy is one strided box copy:
 * lengths of 1 are dropped and axes that stay neighbours are joined, so that what remains is either rows (memcpy) or a
 * true transpose of its two fastest axes, which is done in tiles so that both sides use whole cache lines. A transpose
 * that moves nothing adds no step, and the chain stays what it would be without. */
#include "codec/step.h"

#include <string.h>

#define AXES_MAX 32

struct transpose {
    int ndim;
    uint64_t item, count;
    const uint64_t *shape;    /* of A */
    const int64_t *from, *to; /* byte strides of B and A along A's axes */
};

/* ---- box copy ------------------------------------------------------------------------------------------------------ */

struct axes {
    int n;
    uint64_t length[AXES_MAX];
    int64_t src[AXES_MAX], dst[AXES_MAX];
};

/* Drop lengths of 1 and join axes that run on into the next one on both sides. */
static void axes_init(struct axes *x, int ndim, const uint64_t *shape, const int64_t *src,
                      const int64_t *dst)
{
    x->n = 0;
    for (int d = 0; d < ndim; d++) {
        if (shape[d] == 1)
            continue;
        int last = x->n - 1;
        int64_t length = (int64_t)shape[d];
        if (last >= 0 && x->src[last] == src[d] * length && x->dst[last] == dst[d] * length) {
            x->length[last] *= shape[d];
            x->src[last] = src[d];
            x->dst[last] = dst[d];
            continue;
        }
        x->length[x->n] = shape[d];
        x->src[x->n] = src[d];
        x->dst[x->n++] = dst[d];
    }
}

#define TILE 16
#define COPY_TILES(size)                                                                           \
    for (uint64_t i0 = 0; i0 < n; i0 += TILE)                                                      \
        for (uint64_t j0 = 0; j0 < m; j0 += TILE) {                                                \
            uint64_t i1 = i0 + TILE < n ? i0 + TILE : n, j1 = j0 + TILE < m ? j0 + TILE : m;       \
            for (uint64_t i = i0; i < i1; i++)                                                     \
                for (uint64_t j = j0; j < j1; j++)                                                 \
                    memcpy(dst + (int64_t)i * di + (int64_t)j * dj,                                \
                           src + (int64_t)i * si + (int64_t)j * sj, size);                         \
        }                                                                                          \
    break

/* n × m items with strides si, sj to strides di, dj. */
static void copy_plane(uint64_t item, uint64_t n, uint64_t m, const uint8_t *src, int64_t si,
                       int64_t sj, uint8_t *dst, int64_t di, int64_t dj)
{
    switch (item) {
    case 1:
        COPY_TILES(1);
    case 2:
        COPY_TILES(2);
    case 4:
        COPY_TILES(4);
    case 8:
        COPY_TILES(8);
    case 16:
        COPY_TILES(16);
    default:
        COPY_TILES(item);
    }
}

/* Which axis pairs with the last one in a plane: the source's fastest, or the next outer one. */
static int partner(const struct axes *x)
{
    int best = x->n - 2;
    for (int d = 0; d < x->n - 1; d++)
        if (x->src[d] < x->src[best])
            best = d;
    return best;
}

void box_copy(int ndim, const uint64_t *shape, uint64_t item, const uint8_t *src,
              const int64_t *src_stride, uint8_t *dst, const int64_t *dst_stride)
{
    struct axes x;
    for (int d = 0; d < ndim; d++)
        if (!shape[d])
            return;
    axes_init(&x, ndim, shape, src_stride, dst_stride);
    int last = x.n - 1;
    if (last < 0 ||
        (x.src[last] == (int64_t)item && x.dst[last] == (int64_t)item)) { /* rows of bytes */
        item *= last < 0 ? 1 : x.length[last];
        x.n = last < 0 ? 0 : last;
        last = x.n - 1;
    }
    if (x.n == 0) {
        memcpy(dst, src, item);
        return;
    }
    bool rows = x.dst[last] != (int64_t)item ||
                x.n == 1; /* no transpose at the fastest level: copy item by item */
    int with = rows ? -1 : partner(&x);
    uint64_t at[AXES_MAX] = {0};
    for (;;) {
        if (with < 0)
            copy_plane(item, 1, x.length[last], src, 0, x.src[last], dst, 0, x.dst[last]);
        else
            copy_plane(item, x.length[with], x.length[last], src, x.src[with], x.src[last], dst,
                       x.dst[with], x.dst[last]);
        int d = last - 1;
        for (; d >= 0; d--) {
            if (d == with)
                continue;
            src += x.src[d];
            dst += x.dst[d];
            if (++at[d] < x.length[d])
                break;
            src -= x.src[d] * (int64_t)x.length[d];
            dst -= x.dst[d] * (int64_t)x.length[d];
            at[d] = 0;
        }
        if (d < 0)
            return;
    }
}

/* ---- the codec ----------------------------------------------------------------------------------------------------- */

static int transpose_decode(const struct step *s, struct codec_context *x, const uint8_t *src,
                            size_t n, uint8_t *dst, size_t cap, size_t *made, struct hr_error *e)
{
    const struct transpose *t = s->config;
    if (n != t->count * t->item)
        return wrong_size(e, "transpose", n, t->count * t->item);
    box_copy(t->ndim, t->shape, t->item, src, t->from, dst, t->to);
    *made = n;
    return 0;
}

static const struct step_kind transpose_kind = {.name = "transpose", .decode = transpose_decode};

/* Does any axis longer than 1 change its place among those? */
static bool moves(int ndim, const uint64_t *shape, const int *order)
{
    int before = -1;
    for (int i = 0; i < ndim; i++) {
        if (shape[order[i]] == 1)
            continue;
        if (order[i] < before)
            return true;
        before = order[i];
    }
    return false;
}

static int add_step(struct build *b, const int *order, const uint64_t *encoded)
{
    size_t n = (size_t)b->ndim;
    struct transpose *t = build_alloc(b, sizeof *t);
    int64_t *from = t ? build_alloc(b, n * sizeof *from) : NULL,
            *to = from ? build_alloc(b, n * sizeof *to) : NULL;
    if (!to)
        return HR_ENOMEM;
    int64_t stride = (int64_t)b->type.item_size;
    for (int i = b->ndim - 1; i >= 0; i--) {
        from[order[i]] = stride;
        stride *= (int64_t)encoded[i];
    }
    stride = (int64_t)b->type.item_size;
    for (int d = b->ndim - 1; d >= 0; d--) {
        to[d] = stride;
        stride *= (int64_t)b->shape[d];
    }
    *t = (struct transpose){b->ndim, b->type.item_size, b->count, b->shape, from, to};
    return build_step(b, &transpose_kind, t, b->size, b->exact);
}

int build_transpose(struct build *b, const int *order)
{
    uint64_t *encoded = build_alloc(b, (size_t)b->ndim * sizeof *encoded);
    int *total = encoded ? build_alloc(b, (size_t)b->ndim * sizeof *total) : NULL;
    if (!total)
        return HR_ENOMEM;
    for (int i = 0; i < b->ndim; i++) {
        encoded[i] = b->shape[order[i]];
        total[i] = b->order ? b->order[order[i]] : order[i];
    }
    bool is_text = b->type.kind == HR_STRING ||
                   b->type.kind == HR_BYTES; /* items are placed when they are cut */
    if (!is_text && moves(b->ndim, b->shape, order))
        TRY(add_step(b, order, encoded));
    b->shape = encoded;
    b->order = total;
    return 0;
}

int make_transpose(struct build *b, const struct codec_entry *self, const struct json *config)
{
    const struct json *v = json_get(config, "order");
    int order[AXES_MAX] = {0};
    bool seen[AXES_MAX] = {false};
    bool c = json_equal(v, "C"), f = json_equal(v, "F");
    if (b->ndim > AXES_MAX)
        return error_set(b->e, HR_EUNSUPPORTED, "%s: more than %d dimensions", b->where, AXES_MAX);
    if (!c && !f && (!json_is(v, JSON_ARRAY) || (int)v->size != b->ndim))
        return error_set(b->e, HR_EFORMAT, "%s: transpose needs an order of %d dimensions",
                         b->where, b->ndim);
    for (int i = 0; i < b->ndim; i++) {
        int64_t d = f ? b->ndim - 1 - i : i;
        if (!c && !f && !json_int64(&v->items[i], &d))
            d = -1;
        if (d < 0 || d >= b->ndim || seen[d])
            return error_set(b->e, HR_EFORMAT,
                             "%s: order of transpose is not a permutation of 0…%d", b->where,
                             b->ndim - 1);
        seen[d] = true;
        order[i] = (int)d;
    }
    TRY(build_transpose(b, order));
    return build_text(b, "transpose");
}
