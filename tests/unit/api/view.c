/* What the building calls make of a view's dimensions, and what they refuse. */
#include "api/core.h"
#include "base/mem.h"
#include "small.h"

static struct hr_error e;
static struct hr_archive *archive;

static void put_all(void)
{
    small_put(".zgroup", "{\"zarr_format\": 2}");
    small_array("t", "[8, 5, 6]", "<f4", "[\"time\", \"lat\", \"lon\"]", "", NULL, 0);
    small_array("u", "[8, 5, 6]", "<f4", "[\"time\", \"lat\", \"lon\"]", "", NULL, 0);
    small_array("v", "[8, 6, 5]", "<f4", "[\"time\", \"lon\", \"lat\"]", "", NULL, 0);
    small_array("short", "[7, 5]", "<f4", "[\"time\", \"lat\"]", "", NULL, 0);
    small_array("mask", "[5, 6]", "<f4", "[\"lat\", \"lon\"]", "", NULL, 0);
    small_array("twice", "[8, 5, 5]", "<f4", "[\"time\", \"lat\", \"lat\"]", "", NULL, 0);
    SMALL("time", "<i4", "time", ", \"units\": \"hours since 1990-01-01\"",
          (const int32_t[]){0, 6, 12, 18, 24, 30, 36, 42});
    SMALL("lat", "<f8", "lat", "", (const double[]){90, 45, 0, -45, -90});
}

static struct hr_samples *samples;

/* Samples along time with the view x of `array`, anew. */
static struct core *begin(const char *array)
{
    e = (struct hr_error){0};
    hr_samples_unref(samples);
    samples = NULL;
    check_eq(hr_samples_new(archive, "time", &samples, &e), 0);
    if (array)
        check_eq(hr_samples_view(samples, "x", &array, 1, NULL, &e), 0);
    return samples->core;
}

static const struct dim_spec *dim(int d)
{
    return &samples->core->views[0]->dim[d];
}

static void check_dim(int d, enum plan_sel kind, int64_t start, int64_t count, int64_t step,
                      bool keep)
{
    const struct dim_spec *x = dim(d);
    if (!check(x->set && x->kind == kind && x->start == start && x->count == count &&
               x->step == step && x->keep == keep))
        printf("# kind %d: %lld + %lld · %lld, keep %d %s\n", (int)x->kind, (long long)x->start,
               (long long)x->count, (long long)x->step, x->keep, e.text);
}

static void check_refused(int rc, int code, const char *part)
{
    check_eq(rc, code);
    check_has(e.text, part);
}

static void steps_count_from_the_sample(void)
{
    begin("t");
    check_eq(hr_view_steps(samples, "x", "time", -2, 1, &e), 0);
    check_dim(0, SEL_SAMPLE, -2, 4, 1, true);
    begin("t");
    check_eq(hr_view_steps(samples, "x", "time", 3, 3, &e), 0);
    check_dim(0, SEL_SAMPLE, 3, 1, 1, false);
    begin("t");
    check_eq(hr_view_window(samples, "x", "time", 4, &e), 0);
    check_dim(0, SEL_SAMPLE, -3, 4, 1, true);
    begin("t");
    check_eq(hr_view_window(samples, "x", "time", 1, &e), 0);
    check_dim(0, SEL_SAMPLE, 0, 1, 1, true);
    begin("t");
    check_eq(hr_view_lag(samples, "x", "time", "12h", &e), 0);
    check_dim(0, SEL_SAMPLE, -2, 1, 1, false);
    begin("t");
    check_eq(hr_view_lag(samples, "x", "time", "-6h", &e), 0);
    check_dim(0, SEL_SAMPLE, 1, 1, 1, false);
}

