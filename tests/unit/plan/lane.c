/* Lanes and their merging against a look at every row: keys rise, inversion is exact to the unit,
 * equal keys keep their order. */
#include "plan/stream.h"
#include "setup.h"

struct epoch {
    struct blocks blocks;
    struct order order;
    struct order_cut begin, end;
    uint64_t t[2][64];
};

/* B blocks of `size` rows (the last shorter), in k strata. */
static void epoch_init(struct epoch *x, uint64_t blocks, uint64_t size, uint64_t spread,
                       uint64_t key)
{
    *x = (struct epoch){.blocks = {.n = blocks,
                                   .rows = (blocks - 1) * size + size / 2 + 1,
                                   .size = size,
                                   .head = size,
                                   .tail = size / 2 + 1,
                                   .largest = size}};
    if (blocks == 1)
        x->blocks.head = x->blocks.size = x->blocks.largest = x->blocks.tail;
    check(!order_init(&x->order, &x->blocks, spread, key, order_move(key), NULL));
    x->begin.t = x->t[0];
    x->end.t = x->t[1];
}

static void stream_of(struct epoch *x, struct stream *s, uint64_t from, uint64_t to)
{
    order_cut(&x->order, from, &x->begin);
    order_cut(&x->order, to, &x->end);
    check(!stream_init(s, &x->order, 3, from, to, &x->begin, &x->end, NULL));
}

static void keys_rise_and_are_inverted_exactly(void)
{
    for (uint64_t blocks = 1; blocks < 40; blocks += 1 + blocks / 7)
        for (uint64_t size = 1; size < 40; size += 7)
            for (uint64_t spread = 1; spread < 20; spread += 6) {
                struct epoch x;
                struct stream s;
                epoch_init(&x, blocks, size, spread, blocks * 1000 + size);
                stream_of(&x, &s, x.blocks.rows / 5, x.blocks.rows);
                for (uint64_t i = 0; i < s.n; i++) {
                    const struct lane *l = &s.lanes[i];
                    for (uint64_t q = 0; q < l->rows; q++) {
                        int64_t key = lane_key(l, q);
                        check(key >= 0 && key < ORDER_ONE && (!q || key > lane_key(l, q - 1)));
                        check_eq(lane_before(l, key), q);
                        check_eq(lane_before(l, key + 1), q + 1);
                    }
                    check_eq(lane_before(l, 0), 0);
                    check_eq(lane_before(l, ORDER_ONE), l->rows);
                }
                stream_dispose(&s);
                order_dispose(&x.order);
            }
}

/* Lanes of one size with one key: every row of the first has an equal in each of the others. */
static void equal_keys_go_out_by_lane(void)
{
    struct epoch x;
    struct stream s;
    epoch_init(&x, 8, 6, 8, 1);
    x.blocks.tail = 6;
    x.blocks.rows = 48;
    x.order.strata[7].rows = 6;
    stream_of(&x, &s, 0, 48);
    check_eq(s.n, 8);
    uint64_t ranks[48];
    for (uint64_t i = 1; i < 8; i++)
        s.lanes[i].jitter = s.lanes[0].jitter;
    stream_seek(&s, 0);
    for (uint64_t r = 0; r < 48; r++) {
        check_eq(s.heap[0], r % 8);
        ranks[r] = stream_next(&s);
    }
    for (uint64_t p = 0; p < 48; p++) {
        stream_seek(&s, p);
        for (uint64_t r = p; r < 48; r++)
            check_eq(stream_next(&s), ranks[r]);
    }
    stream_dispose(&s);
    order_dispose(&x.order);
}

/* The merged sequence, laid out by places, against where order_cut says each row lies. */
static void cuts_lie_where_the_sequence_has_them(void)
{
    for (uint64_t blocks = 1; blocks < 60; blocks += 1 + blocks / 5)
        for (uint64_t spread = 1; spread < 24; spread += 5) {
            struct epoch x;
            epoch_init(&x, blocks, 5, spread, blocks);
            uint64_t before[64] = {0}, rows = 0; /* blocks of each stratum so far */
            for (uint64_t j = 0; j < blocks; j++) {
                struct order_cut cut = {.t = x.t[0]};
                order_cut(&x.order, rows, &cut);
                check(!cut.offset && !memcmp(cut.t, before, x.order.n * 8));
                order_cut(&x.order, rows + 1, &cut);
                check(cut.offset == 1 && !memcmp(cut.t, before, x.order.n * 8));
                uint64_t size =
                    blocks_size(&x.blocks, order_block(&x.order, cut.at, cut.t[cut.at]));
                order_cut(&x.order, rows + size - 1, &cut);
                check(cut.offset == size - 1 && !memcmp(cut.t, before, x.order.n * 8));
                before[cut.at]++;
                rows += size;
            }
            check_eq(rows, x.blocks.rows);
            order_dispose(&x.order);
        }
}

int main(void)
{
    RUN(keys_rise_and_are_inverted_exactly);
    RUN(equal_keys_go_out_by_lane);
    RUN(cuts_lie_where_the_sequence_has_them);
    return t_done();
}
