/* Loaders end to end over little archives: values, epochs, resuming, failures, closing. */
#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/runtime.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/thread.h"
#include "little.h"
#include "served.h"

static struct hr_error e;

static const struct little t2m = {
    .name = "t2m", .time = 50, .y = 6, .x = 40, .chunk = 4, .chunk_y = 3, .zstd = true};
static const struct little u10 = {
    .name = "u10", .time = 50, .y = 6, .x = 40, .chunk = 5, .chunk_y = 6, .shard = 3, .zstd = true};
static const struct little raw = {
    .name = "raw", .time = 50, .y = 6, .x = 40, .chunk = 4, .chunk_y = 6};
static const struct little packed = {.name = "packed",
                                     .time = 50,
                                     .y = 6,
                                     .x = 40,
                                     .chunk = 8,
                                     .chunk_y = 6,
                                     .zstd = true,
                                     .i2 = true};

static void write_all(void)
{
    little_write(&t2m);
    little_write(&u10);
    little_write(&raw);
    little_write(&packed);
}

static void must(int rc)
{
    if (rc < 0)
        printf("# %s\n", e.text);
    check(rc >= 0);
}

/* x: two arrays stacked, steps -1 … 0; y: one array, step 2; p: packed, decoded. */
static struct hr_samples *open_samples(void)
{
    static const char *const x[] = {"t2m", "u10"}, *const y[] = {"raw"}, *const p[] = {"packed"};
    struct hr_archive *a = NULL;
    struct hr_samples *s = NULL;
    must(hr_open(little_url(), NULL, &a, &e));
    must(hr_samples_new(a, "time", &s, &e));
    must(hr_samples_view(s, "x", x, 2, "channel", &e));
    must(hr_view_steps(s, "x", "time", -1, 0, &e));
    must(hr_samples_view(s, "y", y, 1, NULL, &e));
    must(hr_view_steps(s, "y", "time", 2, 2, &e));
    must(hr_samples_view(s, "p", p, 1, NULL, &e));
    must(hr_view_dtype(s, "p", HR_F32, &e));
    hr_archive_unref(a);
    return s;
}

static struct hr_samples *one_view(const char *array)
{
    struct hr_archive *a = NULL;
    struct hr_samples *s = NULL;
    must(hr_open(little_url(), NULL, &a, &e));
    must(hr_samples_new(a, "time", &s, &e));
    must(hr_samples_view(s, "x", &array, 1, NULL, &e));
    hr_archive_unref(a);
    return s;
}

static struct hr_loader *open_loader(struct hr_samples *s, const struct hr_loader_options *o)
{
    struct hr_loader *l = NULL;
    must(hr_loader_open(s, o, &l, &e));
    return l;
}

static bool row_is_right(const struct hr_batch *b, int64_t r)
{
    struct hr_tensor x, y, p;
    int64_t id = hr_batch_index(b)[r];
    hr_batch_tensor(b, 0, &x);
    hr_batch_tensor(b, 1, &y);
    hr_batch_tensor(b, 2, &p);
    const float *fx = (const float *)x.data + r * 2 * 2 * 240,
                *fy = (const float *)y.data + r * 240;
    const float *fp = (const float *)p.data + r * 240;
    for (int64_t i = 0; i < 240; i++) {
        int64_t row = i / 40, col = i % 40;
        for (int64_t s = 0; s < 2; s++)
            if (fx[(s * 2 + 0) * 240 + i] != little_value(&t2m, id - 1 + s, row, col) ||
                fx[(s * 2 + 1) * 240 + i] != little_value(&u10, id - 1 + s, row, col))
                return false;
        if (fy[i] != little_value(&raw, id + 2, row, col))
            return false;
        int16_t item = little_packed(&packed, id, row, col);
        if (item == -1 ? !isnan(fp[i]) : fp[i] != (float)(item * 0.5 + 100))
            return false;
    }
    return true;
}

/* Runs an epoch; ids into order (may be NULL). Returns the rows, -1 if a value was wrong. */
static int64_t run_epoch(struct hr_loader *l, int64_t *order)
{
    int64_t rows = 0;
    struct hr_batch *b;
    int rc;
    bool good = true;
    while ((rc = hr_loader_next(l, 20000, &b, &e)) == 1) {
        for (int64_t r = 0; r < hr_batch_rows(b); r++, rows++) {
            good &= row_is_right(b, r);
            if (order)
                order[rows] = hr_batch_index(b)[r];
        }
        hr_batch_release(b);
    }
    must(rc);
    return good ? rows : -1;
}

static void check_permutation(const int64_t *order, int64_t n, int64_t first)
{
    bool seen[64] = {false};
    bool good = true;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = order[i] - first;
        good &= at >= 0 && at < 64 && !seen[at];
        if (at >= 0 && at < 64)
            seen[at] = true;
    }
    check(good);
}

