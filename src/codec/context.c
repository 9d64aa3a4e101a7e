/* A worker's own things: decompressor contexts, which are dear to make, and recycled scratch. Both are made on first
 * need, so that a context for raw chunks costs nothing and one for zstd does not load blosc.
 *
 * Scratch is a stack of slots. A chain takes the next two (it alternates between them); whatever it calls, such as the
 * chain of a shard's inner chunks, starts behind them. The same depth meets the same sizes again and again, so slots
 * rarely grow. */
#include "codec/step.h"

#include <dlfcn.h>
#include <libdeflate.h>
#include <zstd.h>
#include "base/pages.h"

struct codec_context *codec_context_new(void)
{
    struct codec_context *x = mem_zalloc(sizeof *x);
    if (x)
        planes_kernels_init(&x->kernels);
    return x;
}

void codec_context_free(struct codec_context *x)
{
    if (!x)
        return;
    codec_context_trim(x, 0);
    mem_free(x->text.data);
    ZSTD_freeDCtx(x->zstd);
    libdeflate_free_decompressor(x->deflate);
    if (x->blosc)
        dlclose(x->blosc);
    mem_free(x);
}

void codec_context_trim(struct codec_context *x, size_t keep_bytes)
{
    size_t kept = 0;
    for (int i = 0; i < CONTEXT_SLOTS; i++) {
        kept += x->slots[i].size;
        if (kept <= keep_bytes)
            continue;
        kept -= x->slots[i].size;
        pages_unmap(x->slots[i].data, x->slots[i].size);
        x->slots[i].data = NULL;
        x->slots[i].size = 0;
    }
}

uint8_t *context_slot(struct codec_context *x, int i, size_t n, struct hr_error *e)
{
    if (i >= CONTEXT_SLOTS) {
        error_set(e, HR_EUNSUPPORTED, "codecs nested deeper than %d buffers", CONTEXT_SLOTS);
        return NULL;
    }
    if (x->slots[i].data && x->slots[i].size >= n)
        return x->slots[i].data;
    pages_unmap(x->slots[i].data, x->slots[i].size);
    x->slots[i].size = pages_round(n);
    x->slots[i].data = pages_map(x->slots[i].size);
    if (!x->slots[i].data) {
        x->slots[i].size = 0;
        error_nomem(e, n, "decoding scratch");
    }
    return x->slots[i].data;
}

struct ZSTD_DCtx_s *context_zstd(struct codec_context *x, struct hr_error *e)
{
    if (!x->zstd && !(x->zstd = ZSTD_createDCtx()))
        error_nomem(e, 0, "a zstd decompressor");
    return x->zstd;
}

struct libdeflate_decompressor *context_deflate(struct codec_context *x, struct hr_error *e)
{
    if (!x->deflate && !(x->deflate = libdeflate_alloc_decompressor()))
        error_nomem(e, 0, "a deflate decompressor");
    return x->deflate;
}
