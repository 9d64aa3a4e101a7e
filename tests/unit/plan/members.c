/* Samples of several rows: what of a pool each takes, and what a plan makes of them, against counting. */
#include "plan/members.h"

#include "plan/cost.h"
#include "plan/members_touch.h"
#include "plan/touch.h"
#include "setup.h"
#include <string.h>

#define ROWS 400

/* Pools of 12, 9 and 30 rows, for 3, 2 and 7 samples of 4. */
static const int64_t begin[] = {0, 3, 5, 12}, first[] = {0, 12, 21}, size[] = {12, 9, 30};
static uint32_t rows[51];

static struct members *made(bool apart, uint64_t key)
{
    struct members *m = NULL;
    for (uint32_t i = 0; i < 51; i++)
        rows[i] = 7 * i + i % 3;
    struct members_given g = {.n = 4,
                              .pools = 3,
                              .n_rows = 51,
                              .begin = begin,
                              .first = first,
                              .size = size,
                              .rows = rows,
                              .apart = apart,
                              .key = key};
    check(!members_new(&g, ROWS, &m, NULL));
    return m;
}

static int place_in_pool(int64_t row, uint64_t pool)
{
    for (int64_t i = 0; i < size[pool]; i++)
        if (rows[first[pool] + i] == row)
            return (int)i;
    return -1;
}

static void samples_share_a_pool_out(void)
{
    struct members *m = made(false, 1), *other = made(false, 2);
    int differ = 0, epochs = 0;
    for (uint64_t epoch = 0; epoch < 20; epoch++) {
        int taken[3][30] = {{0}};
        int64_t a[4], b[4], next[4];
        for (uint64_t s = 0; s < 12; s++) {
            uint64_t pool = members_pool(m, s);
            members_rows(m, epoch, s, a);
            members_rows(other, epoch, s, b);
            members_rows(m, epoch + 1, s, next);
            differ += memcmp(a, b, sizeof a) != 0;
            epochs += memcmp(a, next, sizeof a) != 0;
            for (int i = 0; i < 4; i++) {
                int at = place_in_pool(a[i], pool);
                check(at >= 0 && !taken[pool][at]++);
            }
        }
    }
    check(differ > 200 && epochs > 200);
    check(m->hash != other->hash && members_bytes(m) > 51 * 4);
    members_unref(other);
    members_unref(m);
}

/* More than there are: they come again, as seldom as can be. */
static void of_too_few_some_come_again(void)
{
    struct members *m;
    const int64_t few_begin[] = {0, 1, 3}, few_first[] = {0, 3}, few_size[] = {3, 7};
    const uint32_t few_rows[] = {5, 6, 9, 1, 2, 3, 4, 7, 8, 10};
    struct members_given g = {.n = 5,
                              .pools = 2,
                              .n_rows = 10,
                              .begin = few_begin,
                              .first = few_first,
                              .size = few_size,
                              .rows = few_rows};
    check(!members_new(&g, 11, &m, NULL));
    int times[11] = {0};
    int64_t out[5];
    for (uint64_t s = 0; s < 3; s++) {
        members_rows(m, 3, s, out);
        for (int i = 0; i < 5; i++)
            times[out[i]]++;
    }
    for (int i = 0; i < 10; i++)
        check(times[few_rows[i]] >= 1 && times[few_rows[i]] <= 2);
    members_unref(m);
}

static void each_may_draw_for_itself(void)
{
    struct members *m = made(true, 1);
    int64_t out[4];
    int seen[30] = {0};
    for (uint64_t s = 5; s < 12; s++) {
        members_rows(m, 0, s, out);
        for (int i = 0; i < 4; i++) {
            int at = place_in_pool(out[i], 2);
            check(at >= 0);
            seen[at]++;
            for (int j = 0; j < i; j++)
                check(out[i] != out[j]);
        }
    }
    int again = 0;
    for (int i = 0; i < 30; i++)
        again += seen[i] > 1;
    check(again > 0); /* each draws for itself */
    members_unref(m);
}

static void wrong_numbers_are_errors(void)
{
    struct members *m = NULL;
    struct hr_error e = {0};
    const int64_t one_begin[] = {0, 1}, none_begin[] = {0, 0}, zero[] = {0}, one[] = {1};
    const uint32_t far[] = {ROWS}, near[] = {0};
    struct members_given g = {.n = 1,
                              .pools = 1,
                              .n_rows = 1,
                              .begin = one_begin,
                              .first = zero,
                              .size = one,
                              .rows = far};
    check(members_new(&g, ROWS, &m, &e) == HR_EINVAL && strstr(e.text, "cell 400, of 400"));
    g.rows = near;
    g.begin = none_begin;
    check(members_new(&g, ROWS, &m, &e) == HR_EINVAL && strstr(e.text, "pool 0 has no samples"));
    g.begin = one_begin;
    g.first = one;
    check(members_new(&g, ROWS, &m, &e) == HR_EINVAL);
    g.n = 0;
    check(members_new(&g, ROWS, &m, &e) == HR_EINVAL);
    check(members_new(&g, UINT64_MAX, &m, &e) < 0 && !m);
}