static void a_sequential_epoch_is_the_archive_in_order(void)
{
    struct hr_samples *s = open_samples();
    struct hr_loader_options o = HR_LOADER_OPTIONS;
    o.n = 7;
    struct hr_loader *l = open_loader(s, &o);
    int64_t order[64], steps;
    must(hr_loader_steps(l, &steps, &e));
    check_eq(steps, 7);
    check_eq(run_epoch(l, order), 47); /* ids 1 … 47 */
    for (int64_t i = 0; i < 47; i++)
        check_eq(order[i], i + 1);
    check_eq(run_epoch(l, order), 47);
    hr_loader_unref(l);
    hr_samples_unref(s);
}

/* The bytes that an error says are needed at least; 0 where it says none. */
static uint64_t least_named(void)
{
    const char *least = strstr(e.text, "at least"), *from = least ? strchr(least, '(') : NULL;
    return from ? strtoull(from + 1, NULL, 10) : 0;
}

static void shuffled_epochs_differ_and_hold_every_sample_once(void)
{
    struct hr_samples *s = open_samples();
    for (int budget = 0; budget < 3; budget++) {
        struct hr_loader_options o = HR_LOADER_OPTIONS;
        o.n = 4;
        o.shuffle = HR_SHUFFLE_SPREAD;
        o.seed = 3;
        o.memory = budget == 0 ? 160000 : budget == 1 ? 700000 : 0;
        struct hr_loader *l = NULL;
        int rc = hr_loader_open(s, &o, &l, &e);
        if (rc == HR_EBUDGET) { /* the smallest that is accepted, by its own words */
            o.memory = (int64_t)least_named();
            rc = hr_loader_open(s, &o, &l, &e);
        }
        must(rc);
        int64_t one[64], two[64];
        check_eq(run_epoch(l, one), 44);
        check_eq(run_epoch(l, two), 44);
        check_permutation(one, 44, 1);
        check_permutation(two, 44, 1);
        check(memcmp(one, two, 44 * sizeof *one) != 0);
        hr_loader_unref(l);
    }
    hr_samples_unref(s);
}

static void the_smallest_budget_that_is_named_is_accepted(void)
{
    static const char *const arrays[] = {"t2m", "u10", "raw", NULL}; /* NULL: three views */
    for (int i = 0; i < 12; i++) {
        struct hr_samples *s = arrays[i / 3] ? one_view(arrays[i / 3]) : open_samples();
        struct hr_loader_options o = HR_LOADER_OPTIONS;
        struct hr_loader *l = NULL;
        char *plan = NULL, minimum[64];
        o.n = i % 3 ? 4 : 1;
        o.shuffle = i % 3 == 2 ? HR_SHUFFLE_SPREAD : 0;
        o.memory = 1;
        check_eq(hr_loader_open(s, &o, &l, &e), HR_EBUDGET);
        uint64_t least = least_named();
        o.memory = (int64_t)least - 1;
        check_eq(hr_loader_open(s, &o, &l, &e), HR_EBUDGET);
        check_eq(least_named(), least);
        o.memory = (int64_t)least;
        must(hr_loader_open(s, &o, &l, &e));
        if (!arrays[i / 3])
            check(run_epoch(l, NULL) >= 44);
        hr_loader_unref(l);
        snprintf(minimum, sizeof minimum, "\"minimum\": %" PRIu64 ",", least);
        for (o.memory = (int64_t)least; o.memory < 16 << 20; o.memory *= 3) {
            must(hr_loader_open(s, &o, &l, &e));
            must(hr_loader_plan_json(l, &plan, &e));
            check_has(plan, minimum);
            hr_free(plan);
            hr_loader_unref(l);
        }
        hr_samples_unref(s);
    }
}

static void the_order_does_not_depend_on_the_budget(void)
{
    struct hr_samples *s = open_samples();
    int64_t order[2][64];
    for (int i = 0; i < 2; i++) {
        struct hr_loader_options o = HR_LOADER_OPTIONS;
        o.n = 5;
        o.shuffle = HR_SHUFFLE_SPREAD;
        o.memory = i ? 100 << 20 : 500000;
        struct hr_loader *l = open_loader(s, &o);
        check_eq(run_epoch(l, order[i]), 45);
        hr_loader_unref(l);
    }
    check(!memcmp(order[0], order[1], 45 * sizeof(int64_t)));
    hr_samples_unref(s);
}