/* Where steps do not do: the first position has nothing an hour off 5 h before it. */
static void lags_within_a_tolerance_are_tables(void)
{
    int64_t n;
    begin("t");
    check_eq(hr_view_lag_near(samples, "x", "time", "5h", "1h", &e), 0);
    check_dim(0, SEL_SAMPLE, 0, 1, 1, false);
    check(dim(0)->lag && dim(0)->lag[0] < 0 && dim(0)->lag[1] == 0 && dim(0)->lag[7] == 6);
    check_eq(hr_samples_count(samples, &n, &e), 0);
    check_eq(n, 7);
    begin("t");
    check_eq(hr_view_gaps(samples, "x", "time", "3h", &e), 0);
    check_eq(hr_view_window(samples, "x", "time", 2, &e), 0);
    check_refused(hr_samples_count(samples, &n, &e), HR_EINVAL, "no sample is left");
    begin("t");
    check_eq(hr_view_gaps(samples, "x", "time", "drop", &e), 0);
    check_eq(hr_view_window(samples, "x", "time", 2, &e), 0);
    check_eq(hr_samples_count(samples, &n, &e), 0);
    check_eq(n, 7);
}

static void steps_that_make_no_sense_are_refused(void)
{
    begin("t");
    check_refused(hr_view_steps(samples, "x", "time", 1, 0, &e), HR_EINVAL,
                  "lies before the first");
    check_refused(hr_view_steps(samples, "x", "time", INT64_MIN, INT64_MAX, &e), HR_EINVAL,
                  "no axis is that long");
    check_refused(hr_view_window(samples, "x", "time", 0, &e), HR_EINVAL, "at least one step");
    check_refused(hr_view_window(samples, "x", "time", INT64_MAX, &e), HR_EINVAL,
                  "no axis is that long");
    check_refused(hr_view_lag(samples, "x", "time", "5h", &e), HR_EINVAL, "whole number");
    check_refused(hr_view_lag_near(samples, "x", "time", "5h", "5", &e), HR_EINVAL,
                  "write \"5h\" for hours");
    check_refused(hr_view_gaps(samples, "x", "lat", "drop", &e), HR_EINVAL,
                  "along the sample axis time");
    check_refused(hr_view_steps(samples, "x", "lat", 0, 1, &e), HR_EINVAL,
                  "along the sample axis time, not along lat");
    check_refused(hr_view_isel(samples, "x", "time", 0, &e), HR_EINVAL, "time is the sample axis");
    check(!dim(0)->set);
}

static void indices_count_from_either_end(void)
{
    static const int64_t list[] = {4, -5, 0}, outside[] = {0, 5};
    begin("t");
    check_eq(hr_view_isel(samples, "x", "lat", -1, &e), 0);
    check_dim(1, SEL_SLICE, 4, 1, 1, false);
    check_eq(hr_view_isel_list(samples, "x", "lon", list, 3, &e), 0);
    check_dim(2, SEL_LIST, 0, 3, 1, true);
    check(dim(2)->list[0] == 4 && dim(2)->list[1] == 1 && dim(2)->list[2] == 0);
    begin("t");
    check_refused(hr_view_isel(samples, "x", "lat", 5, &e), HR_EINVAL, "index 5 is outside");
    check_refused(hr_view_isel(samples, "x", "lat", -6, &e), HR_EINVAL, "index -6 is outside");
    check_refused(hr_view_isel(samples, "x", "lat", INT64_MIN, &e), HR_EINVAL, "is outside");
    check_refused(hr_view_isel_list(samples, "x", "lat", outside, 2, &e), HR_EINVAL,
                  "index 5 is outside dimension lat of length 5");
    check_refused(hr_view_isel_list(samples, "x", "lat", list, 0, &e), HR_EINVAL,
                  "selects nothing of dimension lat");
}

