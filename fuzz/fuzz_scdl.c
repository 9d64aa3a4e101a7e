/* A header of SCDL comes from whoever wrote the archive, and what it says is not what the objects are. Whatever both are: no
 * crash, no leak, no endless round; opening is an error with a code and a text, or gives arrays that either have a problem
 * or agree with the sizes of their objects.
 *
 * An input: one byte of bits (1: the store cannot list, 2: it hides sizes, 4: no header, 8: chunks are zips), one byte that
 * shortens every object but the header, two bytes that are the length of the header; what follows it are the bytes of all
 * other objects, over and over. */
#include "base/mem.h"
#include "format/scdl.h"

#include <stdlib.h>
#include <string.h>

#define HOLD(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            __builtin_trap();                                                                      \
    } while (0)
#define OBJECT_MOST 4096

struct input {
    bool cannot_list, hides_sizes, headless, zips;
    uint8_t size;
    const uint8_t *header, *rest;
    size_t n_header, n_rest;
    uint8_t object[OBJECT_MOST];
};

static const char NAMES[] =
    "header.sch\0row_ptr.npy\0col_ptr.npy\0data.npy\0metadata.json\0chunk_00000/";

static size_t object_of(struct input *in, const char *key)
{
    size_t n = (size_t)in->size * (strstr(key, "row_ptr") ? 8 : 4), shift = strlen(key);
    if (strstr(key, ".npz"))
        n = in->n_rest < OBJECT_MOST ? in->n_rest : OBJECT_MOST;
    for (size_t i = 0; i < n; i++)
        in->object[i] = in->n_rest ? in->rest[(i + (n == in->n_rest ? 0 : shift)) % in->n_rest] : 0;
    return n;
}

static void answer(struct input *in, const struct need *need, struct answer *out)
{
    *out = (struct answer){.kind = ANSWER_MISSING};
    if (need->kind == NEED_LIST) {
        size_t skip = in->headless ? strlen(NAMES) + 1 : 0;
        *out = (struct answer){in->cannot_list ? ANSWER_UNSUPPORTED : ANSWER_BYTES, NAMES + skip,
                               sizeof NAMES - skip};
        return;
    }
    HOLD(*need->key && !strstr(need->key, ".."));
    if (!strcmp(need->key, "header.sch")) {
        if (!in->headless)
            *out = (struct answer){ANSWER_BYTES, in->header, in->n_header};
        return;
    }
    bool zip = strstr(need->key, ".npz");
    if (need->kind != NEED_RANGE || (strchr(need->key, '/') && zip != in->zips))
        return;
    size_t size = object_of(in, need->key), n = (size_t)need->length;
    size_t from = need->offset >= 0 ? (size_t)need->offset : size > n ? size - n : 0;
    from = from < size ? from : size;
    n = n < size - from ? n : size - from;
    *out = (struct answer){ANSWER_BYTES, in->object + from, n, in->hides_sizes ? 0 : size};
}

static int finish(struct input *in, struct reader *r, struct hr_error *e)
{
    for (int guard = 0; guard < 10000; guard++) {
        struct need need;
        struct answer got;
        int rc = reader_step(r, &need, e);
        if (rc != READER_NEED)
            return rc;
        answer(in, &need, &got);
        if ((rc = reader_feed(r, &got, e)) < 0)
            return rc;
    }
    HOLD(!"the round ends");
    return 0;
}

static void hold_array(struct input *in, const struct array *x)
{
    struct hr_error e;
    struct where w;
    if (x->problem) {
        HOLD(x->problem_code < 0 && x->problem_code != HR_ENOMEM && *x->problem);
        return;
    }
    HOLD(x->ndim == 1 && x->object && x->n_chunks == (x->shape[0] ? 1 : 0));
    if (!x->n_chunks)
        return;
    HOLD(array_locate(x, NULL, 0, &w, &e) == 0 && !strcmp(w.key, x->object));
    HOLD(w.kind == (array_chunk_raw(x, 0) ? WHERE_OBJECT : WHERE_RANGE));
    uint64_t size = object_of(in, x->object);
    if (w.kind == WHERE_RANGE) {
        HOLD(w.offset <= size && w.length <= size - w.offset);
        struct codec_context *c = codec_context_new();
        uint64_t n = codec_chain_decoded_size(x->chain);
        void *items = n <= 1 << 20 ? mem_alloc(n) : NULL;
        HOLD(n == x->shape[0] * x->type.item_size);
        if (items)
            HOLD(codec_chain_decode(x->chain, c, in->object + w.offset, w.length, items, &e) >= 0 ||
                 *e.text);
        mem_free(items);
        codec_context_free(c);
    } else if (!in->hides_sizes) {
        HOLD(size == x->shape[0] * x->type.item_size);
    }
}

static void hold_archive(struct input *in, struct reader *r)
{
    const struct array *const *arrays;
    struct scdl_shape s;
    struct hr_error e;
    uint64_t first;
    HOLD(reader_walk(r, &e) == 0 && finish(in, r, &e) == READER_READY);
    HOLD(reader_want(r, "chunk_00001/data", &e) == 0 ? finish(in, r, &e) <= 0 : *e.text != 0);
    int n = reader_arrays(r, &arrays);
    for (int i = 0; i < n; i++)
        hold_array(in, arrays[i]);
    if (!scdl_describe(r, &s) || !s.n_chunks)
        return;
    HOLD(scdl_chunk_rows(&s, s.n_chunks - 1, &first) <= s.chunk_rows && first <= s.n_rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct hr_error e = {0};
    uint64_t before = mem_live();
    if (n < 4)
        return 0;
    struct input *in = calloc(1, sizeof *in);
    struct reader *r = reader_new(&e);
    HOLD(in && r);
    in->cannot_list = data[0] & 1;
    in->hides_sizes = data[0] & 2;
    in->headless = data[0] & 4;
    in->zips = data[0] & 8;
    in->size = data[1];
    in->n_header = (size_t)data[2] << 8 | data[3];
    in->header = data + 4;
    if (in->n_header > n - 4)
        in->n_header = n - 4;
    in->rest = in->header + in->n_header;
    in->n_rest = n - 4 - in->n_header;
    int rc = finish(in, r, &e);
    HOLD(rc == READER_READY || (rc < 0 && e.code == rc && *e.text));
    if (rc == READER_READY)
        hold_archive(in, r);
    reader_free(r);
    free(in);
    HOLD(mem_live() == before);
    return 0;
}