static void batches_outlive_their_loader(void)
{
    struct hr_samples *s = open_samples();
    struct hr_loader_options o = HR_LOADER_OPTIONS;
    struct hr_batch *held[6];
    o.n = 4;
    struct hr_loader *l = open_loader(s, &o);
    hr_samples_unref(s);
    for (int i = 0; i < 6; i++)
        check_eq(hr_loader_next(l, 20000, &held[i], &e), 1);
    hr_loader_close(l);
    hr_loader_unref(l);
    for (int i = 0; i < 6; i++) {
        for (int64_t r = 0; r < 4; r++)
            check(row_is_right(held[i], r));
        check_eq(hr_batch_step(held[i]), i);
        hr_batch_release(held[i]);
    }
}

static void a_state_at_every_step_gives_the_same_suffix(void)
{
    struct hr_samples *s = open_samples();
    struct hr_loader_options o = HR_LOADER_OPTIONS;
    o.n = 6;
    o.shuffle = HR_SHUFFLE_SPREAD;
    o.seed = 11;
    struct hr_loader *l = open_loader(s, &o);
    int64_t order[128];
    check_eq(run_epoch(l, order), 42);
    check_eq(run_epoch(l, order + 42), 42);
    must(hr_loader_set_epoch(l, 0, &e));
    for (int step = 0; step <= 7; step++) {
        char *state = NULL;
        int64_t rest[64];
        must(hr_loader_state(l, &state, &e));
        check(strlen(state) < 400);
        struct hr_loader_options plain = HR_LOADER_OPTIONS;
        plain.n = 6;
        struct hr_loader *other = open_loader(s, &plain);
        must(hr_loader_load_state(other, state, 0, &e));
        int64_t n = run_epoch(other, rest);
        check_eq(n, step < 7 ? 42 - step * 6 : 42);
        check(!memcmp(rest, order + step * 6, (size_t)n * sizeof *rest));
        hr_loader_unref(other);
        hr_free(state);
        struct hr_batch *b = NULL;
        check_eq(hr_loader_next(l, 20000, &b, &e), step < 7);
        hr_batch_release(b);
    }
    hr_loader_unref(l);
    hr_samples_unref(s);
}

static void a_state_of_other_options_is_refused_by_name(void)
{
    struct hr_samples *s = open_samples();
    struct hr_loader_options o = HR_LOADER_OPTIONS;
    o.n = 6;
    o.shuffle = HR_SHUFFLE_SPREAD;
    o.seed = 11;
    struct hr_loader *l = open_loader(s, &o);
    struct hr_batch *b = NULL;
    char *state = NULL;
    check_eq(hr_loader_next(l, 20000, &b, &e), 1);
    hr_batch_release(b);
    must(hr_loader_state(l, &state, &e));
    o.seed = 12;
    o.explicit_set = HR_SET_SEED;
    struct hr_loader *other = open_loader(s, &o);
    check_eq(hr_loader_load_state(other, state, 0, &e), HR_ESTATE);
    check_has(e.text, "seed");
    hr_loader_unref(other);
    o.explicit_set = 0;
    o.n = 4;
    other = open_loader(s, &o);
    check_eq(hr_loader_load_state(other, state, 0, &e), HR_ESTATE);
    check_has(e.text, "global batch");
    must(hr_loader_load_state(other, state, 1,
                              &e)); /* 6 rows on: 41 of 47 are left, ten batches of 4 */
    check_eq(run_epoch(other, NULL), 40);
    hr_loader_unref(other);
    check(hr_loader_load_state(l, "{\"nonsense\": 1}", 0, &e) < 0);
    check_eq(run_epoch(l, NULL), 36);
    hr_free(state);
    hr_loader_unref(l);
    hr_samples_unref(s);
}

static void rewinding_in_mid_epoch_starts_the_next(void)
{
    struct hr_samples *s = open_samples();
    struct hr_loader_options o = HR_LOADER_OPTIONS;
    struct hr_batch *b = NULL;
    o.n = 3;
    struct hr_loader *l = open_loader(s, &o);
    for (int i = 0; i < 20; i++) {
        for (int k = 0; k <= i % 4; k++) {
            check_eq(hr_loader_next(l, 20000, &b, &e), 1);
            check_eq(hr_batch_epoch(b), i);
            check_eq(hr_batch_step(b), k);
            check(row_is_right(b, 0));
            hr_batch_release(b);
        }
        must(hr_loader_rewind(l, &e));
    }
    hr_loader_unref(l);
    hr_samples_unref(s);
}