/* list(range(10))[start:stop:step] */
static void slices_are_those_of_python(void)
{
    enum { NONE = 99 };
    static const struct {
        int64_t start, stop, step, from, count;
    } rows[] = {
        {NONE, NONE, 1, 0, 10},
        {2, 5, 1, 2, 3},
        {-3, NONE, 1, 7, 3},
        {NONE, -3, 1, 0, 7},
        {0, 10, 3, 0, 4},
        {1, 10, 3, 1, 3},
        {5, 2, 1, 5, 0},
        {-100, 100, 4, 0, 3},
        {20, NONE, 1, 10, 0},
        {NONE, NONE, INT64_MAX, 0, 1},
        {INT64_MIN, INT64_MAX, 1, 0, 10},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t from, count;
        check_eq(core_slice_range(rows[i].start != NONE, rows[i].start, rows[i].stop != NONE,
                                  rows[i].stop, rows[i].step, 10, &from, &count, &e),
                 0);
        check(from == rows[i].from && count == rows[i].count);
    }
    int64_t from, count;
    check_refused(core_slice_range(0, 0, 0, 0, 0, 10, &from, &count, &e), HR_EINVAL, "step 0");
    check_refused(core_slice_range(0, 0, 0, 0, -1, 10, &from, &count, &e), HR_EINVAL, "positive");
    begin("t");
    check_eq(hr_view_isel_slice(samples, "x", "lon", 1, -4, 0, 0, 2, &e), 0);
    check_dim(2, SEL_SLICE, 2, 2, 2, true);
    check_refused(hr_view_isel_slice(samples, "x", "lat", 1, 3, 1, 3, 1, &e), HR_EINVAL,
                  "selects nothing of dimension lat");
}

static void labels_become_indices(void)
{
    begin("t");
    check_eq(hr_view_sel(samples, "x", "lat", "45", &e), 0);
    check_dim(1, SEL_SLICE, 1, 1, 1, false);
    begin("t");
    check_eq(hr_view_sel(samples, "x", "lat", "{\"start\": 45, \"stop\": -45, \"step\": 2}", &e),
             0);
    check_dim(1, SEL_SLICE, 1, 2, 2, true);
    begin("t");
    check_eq(hr_view_sel(samples, "x", "lat", "[-90, 90]", &e), 0);
    check_dim(1, SEL_LIST, 0, 2, 1, true);
    check(dim(1)->list[0] == 4 && dim(1)->list[1] == 0);
    begin("t");
    check_refused(hr_view_sel(samples, "x", "lat", "[", &e), HR_EFORMAT, "labels");
    check_refused(hr_view_sel(samples, "x", "lat", "[]", &e), HR_EINVAL, "selects nothing");
    check_refused(hr_view_sel(samples, "x", "lat", "{\"start\": -91}", &e), HR_EINVAL,
                  "selects nothing");
    check_refused(hr_view_sel(samples, "x", "lon", "1", &e), HR_ENOENT,
                  "dimension lon has no coordinate array");
    check(!dim(1)->set && !dim(2)->set);
}

static void names_that_are_wrong_are_told_with_what_there_is(void)
{
    const char *t = "t", *mask = "mask", *twice = "twice", *none = "tt";
    begin("t");
    check_refused(hr_view_isel(samples, "y", "lat", 0, &e), HR_ENOENT, "no view named y");
    check_refused(hr_view_dtype(samples, "y", HR_F32, &e), HR_ENOENT, "no view named y");
    check_refused(hr_view_isel(samples, "x", "level", 0, &e), HR_ENOENT,
                  "array t of view x has no dimension level (it has time, lat, lon)");
    check_refused(hr_samples_view(samples, "x", &t, 1, NULL, &e), HR_EINVAL, "two views named x");
    check_refused(hr_samples_view(samples, "", &t, 1, NULL, &e), HR_EINVAL, "needs a name");
    check_refused(hr_samples_view(samples, "y", &t, 0, NULL, &e), HR_EINVAL, "names no array");
    check_refused(hr_samples_view(samples, "y", &none, 1, NULL, &e), HR_ENOENT, "\"t\"");
    check_refused(hr_samples_view(samples, "y", &mask, 1, NULL, &e), HR_ENOENT,
                  "array mask has no dimension time (it has lat, lon)");
    check_eq(hr_view_isel(samples, "x", "lat", 0, &e), 0);
    check_refused(hr_view_isel(samples, "x", "lat", 1, &e), HR_EINVAL, "selects twice");
    check_eq(hr_samples_view(samples, "z", &twice, 1, NULL, &e), 0);
    check_refused(hr_view_isel(samples, "z", "lat", 1, &e), HR_EUNSUPPORTED, "lat twice");
}

