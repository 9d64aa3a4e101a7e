/* Sets of samples: masks, ids, groups, blocks, gaps, what two of them share; and no leak when memory runs out. */
#include "base/mem.h"
#include "small.h"

#define N 200

static struct hr_archive *archive;
static struct hr_samples *samples; /* x takes steps -2 … 0 */

static void put_all(void)
{
    static int32_t x[N], time[N];
    for (int i = 0; i < N; i++)
        time[i] = 6 * i;
    small_put(".zgroup", "{\"zarr_format\": 2}");
    SMALL("x", "<i4", "time", "", x);
    SMALL("time", "<i4", "time", ", \"units\": \"hours since 1990-01-01\"", time);
}

static void open_all(void)
{
    const char *x[] = {"x"};
    archive = small_open();
    check(!hr_samples_new(archive, "time", &samples, NULL));
    check(!hr_samples_view(samples, "x", x, 1, NULL, NULL));
    check(!hr_view_steps(samples, "x", "time", -2, 0, NULL));
}

/* The ids of s are those i for which `kept[i]`. */
static void check_ids(struct hr_samples *s, const uint8_t *kept)
{
    int64_t n = 0, at = 0, id;
    check(!hr_samples_count(s, &n, NULL));
    for (int i = 0; i < N; i++) {
        if (!kept[i])
            continue;
        check(at < n && !hr_samples_ids(s, at, 1, &id, NULL) && id == i);
        at++;
    }
    check_eq(at, n);
}

static void masks_and_ids(void)
{
    struct hr_samples *a, *b, *c;
    struct hr_error e;
    uint8_t mask[N] = {0}, kept[N] = {0};
    int64_t ids[] = {150, 2, 63, 64, 2, 0};
    for (int i = 0; i < N; i += 3)
        mask[i] = (uint8_t)(i % 7 ? 1 << i % 8 : 0);
    for (int i = 2; i < N; i++)
        kept[i] = mask[i] != 0;
    check(!hr_samples_where(samples, mask, N, &a, &e));
    check_ids(a, kept);
    check_eq(hr_samples_where(samples, mask, N - 1, &c, &e), HR_EINVAL);
    check_has(e.text, "each of the 200 positions of time");
    check(!hr_samples_take(samples, ids, 6, &b, &e));
    memset(kept, 0, sizeof kept);
    kept[2] = kept[63] = kept[64] = kept[150] = 1; /* 0 has no step -2 */
    check_ids(b, kept);
    ids[0] = N;
    check_eq(hr_samples_take(samples, ids, 6, &c, &e), HR_EINVAL);
    check_has(e.text, "ids count from 0 to 199");
    for (int how = HR_SET_AND; how <= HR_SET_WITHOUT; how++) {
        for (int i = 0; i < N; i++) {
            bool x = i > 1 && mask[i], y = i == 2 || i == 63 || i == 64 || i == 150;
            kept[i] = how == HR_SET_AND ? x && y : how == HR_SET_OR ? x || y : x && !y;
        }
        check(!hr_samples_combine(a, b, how, &c, &e));
        check_ids(c, kept);
        hr_samples_unref(c);
    }
    check_eq(hr_samples_combine(a, b, 3, &c, &e), HR_EINVAL);
    hr_samples_unref(a);
    hr_samples_unref(b);
}

static void what_is_near_or_shares_rows_is_dropped(void)
{
    struct hr_samples *one, *apart;
    struct hr_error e;
    struct hr_shared shared;
    int64_t id = 100, steps = 0;
    check(!hr_samples_take(samples, &id, 1, &one, &e));
    for (int64_t gap = -1; gap < 4; gap++) {
        uint8_t kept[N];
        int64_t reach = gap < 0 ? 2 : gap; /* three steps each: two neighbours share a row */
        for (int i = 0; i < N; i++)
            kept[i] = i > 1 && (i < 100 - reach || i > 100 + reach);
        check(!hr_samples_apart(samples, one, gap, &apart, &e));
        check_ids(apart, kept);
        check(!hr_samples_shared(apart, one, &shared, &e));
        check_eq(shared.samples, 0);
        check_eq(shared.rows, reach >= 2 ? 0 : reach == 1 ? 2 : 3);
        check_eq(shared.chunks, 1);
        hr_samples_unref(apart);
    }
    hr_samples_unref(one);
    check(!hr_samples_steps(samples, "1D", &steps, &e));
    check_eq(steps, 4);
    check_eq(hr_samples_steps(samples, "1h", &steps, &e), HR_EINVAL);
}