static void a_bad_chunk_fails_its_batch_at_its_turn(void)
{
    little_put("t2m/c/5/1/0", "rubbish", 7); /* time 20 … 23 */
    struct hr_samples *s = one_view("t2m");
    struct hr_loader_options o = HR_LOADER_OPTIONS;
    struct hr_batch *b = NULL;
    o.n = 4;
    struct hr_loader *l = open_loader(s, &o);
    for (int i = 0; i < 5; i++) {
        check_eq(hr_loader_next(l, 20000, &b, &e), 1);
        hr_batch_release(b);
    }
    for (int i = 0; i < 3; i++) {
        check(hr_loader_next(l, 20000, &b, &e) < 0);
        check_has(e.text, "chunk t2m/c/5/1/0 of ");
        check_has(e.text, "zstd");
    }
    must(hr_loader_rewind(l, &e));
    check_eq(hr_loader_next(l, 20000, &b, &e), 1);
    check_eq(hr_batch_epoch(b), 1);
    hr_batch_release(b);
    hr_loader_unref(l);
    hr_samples_unref(s);
}

static void a_bad_chunk_can_be_masked_instead(void)
{
    struct hr_samples *s = one_view("t2m");
    struct hr_loader_options o = HR_LOADER_OPTIONS;
    struct hr_batch *b = NULL;
    o.n = 4;
    o.on_error = HR_ON_ERROR_MASK;
    struct hr_loader *l = open_loader(s, &o);
    int masked = 0, rows = 0;
    while (hr_loader_next(l, 20000, &b, &e) == 1) {
        struct hr_tensor x;
        hr_batch_tensor(b, 0, &x);
        for (int64_t r = 0; r < hr_batch_rows(b); r++, rows++) {
            int64_t id = hr_batch_index(b)[r];
            const float *row = (const float *)x.data + r * 240;
            bool bad = id >= 20 && id < 24;
            check_eq(hr_batch_valid(b)[r], !bad);
            check(row[0] == little_value(&t2m, id, 0, 0));
            check(row[3 * 40] == (bad ? -7.5f : little_value(&t2m, id, 3, 0)));
            masked += !hr_batch_valid(b)[r];
        }
        hr_batch_release(b);
    }
    check_eq(rows, 50);
    check_eq(masked, 4);
    char *stats = NULL;
    must(hr_loader_stats_json(l, &stats, &e));
    check_has(stats, "\"masked\": [\"t2m/c/5/1/0\"");
    hr_free(stats);
    hr_loader_unref(l);
    hr_samples_unref(s);
    little_write(&t2m);
}

static void missing_chunks_are_filled_counted_or_refused(void)
{
    little_delete("raw/c/2/0/0"); /* time 8 … 11 */
    struct hr_samples *s = one_view("raw");
    for (int missing = HR_MISSING_FILL; missing <= HR_MISSING_ERROR; missing++) {
        struct hr_loader_options o = HR_LOADER_OPTIONS;
        struct hr_batch *b = NULL;
        o.n = 10;
        o.missing = missing;
        struct hr_loader *l = open_loader(s, &o);
        int rc = hr_loader_next(l, 20000, &b, &e);
        if (missing == HR_MISSING_ERROR) {
            check_eq(rc, HR_EDATA);
            check_has(e.text, "raw/c/2/0/0");
        } else if (check_eq(rc, 1), rc == 1) {
            struct hr_tensor x;
            hr_batch_tensor(b, 0, &x);
            const float *row = (const float *)x.data + 8 * 240;
            check(missing == HR_MISSING_NAN ? isnan(row[5]) : row[5] == -7.5f);
            check(row[-1] == little_value(&raw, 7, 5, 39));
            check_eq(hr_batch_filled(b), 1);
            check_eq(hr_batch_valid(b)[8], 1);
            hr_batch_release(b);
        }
        hr_loader_unref(l);
    }
    hr_samples_unref(s);
    little_write(&raw);
}

/* A chunk may take more room than any compressor needs: here by a skippable frame (RFC 8878 §3.1.2)
 * behind it. */
static void a_chunk_larger_than_expected_gets_a_larger_ticket(void)
{
    enum { PAD = 6000 };
    char *object = calloc(1, PAD + 8192);
    size_t n = little_chunk(&t2m, 3, 0, object, 8000);
    uint32_t frame[2] = {0x184D2A50, PAD};
    memcpy(object + n, frame, 8);
    little_put("t2m/c/3/0/0", object, n + 8 + PAD);
    free(object);
    struct hr_samples *s = open_samples();
    struct hr_loader_options o = HR_LOADER_OPTIONS;
    o.n = 4;
    o.memory = 8 << 20;
    struct hr_loader *l = open_loader(s, &o);
    check_eq(run_epoch(l, NULL), 47);
    hr_loader_unref(l);
    hr_samples_unref(s);
    s = one_view("t2m");
    struct hr_batch *b = NULL;
    o.n = 1;
    o.memory = 63500; /* its lane holds no such chunk */
    l = open_loader(s, &o);
    int rc;
    for (int i = 0; (rc = hr_loader_next(l, 20000, &b, &e)) == 1; i++)
        hr_batch_release(b);
    check_eq(rc, HR_EBUDGET);
    check_has(e.text, "chunk t2m/c/3/0/0 of ");
    check_has(e.text, "memory=");
    hr_loader_unref(l);
    hr_samples_unref(s);
    little_write(&t2m);
}