static void arrays_that_are_stacked_are_alike(void)
{
    const char *const tu[] = {"t", "u"}, *const tv[] = {"t", "v"};
    begin(NULL);
    check_refused(hr_samples_view(samples, "x", tu, 2, NULL, &e), HR_EINVAL, "stack=");
    check_refused(hr_samples_view(samples, "x", tu, 2, "lat", &e), HR_EINVAL,
                  "is a dimension of its arrays already");
    check_refused(hr_samples_view(samples, "x", tv, 2, "channel", &e), HR_EINVAL,
                  "arrays t (time, lat, lon) and v (time, lon, lat) cannot be stacked");
    check_eq(hr_samples_view(samples, "x", tu, 2, "channel", &e), 0);
    check_eq(samples->core->views[0]->n_arrays, 2);
    check_str(samples->core->views[0]->stack, "channel");
}

static void a_view_that_was_refused_leaves_nothing_behind(void)
{
    const char *const tu[] = {"t", "u"}, *const shorter[] = {"short"}, *const t[] = {"t"};
    struct core *c = begin(NULL);
    int64_t n;
    check(hr_samples_view(samples, "x", tu, 2, "lat", &e) < 0);
    check(c->n_views == 0);
    check_eq(hr_samples_view(samples, "x", shorter, 1, NULL, &e), 0);
    check_eq(hr_samples_view(samples, "y", t, 1, NULL, &e), 0);
    check_refused(hr_samples_count(samples, &n, &e), HR_EINVAL,
                  "dimension time is 7 long in short but 8 in t");
}

static void samples_in_use_take_no_more_views(void)
{
    const char *t = "t";
    int64_t n = 0;
    begin("t");
    check_eq(hr_view_dtype(samples, "x", HR_F64, &e), 0);
    check_eq(hr_view_decode(samples, "x", 0, &e), 0);
    check(samples->core->views[0]->dtype == HR_F64 && !samples->core->views[0]->decode);
    check(hr_samples_count(samples, &n, &e) == 0 && n == 8);
    check_refused(hr_samples_view(samples, "y", &t, 1, NULL, &e), HR_ESTATE, "in use");
    check_refused(hr_view_isel(samples, "x", "lat", 0, &e), HR_ESTATE, "in use");
    check_refused(hr_view_dtype(samples, "x", HR_F32, &e), HR_ESTATE, "in use");
}

static void any_failed_allocation_is_an_error_and_no_leak(void)
{
    const char *const tu[] = {"t", "u"};
    static const int64_t list[] = {1, 2};
    int rc = -1;
    uint64_t before = 0;
    for (uint64_t n = 0; (rc < 0 || n < 2) && n < 1000; n++) {
        hr_samples_unref(samples);
        samples = NULL;
        if (n == 1) /* after a round in which nothing failed: what the archive keeps, it has */
            before = mem_live();
        mem_fail_at(n, false);
        rc = hr_samples_new(archive, "time", &samples, &e);
        rc = rc < 0 ? rc : hr_samples_view(samples, "x", tu, 2, "channel", &e);
        rc = rc < 0 ? rc : hr_view_lag(samples, "x", "time", "6h", &e);
        rc = rc < 0 ? rc : hr_view_sel(samples, "x", "lat", "[45, 0]", &e);
        rc = rc < 0 ? rc : hr_view_isel_list(samples, "x", "lon", list, 2, &e);
        mem_fail_at(0, false);
        hr_samples_unref(samples);
        samples = NULL;
        check(rc == 0 || rc == HR_ENOMEM);
        if (n)
            check_eq(mem_live(), before);
    }
    check_eq(rc, 0);
}

int main(void)
{
    put_all();
    archive = small_open();
    RUN(steps_count_from_the_sample);
    RUN(lags_within_a_tolerance_are_tables);
    RUN(steps_that_make_no_sense_are_refused);
    RUN(indices_count_from_either_end);
    RUN(slices_are_those_of_python);
    RUN(labels_become_indices);
    RUN(names_that_are_wrong_are_told_with_what_there_is);
    RUN(arrays_that_are_stacked_are_alike);
    RUN(a_view_that_was_refused_leaves_nothing_behind);
    RUN(samples_in_use_take_no_more_views);
    RUN(any_failed_allocation_is_an_error_and_no_leak);
    hr_samples_unref(samples);
    hr_archive_unref(archive);
    memory_drop("small");
    return t_done();
}
