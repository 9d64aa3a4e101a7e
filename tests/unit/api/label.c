/* What labels select on coordinates of every kind. */
#include "api/label.h"
#include "api/spacing.h"
#include "base/mem.h"
#include "small.h"

static struct hr_error e;
static struct arena arena;
static struct hr_archive *archive;

static void put_all(void)
{
    small_put(".zgroup", "{\"zarr_format\": 2}");
    small_put("deep/.zgroup", "{\"zarr_format\": 2}");
    small_array("x", "[8, 5]", "<f4", "[\"time\", \"lat\"]", "", NULL, 0);
    small_array("deep/x", "[3, 5]", "<f4", "[\"level\", \"lat\"]", "", NULL, 0);
    SMALL("time", "<i4", "time", ", \"units\": \"hours since 1990-01-01\"",
          (const int32_t[]){0, 6, 12, 18, 24, 30, 36, 42});
    SMALL("noon", "<f8", "noon",
          ", \"units\": \"days since 1990-01-01\", \"calendar\": \"360_day\"",
          (const double[]){28.5, 29.5, 30.5});
    SMALL("day", "<M8[D]", "day", "", (const int64_t[]){0, 1, 366});
    SMALL("lat", "<f8", "lat", "", (const double[]){90, 45, 0, -45, -90});
    SMALL("deep/level", "<i2", "level", "", (const int16_t[]){500, 850, 1000});
    SMALL("single", "<f4", "single", "", (const float[]){0.1f, 0.2f, 0.3f});
    SMALL("packed", "<i2", "packed", ", \"scale_factor\": 0.5, \"add_offset\": 10",
          (const int16_t[]){0, 1, 4});
    SMALL("mixed", "<i8", "mixed", "", (const int64_t[]){3, 1, 3, 2, 2});
    SMALL("uneven", "<i4", "uneven", ", \"units\": \"days since 2000-01-01\"",
          (const int32_t[]){0, 1, 3});
    small_array("name", "[3]", "|S4", "[\"name\"]", "", "a\0\0\0bb\0\0cccc", 12);
    small_array("wide", "[2]", "<U2", "[\"wide\"]", "", U"\u00e9\0\u6c34b", 16);
    small_array("wrong", "[2, 2]", "<i4", "[\"wrong\", \"other\"]", "", NULL, 0);
}

static int read_of(const char *array, const char *dim, int64_t n, struct coordinate *c)
{
    const struct array *x;
    e = (struct hr_error){0};
    return archive_array(archive, array, &x, &e) < 0 ? -1000
                                                     : coordinate_read(archive, x, dim, n, c, &e);
}

/* `labels` on the coordinate `dim` of length n. */
static int selected(const char *dim, int64_t n, const char *labels, struct selection *s)
{
    struct coordinate c;
    struct json *doc;
    *s = (struct selection){0};
    int rc = read_of("x", dim, n, &c);
    if (rc < 0)
        return rc;
    arena_dispose(&arena);
    rc = json_parse(&arena, labels, strlen(labels), "labels", &doc, &e);
    if (rc >= 0)
        rc = coordinate_select(&c, &arena, doc, s, &e);
    coordinate_dispose(&c);
    return rc;
}

static void check_one(const char *dim, int64_t n, const char *label, int64_t at)
{
    struct selection s;
    if (!check(selected(dim, n, label, &s) == 0 && s.kind == SELECTION_ONE && s.count == 1 &&
               s.start == at))
        printf("# %s=%s: %lld + %lld %s\n", dim, label, (long long)s.start, (long long)s.count,
               e.text);
}

static void check_range(const char *dim, int64_t n, const char *labels, int64_t start,
                        int64_t count, int64_t step)
{
    struct selection s;
    if (!check(selected(dim, n, labels, &s) == 0 && s.kind == SELECTION_RANGE && s.count == count &&
               (!count || s.start == start) && s.step == step))
        printf("# %s=%s: %lld + %lld · %lld %s\n", dim, labels, (long long)s.start,
               (long long)s.count, (long long)s.step, e.text);
}

static void check_refused(const char *dim, int64_t n, const char *labels, int code,
                          const char *part)
{
    struct selection s;
    check_eq(selected(dim, n, labels, &s), code);
    check_has(e.text, dim);
    check_has(e.text, part);
}

