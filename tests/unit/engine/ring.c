/* The ring of job memory: blocks stay as they were written, whatever the order in which others come and go. */
#include "engine/ring.h"

#include "base/keyed.h"
#include "base/mem.h"
#include "t.h"

#define BLOCKS 64

static struct {
    unsigned char *at;
    size_t size;
    unsigned char mark;
} held[BLOCKS];

static bool intact(int i)
{
    for (size_t k = 0; k < held[i].size; k++)
        if (held[i].at[k] != held[i].mark)
            return false;
    return true;
}

static void blocks_never_overlap(void)
{
    struct ring r;
    uint64_t taken = 0, refused = 0;
    check_eq(ring_init(&r, 4096), 0);
    for (uint64_t i = 0; i < 100000; i++) {
        int slot = (int)(keyed_word(3, i) % BLOCKS);
        if (held[slot].at) {
            if (!check(intact(slot)))
                break;
            ring_give(&r, held[slot].at);
            held[slot].at = NULL;
            continue;
        }
        size_t room = ring_room(&r), size = keyed_word(4, i) % 300;
        held[slot].at = ring_take(&r, size);
        check((held[slot].at != NULL) == (size <= room && room));
        held[slot].size = size;
        held[slot].mark = (unsigned char)i;
        *(held[slot].at ? &taken : &refused) += 1;
        if (held[slot].at && keyed_word(5, i) % 4 == 0)
            ring_trim(&r, held[slot].at, held[slot].size = size / 2);
        if (held[slot].at)
            memset(held[slot].at, held[slot].mark, held[slot].size);
        check_eq((uintptr_t)held[slot].at % 8, 0);
    }
    check(taken > 10000 && refused > 1000);
    for (int i = 0; i < BLOCKS; i++)
        ring_give(&r, held[i].at);
    check_eq(r.blocks, 0);
    check(ring_room(&r) >= 4096);
    ring_dispose(&r);
    check_eq(mem_live(), 0);
}

static void an_empty_ring_is_one_block(void)
{
    struct ring r;
    check_eq(ring_init(&r, 1000), 0);
    for (int i = 0; i < 10; i++) {
        void *small = ring_take(&r, 100), *other = ring_take(&r, 300);
        check(small && other && !ring_take(&r, 1000));
        ring_give(&r, small);
        ring_give(&r, other);
        void *whole = ring_take(&r, 1000);
        check(whole != NULL);
        ring_give(&r, whole);
    }
    ring_dispose(&r);
}

static void room_behind_the_oldest_block_waits_for_it(void)
{
    struct ring r;
    check_eq(ring_init(&r, 1000), 0);
    void *oldest = ring_take(&r, 100), *next = ring_take(&r, 600);
    ring_give(&r, next);
    check(!ring_take(&r, 700));
    ring_give(&r, oldest);
    check(ring_take(&r, 700) != NULL);
    ring_dispose(&r);
}

int main(void)
{
    RUN(blocks_never_overlap);
    RUN(an_empty_ring_is_one_block);
    RUN(room_behind_the_oldest_block_waits_for_it);
    return t_done();
}
