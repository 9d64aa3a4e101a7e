/* Archives made of archives: every item of concatenated arrays, by reading and through a loader; members that are made of
 * others; what goes wrong on the way. */
#include "api/archive.h"
#include "base/mem.h"
#include "format/members.h"
#include "store/memory.h"
#include "t.h"
#include <unistd.h>

static struct hr_error e;

static void must(int rc)
{
    if (!check(rc >= 0)) {
        printf("# %s\n", e.text);
        exit(99);
    }
}

static void put(const char *store, const char *key, const void *data, size_t n)
{
    if (memory_put(store, key, data, n, NULL) < 0)
        exit(99);
}

static int32_t value(int64_t row, int64_t column)
{
    return (int32_t)(row * 100 + column);
}

/* x (rows × 5, chunks of `chunk` × 2) and time, hourly from `hours` since 2000 on, counted from `since`. */
static void put_archive(const char *store, int first, int rows, int chunk, const char *since,
                        int hours)
{
    char text[500], key[40];
    int32_t items[64], times[64];
    put(store, ".zgroup", "{\"zarr_format\": 2}", 18);
    snprintf(text, sizeof text,
             "{\"zarr_format\": 2, \"shape\": [%d, 5], \"chunks\": [%d, 2], \"dtype\": \"<i4\", "
             "\"order\": \"C\", \"fill_value\": null, \"filters\": null, \"compressor\": null}",
             rows, chunk);
    put(store, "x/.zarray", text, strlen(text));
    const char *dims = "{\"_ARRAY_DIMENSIONS\": [\"time\", \"column\"]}";
    put(store, "x/.zattrs", dims, strlen(dims));
    for (int c = 0; c * chunk < rows; c++)
        for (int d = 0; d < 3; d++) {
            for (int i = 0; i < chunk * 2; i++)
                items[i] = value(first + c * chunk + i / 2, d * 2 + i % 2);
            snprintf(key, sizeof key, "x/%d.%d", c, d);
            put(store, key, items, (size_t)chunk * 8);
        }
    snprintf(text, sizeof text,
             "{\"zarr_format\": 2, \"shape\": [%d], \"chunks\": [%d], \"dtype\": \"<i4\", "
             "\"order\": \"C\", \"fill_value\": null, \"filters\": null, \"compressor\": null}",
             rows, rows);
    put(store, "time/.zarray", text, strlen(text));
    snprintf(text, sizeof text,
             "{\"_ARRAY_DIMENSIONS\": [\"time\"], \"units\": \"hours since %s\"}", since);
    put(store, "time/.zattrs", text, strlen(text));
    for (int i = 0; i < rows; i++)
        times[i] = hours + i;
    put(store, "time/0", times, (size_t)rows * 4);
}

#define ROWS 12
static void put_all(void)
{
    put_archive("a", 0, 5, 2, "2000-01-01", 0);
    put_archive("b", 5, 1, 3, "1999-01-01", 8765);
    put_archive("c", 6, 6, 4, "2000-01-01", 6);
}

static struct hr_archive *open_one(const char *url)
{
    struct hr_archive *a = NULL;
    must(hr_open(url, NULL, &a, &e));
    return a;
}

/* References of `members` are given up. */
static struct hr_archive *concat_of(struct hr_archive **members, int n)
{
    struct hr_archive *a = NULL;
    must(hr_archive_concat(members, n, "time", &a, &e));
    for (int i = 0; i < n; i++)
        hr_archive_unref(members[i]);
    return a;
}

static struct hr_archive *open_whole(void)
{
    return concat_of((struct hr_archive *[]){open_one("memory://a"), open_one("memory://b"),
                                             open_one("memory://c")},
                     3);
}

/* concat of a concat */
static struct hr_archive *open_nested(void)
{
    struct hr_archive *two =
        concat_of((struct hr_archive *[]){open_one("memory://a"), open_one("memory://b")}, 2);
    return concat_of((struct hr_archive *[]){two, open_one("memory://c")}, 2);
}

static void check_read(struct hr_archive *a, const char *path)
{
    for (int by = -3; by <= 3; by++) {
        if (!by)
            continue;
        int64_t start[] = {by > 0 ? 1 : ROWS - 1, 4},
                count[] = {by > 0 ? (ROWS - 2) / by + 1 : (ROWS - 1) / -by + 1, 5},
                step[] = {by, -1}, wrong = 0;
        void *data;
        size_t n;
        must(hr_archive_read(a, path, 2, start, count, step, HR_NONE, 1, &data, &n, &e));
        check_eq(n, count[0] * count[1] * 4);
        for (int64_t i = 0; i < count[0]; i++)
            for (int64_t k = 0; k < 5; k++)
                wrong += ((int32_t *)data)[i * 5 + k] != value(start[0] + i * by, 4 - k);
        check_eq(wrong, 0);
        hr_free(data);
    }
}

static void check_epoch(struct hr_archive *a, const char *path)
{
    struct hr_samples *s;
    struct hr_loader *l;
    struct hr_batch *b;
    struct hr_tensor t;
    struct hr_loader_options o = HR_LOADER_OPTIONS;
    int64_t rows = 0, wrong = 0;
    int rc;
    must(hr_samples_new(a, "time", &s, &e));
    must(hr_samples_view(s, "x", &path, 1, NULL, &e));
    must(hr_view_steps(s, "x", "time", -2, 1, &e));
    o.n = 2;
    o.shuffle = HR_SHUFFLE_SPREAD;
    o.remainder = HR_PAD;
    must(hr_loader_open(s, &o, &l, &e));
    while ((rc = hr_loader_next(l, -1, &b, &e)) == 1) {
        must(hr_batch_tensor(b, 0, &t));
        for (int64_t r = 0; r < hr_batch_rows(b); r++, rows++)
            for (int64_t i = 0; i < 20; i++)
                wrong += ((int32_t *)t.data)[r * 20 + i] !=
                         value(hr_batch_index(b)[r] - 2 + i / 5, i % 5);
        hr_batch_release(b);
    }
    must(rc);
    check_eq(wrong, 0);
    check(rows >= ROWS - 3);
    hr_loader_unref(l);
    hr_samples_unref(s);
}