static void numbers_match_in_the_type_of_the_coordinate(void)
{
    check_one("single", 3, "0.1", 0);
    check_one("single", 3, "0.3", 2);
    check_one("lat", 5, "45", 1);
    check_one("lat", 5, "-45.0", 3);
    check_one("packed", 3, "10.5", 1);
    check_one("packed", 3, "12", 2);
    check_one("mixed", 5, "1", 1);
    check_one("mixed", 5, "1.0", 1);
    check_refused("mixed", 5, "1.5", HR_EINVAL, "takes an integer");
    check_refused("lat", 5, "\"north\"", HR_EINVAL, "takes a number");
    check_refused("time", 8, "6", HR_EINVAL, "takes a time");
    check_refused("name", 3, "6", HR_EINVAL, "takes a text");
}

static void a_label_that_is_not_there_names_the_nearest(void)
{
    check_refused("lat", 5, "40", HR_ENOENT, "(90 … -90); the nearest is 45");
    check_refused("mixed", 5, "7", HR_ENOENT, "(3 … 2); the nearest is 3");
    check_refused("time", 8, "\"1990-01-01T07\"", HR_ENOENT, "the nearest is 1990-01-01T06:00:00");
    check_refused("name", 3, "\"dd\"", HR_ENOENT, "(\"a\" … \"cccc\")");
}

static void a_time_that_leaves_something_open_covers_it(void)
{
    check_range("time", 8, "\"1990-01-02\"", 4, 4, 1);
    check_range("time", 8, "\"1990\"", 0, 8, 1);
    check_one("time", 8, "\"1990-01-01T06\"", 1);
    check_one("time", 8, "\"1990-01-01T06:00:00\"", 1);
    check_one("time", 8, "\"1990-01-01T08:00+02:00\"", 1);
    check_range("noon", 3, "\"1990-01-30\"", 1, 1, 1); /* noon is not the instant that was named */
    check_range("noon", 3, "\"1990-02\"", 2, 1, 1);
    check_one("day", 3, "\"1970-01-02\"", 1);
    check_range("day", 3, "\"1970\"", 0, 2, 1);
    check_range("day", 3, "{\"start\": \"1970-01-02\", \"stop\": \"1971\"}", 1, 2, 1);
    check_refused("noon", 3, "\"1990-01-31\"", HR_EINVAL, "no label");
}

static void slices_take_both_ends_in_the_order_of_the_coordinate(void)
{
    check_range("lat", 5, "{\"start\": 45, \"stop\": -45}", 1, 3, 1);
    check_range("lat", 5, "{\"start\": 50, \"stop\": -50}", 1, 3, 1);
    check_refused("lat", 5, "{\"start\": -45, \"stop\": 45}", HR_EINVAL, "write slice(45, -45)");
    check_range("lat", 5, "{\"start\": -91, \"stop\": -92}", 5, 0, 1);
    check_range("lat", 5, "{\"start\": null, \"stop\": 0, \"step\": 2}", 0, 2, 2);
    check_range("lat", 5, "{\"step\": 9223372036854775807}", 0, 1, INT64_MAX);
    check_range("lat", 5, "{}", 0, 5, 1);
    check_range("time", 8, "{\"start\": \"1990-01-01T12\", \"stop\": \"1990-01-02\"}", 2, 6, 1);
    check_range("time", 8, "{\"start\": \"1991\"}", 0, 0, 1);
    check_range("name", 3, "{\"start\": \"b\"}", 1, 2, 1);
    check_range("mixed", 5, "{\"step\": 2}", 0, 3, 2);
    check_refused("mixed", 5, "{\"start\": 1}", HR_EINVAL, "is not sorted");
    check_refused("lat", 5, "{\"step\": -1}", HR_EINVAL, "positive integer");
}

static void lists_keep_their_order_and_take_one_element_each(void)
{
    struct selection s;
    check(selected("lat", 5, "[-90, 90, -90]", &s) == 0 && s.kind == SELECTION_LIST);
    check(s.count == 3 && s.list[0] == 4 && s.list[1] == 0 && s.list[2] == 4);
    check(selected("mixed", 5, "[]", &s) == 0 && s.count == 0);
    check_refused("time", 8, "[\"1990-01-01\"]", HR_EINVAL, "selects 4 elements");
    check_refused("mixed", 5, "[2]", HR_EINVAL, "selects 2 elements");
    check_refused("mixed", 5, "[1, 3]", HR_EINVAL, "not sorted");
    check_range("mixed", 5, "2", 3, 2, 1);
}