/* Puts `size` bytes where an object of a few thousand belongs. */
static void put_absurd(const char *key, size_t size)
{
    char *object = calloc(1, size);
    little_put(key, object, size);
    free(object);
}

/* Shard 0 of u10, whose second inner chunk claims a megabyte. */
static void put_absurd_in_shard(void)
{
    enum { SIZE = 3 << 19 };
    char *object = calloc(1, SIZE);
    uint64_t index[3][2];
    size_t n = 0;
    for (int i = 0; i < 3; i++) {
        index[i][0] = n;
        n += index[i][1] = little_chunk(&u10, i, 0, object + n, 8000);
    }
    index[1][1] = 1 << 20;
    memcpy(object + SIZE - sizeof index, index, sizeof index);
    little_put("u10/c/0/0/0", object, SIZE);
    free(object);
}

/* In an epoch with `on_error`="mask": the ids masked, all of [first, last); no other failure. */
static void check_masked(const struct little *a, int64_t first, int64_t last)
{
    struct hr_samples *s = one_view(a->name);
    struct hr_loader_options o = HR_LOADER_OPTIONS;
    struct hr_batch *b = NULL;
    o.n = 1;
    o.memory = 400000; /* holds no such object: that must not be what is wrong with it */
    struct hr_loader *l = open_loader(s, &o);
    int rc;
    while ((rc = hr_loader_next(l, 20000, &b, &e)) == 1)
        hr_batch_release(b);
    check_eq(rc, HR_EDATA);
    check_has(e.text, a->name);
    check_has(e.text, a->zstd ? "no encoding is that large" : "(uncompressed)");
    hr_loader_unref(l);
    o.on_error = HR_ON_ERROR_MASK;
    l = open_loader(s, &o);
    int64_t rows = 0;
    while ((rc = hr_loader_next(l, 20000, &b, &e)) == 1) {
        int64_t id = hr_batch_index(b)[0];
        check_eq(hr_batch_valid(b)[0], id < first || id >= last);
        rows++;
        hr_batch_release(b);
    }
    check_eq(rc, 0);
    check_eq(rows, 50);
    hr_loader_unref(l);
    hr_samples_unref(s);
    little_write(a);
}

static void an_absurdly_large_chunk_is_damaged_wherever_it_lies(void)
{
    put_absurd("t2m/c/3/0/0", 1 << 20);
    check_masked(&t2m, 12, 16);
    put_absurd("raw/c/3/0/0", 1 << 20);
    check_masked(&raw, 12, 16);
    put_absurd("raw/c/3/0/0", 4 * 6 * 40 * 4 + 1);
    check_masked(&raw, 12, 16);
    put_absurd_in_shard();
    check_masked(&u10, 5, 10);
}

static void integers_have_no_nan_for_missing_chunks(void)
{
    struct hr_samples *s = one_view("packed");
    must(hr_view_decode(s, "x", 0, &e));
    struct hr_loader_options o = HR_LOADER_OPTIONS;
    struct hr_loader *l = NULL;
    o.n = 2;
    o.missing = HR_MISSING_NAN;
    check_eq(hr_loader_open(s, &o, &l, &e), HR_EINVAL);
    check_has(e.text, "int16");
    o.missing = HR_MISSING_FILL;
    l = open_loader(s, &o);
    struct hr_batch *b = NULL;
    struct hr_tensor x;
    check_eq(hr_loader_next(l, 20000, &b, &e), 1);
    hr_batch_tensor(b, 0, &x);
    check_eq(x.dtype, HR_I16);
    check_eq(((int16_t *)x.data)[241], little_packed(&packed, 1, 0, 1));
    hr_batch_release(b);
    hr_loader_unref(l);
    hr_samples_unref(s);
}

static int say_stop(void *arg)
{
    return ++*(int *)arg >= 2;
}

