/* Which bytes of a blosc frame some of its content needs (c-blosc README_CHUNK_FORMAT): blocks are found by the offsets behind
 * the header, and each ends where the next in the frame begins. For readers that need not fetch the rest. */
#include <string.h>

#include "codec/step.h"

#define HEADER 16

/* Little-endian, on any host. */
static uint32_t load(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

bool codec_chain_parted(const struct codec_chain *c)
{
    return c->n_steps == 1 && !c->strings && !strcmp(c->steps[0].kind->name, "blosc");
}

static uint32_t blocks_of(const uint8_t *head)
{
    uint64_t bytes = load(head + 4), block = load(head + 8);
    return block ? (uint32_t)((bytes + block - 1) / block) : 0;
}

uint64_t codec_part_head(const uint8_t *head, uint64_t n)
{
    uint8_t flags = head[2], inner = flags >> 5;
    bool stored = flags & 2, bits = flags & 4, known = inner == 1 || inner == 3 || inner == 4;
    uint64_t size = HEADER + 4 * (uint64_t)blocks_of(head);
    if (stored || bits || !known || load(head + 12) != n || !blocks_of(head) || size >= n)
        return 0;
    return size;
}

bool codec_part_span(const uint8_t *head, uint64_t n, uint64_t first, uint64_t end, uint64_t *from,
                     uint64_t *to)
{
    uint32_t blocks = blocks_of(head), low = (uint32_t)(first / load(head + 8)),
             high = (uint32_t)((end - 1) / load(head + 8));
    if (end <= first || high >= blocks)
        return false;
    *from = n;
    uint64_t last = 0;
    for (uint32_t b = low; b <= high; b++) {
        uint64_t at = load(head + HEADER + 4 * (uint64_t)b);
        *from = at < *from ? at : *from;
        last = at > last ? at : last;
    }
    *to = n;
    for (uint32_t b = 0; b < blocks; b++) {
        uint64_t at = load(head + HEADER + 4 * (uint64_t)b);
        *to = at > last && at < *to ? at : *to;
    }
    return *from >= HEADER + 4 * (uint64_t)blocks && *from < *to;
}
