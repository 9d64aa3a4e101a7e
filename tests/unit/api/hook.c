/* A caller's function on complete batches: every batch once and in order, whatever the position does meanwhile, whenever the
 * loader is closed, and its refusals. */
#include <stdatomic.h>
#include <unistd.h>

#include "base/mem.h"
#include "little.h"

static struct hr_error e;

static const struct little t2m = {
    .name = "t2m", .time = 60, .y = 6, .x = 40, .chunk = 4, .chunk_y = 3, .zstd = true};

struct seen { /* static: functions under way may use it after the loader */
    atomic_int calls, at_work;
    _Atomic int64_t refuse; /* the sample that the function does not like */
    unsigned sleep_us;
};

static int hook(void *const *data, int64_t rows, const int64_t *index, int64_t epoch, void *arg)
{
    struct seen *seen = arg;
    float *x = data[0];
    int rc = 0;
    atomic_fetch_add(&seen->at_work, 1);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < 240; i++)
            x[r * 240 + i] += (float)(1000 * (epoch + 1));
        rc |= index[r] == seen->refuse ? 3 : 0;
    }
    if (seen->sleep_us)
        usleep(index[0] % 3 ? seen->sleep_us : 1);
    atomic_fetch_add(&seen->calls, 1);
    atomic_fetch_sub(&seen->at_work, 1);
    return rc;
}

static struct hr_loader *open_loader(struct seen *seen, uint64_t seed)
{
    static const char *const x[] = {"t2m"};
    struct hr_archive *a = NULL;
    struct hr_samples *s = NULL;
    struct hr_loader *l = NULL;
    struct hr_loader_options o = HR_LOADER_OPTIONS;
    o.n = 5;
    o.shuffle = HR_SHUFFLE_SPREAD;
    o.seed = seed;
    o.hook = hook;
    o.hook_arg = seen;
    check_eq(hr_open(little_url(), NULL, &a, &e), 0);
    check_eq(hr_samples_new(a, "time", &s, &e), 0);
    check_eq(hr_samples_view(s, "x", x, 1, NULL, &e), 0);
    if (!check(hr_loader_open(s, &o, &l, &e) == 0))
        printf("# %s\n", e.text);
    hr_samples_unref(s);
    hr_archive_unref(a);
    return l;
}

static bool batch_is_right(const struct hr_batch *b)
{
    struct hr_tensor t;
    hr_batch_tensor(b, 0, &t);
    bool good = true;
    for (int64_t r = 0; r < hr_batch_rows(b); r++)
        for (int64_t i = 0; i < 240; i++) {
            float want = little_value(&t2m, hr_batch_index(b)[r], i / 40, i % 40);
            want += (float)(1000 * (hr_batch_epoch(b) + 1));
            good &= ((float *)t.data)[r * 240 + i] == want;
        }
    return good;
}

static void every_batch_passes_through_once_and_in_order(void)
{
    static struct seen seen = {.refuse = -1, .sleep_us = 500};
    struct hr_loader *l = open_loader(&seen, 1);
    struct hr_batch *b;
    int64_t step = 0;
    for (int epoch = 0; l && epoch < 4; epoch++, step = 0)
        while (hr_loader_next(l, -1, &b, &e) == 1) {
            check(hr_batch_epoch(b) == epoch && hr_batch_step(b) == step++);
            check(batch_is_right(b));
            hr_batch_release(b);
        }
    check(seen.calls >= 4 * 12);
    hr_loader_unref(l);
}

static void refusals_fail_their_batch_and_nothing_else(void)
{
    static struct seen seen = {.refuse = 17};
    struct hr_loader *l = open_loader(&seen, 2);
    struct hr_batch *b;
    int rc = 1;
    for (int i = 0; l && i < 12 && rc == 1; i++)
        if ((rc = hr_loader_next(l, -1, &b, &e)) == 1)
            hr_batch_release(b);
    check_eq(rc, HR_EINVAL);
    check_has(e.text, "returned 3 for step");
    check_eq(hr_loader_next(l, -1, &b, &e), HR_EINVAL); /* until the position is set */
    check_eq(hr_loader_set_epoch(l, 7, &e), 0);
    seen.refuse = -1;
    check_eq(hr_loader_next(l, -1, &b, &e), 1);
    check(batch_is_right(b));
    hr_batch_release(b);
    hr_loader_unref(l);
}

static void positions_move_and_loaders_close_while_it_runs(void)
{
    static struct seen seen[40];
    for (int round = 0; round < 40; round++) {
        struct hr_loader *l;
        struct hr_batch *b;
        seen[round].refuse = -1;
        seen[round].sleep_us = 300;
        if (!(l = open_loader(&seen[round], (uint64_t)round)))
            return;
        for (int i = 0; i < round % 5; i++)
            if (check(hr_loader_next(l, -1, &b, &e) == 1))
                hr_batch_release(b);
        if (round % 3) {
            check_eq(hr_loader_set_epoch(l, 3, &e), 0);
            if (check(hr_loader_next(l, -1, &b, &e) == 1)) {
                check(hr_batch_epoch(b) == 3 && hr_batch_step(b) == 0 && batch_is_right(b));
                hr_batch_release(b);
            }
        }
        hr_loader_close(l);
        check_eq(hr_loader_next(l, -1, &b, &e), HR_ECLOSED);
        hr_loader_unref(l);
    }
    for (int round = 0; round < 40; round++) /* nothing hangs */
        while (atomic_load(&seen[round].at_work))
            usleep(1000);
}

static void a_hook_comes_before_the_first_batch(void)
{
    static struct seen seen = {.refuse = -1};
    struct hr_loader *l = open_loader(&seen, 4);
    struct hr_batch *b;
    check_eq(hr_loader_hook(l, NULL, NULL, &e), 0);
    check_eq(hr_loader_next(l, -1, &b, &e), 1);
    hr_batch_release(b);
    check_eq(seen.calls, 0);
    check_eq(hr_loader_hook(l, hook, &seen, &e), HR_ESTATE);
    hr_loader_unref(l);
}

int main(void)
{
    little_write(&t2m);
    RUN(every_batch_passes_through_once_and_in_order);
    RUN(refusals_fail_their_batch_and_nothing_else);
    RUN(positions_move_and_loaders_close_while_it_runs);
    RUN(a_hook_comes_before_the_first_batch);
    return t_done();
}