static void waits_end_by_timeout_interrupt_or_close(void)
{
    struct hr_samples *s = open_samples();
    struct hr_loader_options o = HR_LOADER_OPTIONS;
    struct hr_batch *b = NULL;
    o.n = 1;
    struct hr_loader *l = open_loader(s, &o);
    int asked = 0, rc = 0, n = 0;
    struct hr_batch *held[64];
    while ((rc = hr_loader_poll(l, 0, say_stop, &asked, &b, &e)) != 0 &&
           n < 60) { /* impatient, yet nothing is lost */
        check(rc == 1 || rc == HR_ETIMEOUT);
        if (rc == 1)
            held[n++] = b;
    }
    check_eq(n, 47);
    while (n)
        hr_batch_release(held[--n]);
    hr_loader_close(l);
    hr_loader_close(l);
    check_eq(hr_loader_next(l, -1, &b, &e), HR_ECLOSED);
    hr_loader_unref(l);
    hr_samples_unref(s);
}

static void set_stuck(bool stuck)
{
    __atomic_store_n(&served_stuck, stuck, __ATOMIC_RELAXED);
}

static void closing_does_not_wait_for_a_server(void)
{
    if (!*little_served)
        SKIP("no server");
    struct hr_samples *s = open_samples();
    struct hr_loader_options o = HR_LOADER_OPTIONS;
    struct hr_batch *b = NULL;
    o.n = 4;
    struct hr_loader *l = open_loader(s, &o);
    set_stuck(true);
    check_eq(hr_loader_next(l, 100, &b, &e), HR_ETIMEOUT);
    uint64_t start = clock_ns();
    hr_loader_close(l);
    check(clock_ns() - start < 100000000);
    check_eq(hr_loader_next(l, -1, &b, &e), HR_ECLOSED);
    hr_loader_unref(l);
    check(clock_ns() - start < 200000000);
    set_stuck(false);
    hr_samples_unref(s);
}

/* Whether a log line has all of `parts` (until NULL). */
static bool was_said(const char *const *parts)
{
    char text[640];
    int level;
    bool found = false;
    while (hr_log_next(&level, text, sizeof text)) {
        bool all = true;
        for (const char *const *p = parts; *p; p++)
            all &= strstr(text, *p) != NULL;
        found |= all && level == 30;
    }
    return found;
}

static void what_is_waited_for_is_said(void)
{
    static const char *const chunk[] = {"no batch for 0.05 s: waiting for chunk ",
                                        "/c/0/0/0 of http://", "reads under way", "no answer yet",
                                        NULL};
    if (!*little_served)
        SKIP("no server");
    uint64_t usual = runtime_explain_ns(0);
    runtime_explain_ns(50000000);
    struct hr_samples *s = one_view("t2m");
    struct hr_loader_options o = HR_LOADER_OPTIONS;
    struct hr_batch *b = NULL;
    o.n = 4;
    struct hr_loader *l = open_loader(s, &o);
    was_said(chunk); /* what others said */
    set_stuck(true);
    bool said = false;
    for (int i = 0; i < 25 && !said; i++) {
        check_eq(hr_loader_next(l, 400, &b, &e), HR_ETIMEOUT);
        said = was_said(chunk);
    }
    check(said);
    set_stuck(false);
    check_eq(hr_loader_next(l, 20000, &b, &e), 1);
    hr_batch_release(b);
    hr_loader_unref(l);
    hr_samples_unref(s);
    runtime_explain_ns(usual);
    check_eq(usual, 30000000000);
}

static void *close_soon(void *l)
{
    usleep(30000);
    hr_loader_close(l);
    return NULL;
}

static void closing_wakes_a_waiting_consumer(void)
{
    if (!*little_served)
        SKIP("no server");
    struct hr_samples *s = open_samples();
    struct hr_loader_options o = HR_LOADER_OPTIONS;
    struct hr_batch *b = NULL;
    pthread_t t;
    o.n = 4;
    struct hr_loader *l = open_loader(s, &o);
    set_stuck(true);
    check_eq(thread_start(&t, "closer", close_soon, l), 0);
    check_eq(hr_loader_next(l, -1, &b, &e), HR_ECLOSED);
    pthread_join(t, NULL);
    set_stuck(false);
    hr_loader_unref(l);
    hr_samples_unref(s);
}

static void reports_are_json_with_the_numbers(void)
{
    struct hr_samples *s = open_samples();
    struct hr_loader_options o = HR_LOADER_OPTIONS;
    o.n = 4;
    o.shuffle = HR_SHUFFLE_SPREAD;
    struct hr_loader *l = open_loader(s, &o);
    char *plan = NULL, *stats = NULL;
    struct arena a;
    struct json *v;
    int64_t n;
    arena_init(&a);
    must(hr_loader_plan_json(l, &plan, &e));
    must(json_parse(&a, plan, strlen(plan), "plan", &v, &e));
    check(json_int64(json_get(v, "steps"), &n) && n == 11);
    check(json_get(json_get(v, "cost"), "chunk_reads") &&
          json_get(json_get(v, "memory"), "minimum"));
    check_eq(run_epoch(l, NULL), 44);
    must(hr_loader_stats_json(l, &stats, &e));
    must(json_parse(&a, stats, strlen(stats), "stats", &v, &e));
    check(json_int64(json_get(v, "rows"), &n) && n == 44);
    check(json_int64(json_get(json_get(v, "chunks"), "read"), &n) && n >= 26 + 10 + 13 + 7 - 4);
    hr_free(plan);
    hr_free(stats);
    arena_dispose(&a);
    hr_loader_unref(l);
    hr_samples_unref(s);
}