static void texts_match_whole(void)
{
    check_one("name", 3, "\"bb\"", 1);
    check_one("name", 3, "\"cccc\"", 2);
    check_one("wide", 2, "\"é\"", 0);
    check_one("wide", 2, "\"水b\"", 1);
    check_refused("name", 3, "\"b\"", HR_ENOENT, "no label \"b\"");
}

static void a_coordinate_lies_beside_its_array_or_at_the_root(void)
{
    struct coordinate c;
    check(read_of("deep/x", "level", 3, &c) == 0 && c.kind == COORDINATE_INT && c.n == 3);
    check_str(c.name, "deep/level");
    coordinate_dispose(&c);
    check(read_of("deep/x", "lat", 5, &c) == 0 && c.kind == COORDINATE_FLOAT);
    check_str(c.name, "lat");
    coordinate_dispose(&c);
    check_eq(read_of("x", "level", 3, &c), HR_ENOENT);
    check_has(e.text, "dimension level has no coordinate array");
    check_eq(read_of("x", "lat", 6, &c), HR_EFORMAT);
    check_eq(read_of("x", "wrong", 2, &c), HR_EFORMAT);
    check_has(e.text, "array wrong is no coordinate");
}

static void check_lag(const char *dim, int64_t n, const char *duration, int rc, int64_t steps,
                      const char *part)
{
    struct coordinate c;
    int64_t got = 0;
    if (!check(read_of("x", dim, n, &c) == 0))
        return;
    check_eq(coordinate_steps(&c, duration, "give positions", &got, &e), rc);
    check_eq(got, steps);
    if (part)
        check_has(e.text, part);
    coordinate_dispose(&c);
}

static void a_lag_is_a_whole_number_of_equal_steps(void)
{
    check_lag("time", 8, "6h", 0, 1, NULL);
    check_lag("time", 8, "-1D", 0, -4, NULL);
    check_lag("time", 8, "360min", 0, 1, NULL);
    check_lag("lat", 5, "90", 0, -2, NULL); /* descending */
    check_lag("single", 3, "0.2", 0, 2, NULL);
    check_lag("time", 8, "4h", HR_EINVAL, 0, "is 0.6667 steps of coordinate time");
    check_lag("time", 8, "soon", HR_EINVAL, 0, "\"soon\" is no duration");
    check_lag("lat", 5, "6h", HR_EINVAL, 0, "no number in the unit of coordinate lat");
    check_lag("uneven", 3, "1D", HR_EINVAL, 0, "not uniformly spaced (at index 2, 2000-01-04T");
    check_lag("mixed", 5, "1", HR_EINVAL, 0, "not uniformly spaced (at index 2, ");
    check_lag("name", 3, "1", HR_EINVAL, 0, "holds texts");
}

static void any_failed_allocation_is_an_error_and_no_leak(void)
{
    static const char *const dims[] = {"time", "noon", "lat", "packed", "name", "wide"};
    static const int lengths[] = {8, 3, 5, 3, 3, 2};
    struct selection s;
    for (int i = 0; i < 6; i++) {
        int rc = -1;
        arena_dispose(&arena);
        uint64_t before = mem_live();
        for (uint64_t n = 1; rc < 0 && n < 1000; n++) {
            mem_fail_at(n, false);
            rc = selected(dims[i], lengths[i], "{}", &s);
            mem_fail_at(0, false);
            arena_dispose(&arena);
            check(rc == 0 || rc == HR_ENOMEM);
            check_eq(mem_live(), before);
        }
        check_eq(rc, 0);
    }
}

int main(void)
{
    put_all();
    archive = small_open();
    RUN(numbers_match_in_the_type_of_the_coordinate);
    RUN(a_label_that_is_not_there_names_the_nearest);
    RUN(a_time_that_leaves_something_open_covers_it);
    RUN(slices_take_both_ends_in_the_order_of_the_coordinate);
    RUN(lists_keep_their_order_and_take_one_element_each);
    RUN(texts_match_whole);
    RUN(a_coordinate_lies_beside_its_array_or_at_the_root);
    RUN(a_lag_is_a_whole_number_of_equal_steps);
    RUN(any_failed_allocation_is_an_error_and_no_leak);
    arena_dispose(&arena);
    hr_archive_unref(archive);
    memory_drop("small");
    return t_done();
}
