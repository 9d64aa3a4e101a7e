/* Zips of NPY files: the directory, the members and the headers in them. Whatever the bytes are: entries lie within the
 * object, a member that decodes has the size that was promised, and every error has a text.
 *
 * An input: one byte; 0: an NPY file follows, else a zip. */
#include "base/mem.h"
#include "format/zip.h"

#include <string.h>

#define HOLD(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            __builtin_trap();                                                                      \
    } while (0)
#define ENTRIES     16
#define DECODE_MOST (1u << 20)

static void hold_head(const uint8_t *data, size_t n)
{
    struct npy_head h;
    struct hr_error e = {0};
    if (npy_head_parse(data, n, &h, &e) < 0) {
        HOLD(e.code < 0 && *e.text);
        return;
    }
    HOLD(h.size >= 10 && h.size <= n && h.size <= NPY_HEAD_MOST && h.ndim >= 0 &&
         h.ndim <= NPY_DIMS && strlen(h.descr) < sizeof h.descr);
}

/* As row_ptr is read, and as an array is. */
static void hold_member(const struct zip_entry *x, const uint8_t *data)
{
    struct hr_error e = {0};
    struct npy_head h;
    const uint8_t *items;
    uint64_t bytes;
    struct arena a;
    struct dtype type;
    struct codec_chain *chain;
    if (x->member.size > DECODE_MOST)
        return;
    struct codec_context *c = codec_context_new();
    arena_init(&a);
    HOLD(c && dtype_from_numpy(&a, "<u4", "fuzz", &type, &e) >= 0);
    int rc = npz_member_read(c, &x->member, data + x->offset, x->span, &h, &items, &bytes, &e);
    HOLD(rc == 0 ? h.size + bytes == x->member.size : rc < 0 && *e.text);
    uint64_t count = rc == 0 && h.ndim == 1 ? bytes / 4 : x->member.size / 4;
    rc = codec_chain_npz(&a, &x->member, &type, count, x->span, "fuzz", &chain, &e);
    HOLD(rc == 0 || *e.text);
    if (rc == 0) {
        void *to = mem_alloc(count * 4);
        HOLD(to && codec_chain_decoded_size(chain) == count * 4);
        rc = codec_chain_decode(chain, c, data + x->offset, x->span, to, &e);
        HOLD(rc == 0 || *e.text);
        mem_free(to);
    }
    arena_dispose(&a);
    codec_context_free(c);
}

static void hold_zip(const uint8_t *data, size_t n, uint64_t object_size)
{
    struct zip_entry entries[ENTRIES];
    struct hr_error e = {0};
    size_t count = 0;
    if (zip_directory(data, n, object_size, "fuzz", entries, ENTRIES, &count, &e) < 0) {
        HOLD(e.code < 0 && *e.text);
        return;
    }
    HOLD(count <= ENTRIES);
    for (size_t i = 0; i < count && object_size; i++) {
        HOLD(entries[i].offset < n && entries[i].span <= n - entries[i].offset);
        hold_member(&entries[i], data);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    uint64_t before = mem_live();
    if (!n)
        return 0;
    if (*data) {
        hold_zip(data + 1, n - 1, n - 1);
        hold_zip(data + 1, n - 1, 0);
    } else {
        hold_head(data + 1, n - 1);
    }
    HOLD(mem_live() == before);
    return 0;
}