static int64_t chunks_read(struct hr_loader *l)
{
    char *stats = NULL;
    must(hr_loader_stats_json(l, &stats, &e));
    const char *at = stats ? strstr(stats, "\"chunks\": {\"read\": ") : NULL;
    int64_t n = at ? strtoll(at + strlen("\"chunks\": {\"read\": "), NULL, 10) : -1;
    hr_free(stats);
    return n;
}

static void an_archive_that_fits_is_not_read_again(void)
{
    struct hr_samples *s = open_samples();
    struct hr_loader_options o = HR_LOADER_OPTIONS;
    o.n = 4;
    o.shuffle = HR_SHUFFLE_SPREAD;
    struct hr_loader *l = open_loader(s, &o);
    int64_t read[5];
    for (int epoch = 0; epoch < 5; epoch++) {
        check_eq(run_epoch(l, NULL), 44);
        read[epoch] = chunks_read(l);
    }
    check(read[0] >= 40);
    check((read[1] - read[0] < 8) ==
          !!*little_served);      /* a directory's are kept from the second epoch on … */
    check(read[4] - read[2] < 8); /* … but for chunks that the remainder left out before */
    hr_loader_unref(l);
    hr_samples_unref(s);
}

#if defined(__SANITIZE_ADDRESS__)
#define FORKS                                                                                      \
    5 /* a thread that is not in the child may have held a lock of the sanitizer's own heap */
#else
#define FORKS 1
#endif

/* In a child: 0, or the status it ended with. One that hangs is ended by a signal. */
static int in_a_child(int (*run)(struct hr_loader *l, struct hr_batch *held), struct hr_loader *l,
                      struct hr_batch *held)
{
    int status = SIGALRM;
    for (int i = 0; i < FORKS && WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM; i++) {
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) {
            signal(SIGALRM, SIG_DFL);
            alarm(40);
            _exit(run(l, held));
        }
        status = 1;
        waitpid(pid, &status, 0);
    }
    return status;
}

static int as_a_child(struct hr_loader *l, struct hr_batch *held)
{
    struct hr_loader_options o = HR_LOADER_OPTIONS;
    struct hr_batch *b = NULL;
    o.n = 4;
    int bad = hr_loader_next(l, 1000, &b, &e) != HR_EFORK;
    bad |= !row_is_right(held, 1);
    hr_batch_release(held);
    hr_loader_close(l);
    hr_loader_unref(l);
    struct hr_samples *mine = open_samples();
    struct hr_loader *again = open_loader(mine, &o);
    bad |= run_epoch(again, NULL) != 47;
    return bad || t_failed_checks;
}

static void a_forked_child_hears_so_and_can_open_anew(void)
{
#if defined(__SANITIZE_THREAD__)
    SKIP("ThreadSanitizer does not follow forks of programs with threads");
#endif
    struct hr_samples *s = open_samples();
    struct hr_loader_options o = HR_LOADER_OPTIONS;
    struct hr_batch *held = NULL;
    o.n = 4;
    struct hr_loader *l = open_loader(s, &o);
    check_eq(hr_loader_next(l, 20000, &held, &e), 1);
    check_eq(in_a_child(as_a_child, l, held), 0);
    hr_batch_release(held);
    check_eq(run_epoch(l, NULL), 43);
    hr_loader_unref(l);
    hr_samples_unref(s);
}

static void two_loaders_share_the_workers(void)
{
    struct hr_samples *s = open_samples();
    struct hr_loader_options o = HR_LOADER_OPTIONS;
    struct hr_loader *l[2];
    struct hr_batch *b = NULL;
    int64_t rows[2] = {0};
    int rc[2] = {1, 1};
    o.n = 3;
    o.remainder = HR_DROP;
    l[0] = open_loader(s, &o);
    o.shuffle = HR_SHUFFLE_SPREAD;
    l[1] = open_loader(s, &o);
    while (rc[0] == 1 || rc[1] == 1)
        for (int i = 0; i < 2; i++)
            if (rc[i] == 1 && (rc[i] = hr_loader_next(l[i], 20000, &b, &e)) == 1) {
                rows[i] += hr_batch_rows(b);
                check(row_is_right(b, 2));
                hr_batch_release(b);
            }
    check(rows[0] == 45 && rows[1] == 45);
    hr_loader_unref(l[0]);
    hr_loader_unref(l[1]);
    hr_samples_unref(s);
}