static int deal(struct hr_samples **out, int64_t gap, struct hr_error *e)
{
    int64_t group[N];
    for (int i = 0; i < N; i++)
        group[i] = (i / 9 * 5) % 7;
    return hr_samples_split_groups(samples, group, N, (double[]){.5, .3, .2}, 3, 4, gap, out, e);
}

static void groups_and_blocks_are_dealt_whole(void)
{
    struct hr_samples *out[3];
    struct hr_error e;
    struct hr_shared shared;
    int64_t n[3];
    for (int how = 0; how < 3; how++) {
        check(!(how ? hr_samples_split_blocks(samples, 12, (double[]){.5, .3, .2}, 3, how > 1, 9, 0,
                                              out, &e)
                    : deal(out, 0, &e)));
        for (int i = 0; i < 3; i++)
            check(!hr_samples_count(out[i], &n[i], &e));
        check_eq(n[0] + n[1] + n[2], N - 2);
        check(n[0] > n[2] && n[2] > 0);
        for (int i = 0; i < 3; i++) {
            check(!hr_samples_shared(out[i], out[(i + 1) % 3], &shared, &e));
            check_eq(shared.samples, 0);
        }
        for (int i = 0; i < 3; i++)
            hr_samples_unref(out[i]);
    }
    check_eq(hr_samples_split_blocks(samples, 2, (double[]){.5, .3, .2}, 3, 0, 0, 0, out, &e),
             HR_EINVAL);
    check_eq(hr_samples_split_blocks(samples, 12, (double[]){.8, .3}, 2, 0, 0, 0, out, &e),
             HR_EINVAL);
    check_has(e.text, "add up to 1.1");
    check_eq(deal(out, 150, &e), HR_EINVAL);
    check_has(e.text, "no samples left after the gap");
}

static int everything(struct hr_error *e)
{
    struct hr_samples *made[4] = {NULL}, *out[3];
    struct hr_shared shared;
    uint8_t mask[N] = {0, 0, 0, 1, 0, 1};
    int64_t ids[] = {3, 100};
    int rc = hr_samples_where(samples, mask, N, &made[0], e);
    rc = rc ? rc : hr_samples_take(samples, ids, 2, &made[1], e);
    rc = rc ? rc : hr_samples_combine(made[0], made[1], HR_SET_OR, &made[2], e);
    rc = rc ? rc : hr_samples_apart(samples, made[1], -1, &made[3], e);
    rc = rc ? rc : hr_samples_shared(made[0], made[1], &shared, e);
    for (int i = 0; i < 4; i++)
        hr_samples_unref(made[i]);
    for (int how = 0; how < 2 && !rc; how++) {
        rc = how ? hr_samples_split_blocks(samples, 12, (double[]){.5, .3, .2}, 3, 1, 1, -1, out, e)
                 : deal(out, -1, e);
        for (int i = 0; i < 3 && !rc; i++)
            hr_samples_unref(out[i]);
    }
    return rc;
}

static void any_failed_allocation_is_an_error_and_no_leak(void)
{
    struct hr_error e = {0};
    uint64_t failed = 0;
    check(!everything(&e));
    uint64_t before = mem_live();
    for (uint64_t at = 1; at < 400; at++) {
        mem_fail_at(at, false);
        int rc = everything(&e);
        mem_fail_at(0, false);
        check(!rc || rc == HR_ENOMEM);
        failed += rc == HR_ENOMEM;
        check_eq(mem_live(), before);
    }
    check(failed > 40);
}

int main(void)
{
    put_all();
    open_all();
    RUN(masks_and_ids);
    RUN(what_is_near_or_shares_rows_is_dropped);
    RUN(groups_and_blocks_are_dealt_whole);
    RUN(any_failed_allocation_is_an_error_and_no_leak);
    hr_samples_unref(samples);
    hr_archive_unref(archive);
    return t_done();
}