static void items_are_those_of_the_members(void)
{
    struct hr_archive *a = open_whole(), *b = open_nested();
    check_read(a, "x");
    check_epoch(a, "x");
    check_read(b, "x");
    check_epoch(b, "x");
    hr_archive_unref(a);
    hr_archive_unref(b);
}

static void look_ups_end_at_leaves(void)
{
    struct hr_archive *a = open_nested();
    const struct array *x;
    must(archive_array(a, "x", &x, &e));
    check(x->members && x->members->n == 2 && array_leaves(x) == 3);
    check_eq(x->shape[0], ROWS);
    check_eq(x->n_chunks, (3 + 1 + 2) * 3);
    for (uint64_t chunk = 0; chunk < x->n_chunks; chunk++) {
        uint64_t at = chunk / 3, there = chunk, from, to;
        int leaf = at < 3 ? 0 : at < 4 ? 1 : 2;
        check_eq(array_leaf_number(x, chunk), leaf);
        check(array_leaf(x, &there) == array_leaf_at(x, leaf));
        check_eq(there, chunk - (leaf == 0 ? 0 : leaf == 1 ? 9 : 12));
        array_leaf_range(x, leaf, 0, &from, &to);
        check(from == (leaf == 0 ? 0u : leaf == 1 ? 5u : 6u));
    }
    hr_archive_unref(a);
}

static void names_lead_to_members(void)
{
    struct hr_archive *whole = open_whole(), *c = open_one("memory://c"), *a = NULL;
    struct hr_archive *members[] = {whole, c};
    char *json;
    must(hr_archive_combine(members, (const char *[]){"all", "last"}, 2, &a, &e));
    check_read(a, "all/x");
    check_epoch(a, "all/x");
    must(hr_archive_json(a, &json, &e));
    check_has(json, "\"path\": \"all/time\"");
    check_has(json, "\"path\": \"last/x\"");
    hr_free(json);
    check_eq(hr_archive_array_json(a, "first/x", &json, &e), HR_ENOENT);
    check_has(e.text, "all, last");
    hr_archive_unref(a);
    check_eq(hr_archive_combine(members, (const char *[]){"all", "all"}, 2, &a, &e), HR_EINVAL);
    check_eq(hr_archive_combine(members, (const char *[]){"all", "a/b"}, 2, &a, &e), HR_EINVAL);
    hr_archive_unref(whole);
    hr_archive_unref(c);
}

static void order_and_overlap_are_seen_by_time(void)
{
    struct hr_archive *a = open_one("memory://a"), *b = open_one("memory://b"), *out = NULL;
    check_eq(hr_archive_concat((struct hr_archive *[]){b, a}, 2, "time", &out, &e), HR_EINVAL);
    check_has(e.text, "not in order");
    check_eq(hr_archive_concat((struct hr_archive *[]){a, b, b}, 3, "time", &out, &e), HR_EINVAL);
    check_has(e.text, "overlap");
    check_eq(hr_archive_concat((struct hr_archive *[]){a}, 0, "time", &out, &e), HR_EINVAL);
    hr_archive_unref(a);
    hr_archive_unref(b);
}

static int try_all(void)
{
    struct hr_archive *m[3] = {0}, *a = NULL;
    const struct array *x;
    int rc = 0;
    static const char *const urls[] = {"memory://a", "memory://b", "memory://c"};
    for (int i = 0; i < 3 && rc >= 0; i++)
        rc = hr_open(urls[i], NULL, &m[i], &e);
    if (rc >= 0)
        rc = hr_archive_concat(m, 3, "time", &a, &e);
    if (rc >= 0)
        rc = archive_array(a, "x", &x, &e);
    hr_archive_unref(a);
    for (int i = 0; i < 3; i++)
        hr_archive_unref(m[i]);
    return rc;
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

static void any_failed_allocation_is_an_error_and_no_leak(void)
{
    must(try_all());
    uint64_t before = settled();
    int failures = 0, rc = HR_ENOMEM;
    for (uint64_t at = 1; rc < 0 && at < 5000; at++) {
        mem_fail_at(at, false);
        rc = try_all();
        mem_fail_at(0, false);
        failures += rc < 0;
        if (!check(rc >= 0 || rc == HR_ENOMEM))
            printf("# allocation %d: %s\n", (int)at, e.text);
        uint64_t live = mem_live();
        if (live != before) /* on a busy machine something may end later still */
            live = settled();
        before = live < before ? live : before;
        if (!check_eq(live, before))
            printf("# allocation %d\n", (int)at);
    }
    check(failures > 50);
}

int main(void)
{
    put_all();
    RUN(items_are_those_of_the_members);
    RUN(look_ups_end_at_leaves);
    RUN(names_lead_to_members);
    RUN(order_and_overlap_are_seen_by_time);
    RUN(any_failed_allocation_is_an_error_and_no_leak);
    return t_done();
}