/* What was running when a loader was closed finishes detached. */
static uint64_t settled(void)
{
    uint64_t live = mem_live();
    for (int still = 0; still < 20;) {
        usleep(5000);
        still = mem_live() == live ? still + 1 : 0;
        live = mem_live();
    }
    return live;
}

static void everything_is_given_back(void)
{
    hr_loader_unref(NULL);
    uint64_t before = settled();
    struct hr_samples *s = open_samples();
    struct hr_loader_options o = HR_LOADER_OPTIONS;
    o.n = 4;
    o.shuffle = HR_SHUFFLE_SPREAD;
    for (int i = 0; i < 4; i++) {
        struct hr_loader *l = open_loader(s, &o);
        struct hr_batch *b = NULL;
        for (int k = 0; k < i; k++) {
            check_eq(hr_loader_next(l, 20000, &b, &e), 1);
            hr_batch_release(b);
        }
        hr_loader_unref(l); /* with work under way */
    }
    hr_samples_unref(s);
    check(settled() <= before);
}

/* One allocation fails, whichever it is: an error that says so or no harm at all, and nothing is
 * left behind. */
static void any_failed_allocation_is_an_error_and_no_leak(void)
{
    uint64_t before = settled();
    struct hr_samples *s = open_samples();
    struct hr_loader_options o = HR_LOADER_OPTIONS;
    int64_t n = 0;
    o.n = 5;
    o.shuffle = HR_SHUFFLE_SPREAD;
    o.memory = 1 << 20;
    must(hr_samples_count(s, &n, &e));
    int failures = 0;
    for (uint64_t at = 1; at < 700; at += 1 + at / 12) {
        struct hr_loader *l = NULL;
        struct hr_batch *b = NULL;
        mem_fail_at(at, false);
        int rc = hr_loader_open(s, &o, &l, &e);
        for (int i = 0; rc >= 0 && i < 6; i++) {
            rc = hr_loader_next(l, 20000, &b, &e);
            if (rc == 1)
                check(row_is_right(b, 0));
            hr_batch_release(b);
        }
        mem_fail_at(0, false);
        failures += rc < 0;
        check(rc >= 0 || rc == HR_ENOMEM);
        if (rc < 0 && rc != HR_ENOMEM)
            printf("# allocation %d: %s\n", (int)at, e.text);
        hr_loader_unref(l);
    }
    check(failures > 10);
    hr_samples_unref(s);
    check(settled() <= before);
}

static void run_all(void)
{
    write_all();
    RUN(a_sequential_epoch_is_the_archive_in_order);
    RUN(shuffled_epochs_differ_and_hold_every_sample_once);
    RUN(the_order_does_not_depend_on_the_budget);
    RUN(the_smallest_budget_that_is_named_is_accepted);
    RUN(batches_outlive_their_loader);
    RUN(a_state_at_every_step_gives_the_same_suffix);
    RUN(a_state_of_other_options_is_refused_by_name);
    RUN(rewinding_in_mid_epoch_starts_the_next);
    RUN(a_bad_chunk_fails_its_batch_at_its_turn);
    RUN(a_bad_chunk_can_be_masked_instead);
    RUN(missing_chunks_are_filled_counted_or_refused);
    RUN(a_chunk_larger_than_expected_gets_a_larger_ticket);
    RUN(an_absurdly_large_chunk_is_damaged_wherever_it_lies);
    RUN(integers_have_no_nan_for_missing_chunks);
    RUN(waits_end_by_timeout_interrupt_or_close);
    RUN(closing_does_not_wait_for_a_server);
    RUN(what_is_waited_for_is_said);
    RUN(closing_wakes_a_waiting_consumer);
    RUN(reports_are_json_with_the_numbers);
    RUN(two_loaders_share_the_workers);
    RUN(an_archive_that_fits_is_not_read_again);
    RUN(a_forked_child_hears_so_and_can_open_anew);
    RUN(everything_is_given_back);
    RUN(any_failed_allocation_is_an_error_and_no_leak);
}

int main(void)
{
    char command[300];
    snprintf(little_root, sizeof little_root, "%s/headrace-loader-%d",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", getpid());
    run_all();
    int port = served_start(little_root);
    check(port > 0);
    served_flaky = true;
    snprintf(little_served, sizeof little_served, "http://127.0.0.1:%d", port);
    run_all();
    *little_served = 0;
    snprintf(command, sizeof command, "rm -rf '%s'", little_root);
    if (system(command))
        return 1;
    *little_root = 0;
    run_all();
    return t_done();
}