/* A plan of 12 such samples over rows in chunks of 10, with controls from the same array. */
static void open_setup(struct setup *s, struct members *own, struct members *beside)
{
    static int64_t table[12];
    setup_rows(s, ROWS, 10);
    for (int k = 0; k < 3; k++)
        for (int64_t i = begin[k]; i < begin[k + 1]; i++)
            table[i] = rows[first[k] + size[k] / 2];
    s->axes[0] = (struct plan_axis){12, 0, 12, 0};
    s->views[0].items = 8 * 4;
    s->parts[0].dim[0].table = table;
    s->parts[0].unit = 4;
    s->parts[0].members = own;
    s->parts[1] = s->parts[0];
    s->parts[1].view = 1;
    s->parts[1].members = beside;
    s->views[1] = (struct plan_view){"y", 8 * 4, 4};
    s->config.n_views = s->config.n_parts = 2;
    s->config.block = 0;
    s->config.rows = 3;
}

static void a_plan_finds_them_row_by_row(void)
{
    struct setup s;
    struct plan *p = NULL;
    struct members *own = made(false, 1), *beside = made(true, 1);
    open_setup(&s, own, beside);
    check(!plan_open(&s.config, &p, NULL));
    members_unref(own); /* the plan has its own references */
    members_unref(beside);
    uint64_t at, reads = 0;
    check(plan_members(p) == 8 && plan_part_members(p, 1, &at) == 4 && at == 4);
    check(plan_facts(p)->block % 4 == 0 && !plan_has_outside(p));
    int64_t taken[8], four[4];
    uint8_t touched[64] = {0};
    for (int64_t id = 0; id < 12; id++) {
        plan_members_rows(p, 2, id, taken);
        members_rows(own, 2, (uint64_t)id, four);
        check(!memcmp(four, taken, sizeof four));
        for (int i = 0; i < 8; i++) {
            uint64_t chunks[4], n = plan_part_chunks(p, i / 4, taken[i], chunks, 4);
            struct plan_piece piece;
            check(n == 1 && chunks[0] == (uint64_t)taken[i] / 10);
            check(plan_part_piece_count(p, i / 4, taken[i], chunks[0]) == 1);
            plan_part_piece(p, i / 4, taken[i], chunks[0], 0, &piece);
            check(piece.from_offset == (uint64_t)taken[i] % 10 * 8);
            reads += !touched[chunks[0]];
            touched[chunks[0]] = 1;
        }
    }
    struct plan_extent x;
    plan_extent(p, 0, &x);
    check(x.used && x.block <= x.split && x.shared <= x.block && x.split >= reads);
    struct plan_cost cost;
    check(!plan_cost(p, 2, &cost, NULL) && cost.exact && cost.distinct_chunks >= (double)reads - 1);
    struct members_touch t;
    members_touch(p, 0, &t);
    check(t.distinct == x.split && t.reads >= cost.chunk_reads - 1e-9);
    plan_unref(p);
}

/* Several views of one array: their rows lie in the same cells, across which each may take chunks of its own. */
static void views_take_chunks_of_their_own_across(void)
{
    struct setup s;
    struct plan *p = NULL;
    struct members *own = made(false, 1), *beside = made(true, 1);
    open_setup(&s, own, beside);
    s.arrays[0].shape[1] = 12; /* chunks of 8 columns: 2 across */
    s.arrays[0].grid[1] = 2;
    for (int i = 0; i < 2; i++)
        s.parts[i].dim[1] = (struct plan_dim){
            .kind = SEL_SLICE, .start = 8 * i, .count = 4, .step = 1, .to_stride = 1};
    s.views[0].items = s.views[1].items = 4 * 4;
    check(!plan_open(&s.config, &p, NULL));
    struct members_touch t;
    struct plan_extent x;
    struct touch all;
    members_touch(p, 0, &t);
    plan_extent(p, 0, &x);
    touch_count(p, &all);
    check(t.across == 2 && x.split == 2 * t.distinct && x.block == 2 * t.block);
    check(all.distinct == (double)x.split && all.reads == 2 * t.reads);
    plan_unref(p);
    s.parts[1].dim[1].start = 4; /* the columns of one chunk: cells and controls are one read */
    check(!plan_open(&s.config, &p, NULL));
    members_touch(p, 0, &t);
    check(t.across == 1);
    plan_unref(p);
    members_unref(own);
    members_unref(beside);
}

int main(void)
{
    RUN(samples_share_a_pool_out);
    RUN(of_too_few_some_come_again);
    RUN(each_may_draw_for_itself);
    RUN(wrong_numbers_are_errors);
    RUN(a_plan_finds_them_row_by_row);
    RUN(views_take_chunks_of_their_own_across);
    return t_done();
}
