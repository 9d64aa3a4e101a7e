/* Sample axes as the building calls make them, what freezing makes of them, and what is refused. */
#include <math.h>

#include "api/core.h"
#include "base/mem.h"
#include "small.h"

static struct hr_error e;
static struct hr_archive *archive;
static struct hr_samples *samples;

static void put_all(void)
{
    small_put(".zgroup", "{\"zarr_format\": 2}");
    small_array("t", "[8, 12, 10]", "<f4", "[\"time\", \"y\", \"x\"]", "", NULL, 0);
    small_array("half", "[8, 6, 5]", "<f4", "[\"time\", \"y\", \"x\"]", "", NULL, 0);
    small_array("mask", "[12, 10]", "<i2", "[\"y\", \"x\"]", "", NULL, 0);
    small_array("none", "[0, 10]", "<f4", "[\"n\", \"x\"]", "", NULL, 0);
    small_array("long", "[1000000, 1000000]", "<f4", "[\"a\", \"b\"]", "", NULL, 0);
    SMALL("time", "<i4", "time", ", \"units\": \"hours since 1990-01-01\"",
          (const int32_t[]){0, 6, 12, 18, 24, 30, 36, 42});
}

static void begin(void)
{
    e = (struct hr_error){0};
    hr_samples_unref(samples);
    samples = NULL;
    check_eq(hr_samples_new(archive, NULL, &samples, &e), 0);
}

static int view(const char *name, const char *array)
{
    return hr_samples_view(samples, name, &array, 1, NULL, &e);
}

static void check_refused(int rc, int code, const char *part)
{
    check_eq(rc, code);
    check_has(e.text, part);
    check(!strchr(e.text, '\n'));
}

static int count(void)
{
    int64_t n;
    int rc = hr_samples_count(samples, &n, &e);
    return rc < 0 ? rc : (int)n;
}

static const struct axis_spec *axis(int a)
{
    return &samples->core->axes[a];
}

/* Patches along y, 12 long, of mask. */
static int patches(int64_t size, int64_t stride, int edge)
{
    begin();
    int rc = hr_samples_patch(samples, "y", size, stride, edge, &e);
    rc = rc < 0 ? rc : view("m", "mask");
    return rc < 0 ? rc : count();
}

static void patches_cover_an_axis_or_say_what_is_left(void)
{
    check_eq(patches(4, 4, HR_EDGE_NONE), 3);
    check_eq(patches(4, 2, HR_EDGE_NONE), 5);
    check_refused(patches(5, 5, HR_EDGE_NONE), HR_EINVAL, "2 are left over");
    check_refused(patches(13, 1, HR_EDGE_NONE), HR_EINVAL, "12 are left over");
    check_eq(patches(5, 5, HR_EDGE_VALID), 2);
    check_eq(patches(5, 5, HR_EDGE_PAD), 3);
    check_eq(patches(5, 5, HR_EDGE_REFLECT), 3);
    check_eq(patches(5, 5, HR_EDGE_CLIP), 3);
    check(axis_start(axis(0), 1) == 5 && axis_start(axis(0), 2) == 7);
    check_eq(patches(2, 6, HR_EDGE_PAD), 2); /* none begins outside */
    check_eq(patches(2, 50, HR_EDGE_CLIP), 1);
    check_eq(patches(20, 20, HR_EDGE_PAD), 1);
    check_eq(patches(23, 1, HR_EDGE_REFLECT), 1);
    check_refused(patches(24, 1, HR_EDGE_REFLECT), HR_EINVAL, "mirrored it gives at most 23");
    check_refused(patches(13, 1, HR_EDGE_CLIP), HR_EINVAL, "only 12 long");
    check_refused(patches(13, 1, HR_EDGE_VALID), HR_EINVAL, "only 12 long");
}

static void sizes_that_make_no_sense_are_refused(void)
{
    begin();
    check_refused(hr_samples_patch(samples, "y", 0, 1, 0, &e), HR_EINVAL, "patches of 0");
    check_refused(hr_samples_patch(samples, "y", 1, -1, 0, &e), HR_EINVAL, "a stride of -1");
    check_refused(hr_samples_patch(samples, "y", INT64_MAX, 1, 0, &e), HR_EINVAL, "from 1 to 2^40");
    check_refused(hr_samples_patch(samples, "y", 1, 1, 5, &e), HR_EINVAL, "number 5");
    check_refused(hr_samples_patch(samples, "y", 1, 1, -1, &e), HR_EINVAL, "number -1");
    check_refused(hr_samples_crop(samples, "y", 0, 1, &e), HR_EINVAL, "crops of 0");
    check_refused(hr_samples_crop(samples, "y", 1, 0, &e), HR_EINVAL, "crops in 0 parts");
    check_refused(hr_samples_draws(samples, "r", 0, &e), HR_EINVAL, "draws of 0");
    check_refused(hr_samples_along(samples, "", &e), HR_EINVAL, "no sample axis given");
    check_refused(hr_samples_along(samples, NULL, &e), HR_EINVAL, "no sample axis given");
    check_refused(hr_samples_pad(samples, "y", 1, &e), HR_ENOENT, "y is no sample axis");
    check_eq(samples->core->n_axes, 0);
    check_refused(count(), HR_EINVAL, "no sample axis given");
}

static void axes_come_before_views_and_are_eight_at_most(void)
{
    begin();
    for (int a = 0; a < 7; a++) {
        char name[] = {(char)('a' + a), 0};
        check_eq(hr_samples_draws(samples, name, 2, &e), 0);
    }
    check_refused(hr_samples_along(samples, "g", &e), HR_EINVAL, "g is a sample axis twice");
    check_eq(hr_samples_patch(samples, "y", 4, 4, 0, &e), 0);
    check_refused(hr_samples_along(samples, "x", &e), HR_EUNSUPPORTED, "8 already");
    check_refused(count(), HR_EINVAL, "no view given");
    check_eq(view("m", "mask"), 0);
    check_eq(count(), 3 << 7);
    begin();
    check_eq(hr_samples_along(samples, "y", &e), 0);
    check_eq(view("m", "mask"), 0);
    check_refused(hr_samples_along(samples, "x", &e), HR_ESTATE, "before the first view");
}

static void ids_are_row_major_over_axes_in_their_order(void)
{
    begin();
    check_eq(hr_samples_patch(samples, "x", 5, 5, 0, &e), 0);
    check_eq(hr_samples_along(samples, "time", &e), 0);
    check_eq(hr_samples_draws(samples, "again", 3, &e), 0);
    check_eq(view("t", "t"), 0);
    check_eq(hr_view_steps(samples, "t", "time", -1, 0, &e), 0);
    check_eq(count(), 2 * 7 * 3);
    int64_t ids[2];
    check_eq(hr_samples_ids(samples, 0, 2, ids, &e), 0);
    check(ids[0] == 3 && ids[1] == 4); /* time 0 has no step before it */
    check_eq(hr_samples_ids(samples, 21, 1, ids, &e), 0);
    check_eq(ids[0], 24 + 3);
    check_eq(samples->core->ids, 48);
}

static void crops_have_places_that_all_views_share(void)
{
    begin();
    check_eq(hr_samples_crop(samples, "y", 4, 2, &e), 0);
    check_eq(view("m", "mask"), 0);
    check_eq(view("h", "half"), 0);
    check_eq(hr_view_scale(samples, "h", "y", 2, 1, &e), 0);
    check_eq(count(), 2);
    check(axis(0)->places == 5 && axis(0)->align == 2);
    begin();
    check_eq(hr_samples_crop(samples, "y", 10, 4, &e), 0);
    check_eq(view("m", "mask"), 0);
    check_refused(count(), HR_EINVAL, "there are only 3 places; take fewer parts");
    begin();
    check_eq(hr_samples_crop(samples, "y", 13, 1, &e), 0);
    check_eq(view("m", "mask"), 0);
    check_refused(count(), HR_EINVAL, "crops of 13 from y");
}

static int scaled(int64_t size, int64_t stride, int edge, int64_t scale, int64_t of)
{
    begin();
    int rc = hr_samples_patch(samples, "y", size, stride, edge, &e);
    rc = rc < 0 ? rc : view("m", "mask");
    rc = rc < 0 ? rc : view("h", "half");
    rc = rc < 0 || !scale ? rc : hr_view_scale(samples, "h", "y", scale, of, &e);
    return rc < 0 ? rc : count();
}

static void coarser_arrays_show_the_same_region_or_are_refused(void)
{
    check_eq(scaled(4, 4, 0, 2, 1), 3);
    check_eq(scaled(4, 4, 0, 4, 2), 3);
    check_refused(scaled(4, 4, 0, 0, 0), HR_EINVAL, "the scale= at which");
    check_refused(scaled(3, 2, HR_EDGE_VALID, 2, 1), HR_EINVAL, "size 3 is no multiple");
    check_refused(scaled(4, 3, HR_EDGE_VALID, 2, 1), HR_EINVAL, "stride 3 is no multiple");
    check_refused(scaled(4, 4, 0, 3, 1), HR_EINVAL, "at scale 3/1 of 12 in mask, 4 are expected");
    check_refused(scaled(4, 4, 0, -2, 1), HR_EINVAL, "two numbers from 1");
    check_refused(scaled(4, 4, 0, 2, INT64_MAX), HR_EINVAL, "two numbers from 1");
    begin();
    check_eq(hr_samples_along(samples, "y", &e), 0);
    check_eq(view("h", "half"), 0);
    check_refused(hr_view_scale(samples, "h", "time", 2, 1, &e), HR_EINVAL, "not along time");
    check_eq(hr_view_scale(samples, "h", "y", 2, 1, &e), 0);
    check_refused(count(), HR_EINVAL, "nobody knows how long");
}

static void lengths_and_counts_that_cannot_be_are_refused(void)
{
    begin();
    check_eq(hr_samples_patch(samples, "n", 1, 1, HR_EDGE_PAD, &e), 0);
    check_eq(view("o", "none"), 0);
    check_refused(count(), HR_EINVAL, "dimension n has no elements");
    begin();
    check_eq(hr_samples_along(samples, "a", &e), 0);
    check_eq(hr_samples_along(samples, "b", &e), 0);
    check_eq(hr_samples_draws(samples, "r", 1000, &e), 0);
    check_eq(view("l", "long"), 0);
    check_refused(count(), HR_EUNSUPPORTED, "more than 2^48 samples");
    begin();
    check_eq(hr_samples_along(samples, "time", &e), 0);
    check_refused(view("m", "mask"), HR_ENOENT, "has no dimension time");
}

static void one_value_lies_outside(void)
{
    for (int same = 0; same < 3; same++) {
        begin();
        check_eq(hr_samples_patch(samples, "y", 5, 5, HR_EDGE_PAD, &e), 0);
        check_eq(hr_samples_patch(samples, "x", 4, 4, HR_EDGE_PAD, &e), 0);
        check_eq(hr_samples_pad(samples, "y", same == 2 ? NAN : 3, &e), 0);
        check_eq(hr_samples_pad(samples, "x", same == 2 ? NAN : same == 1 ? 3 : 4, &e), 0);
        check_eq(view("m", "mask"), 0);
        if (same)
            check_eq(count(), 9);
        else
            check_refused(count(), HR_EINVAL, "outside y is 3, but outside x is 4");
    }
    begin();
    check_eq(hr_samples_patch(samples, "y", 5, 5, HR_EDGE_CLIP, &e), 0);
    check_refused(hr_samples_pad(samples, "y", 3, &e), HR_EINVAL, "belongs to edge=\"pad\"");
}

static int everything(void)
{
    const char *const m[] = {"mask"};
    struct hr_samples *out[2] = {NULL, NULL}, *kept = NULL;
    static const uint8_t mask[12] = {1, 0, 1, 1};
    struct hr_shared shared;
    int rc = hr_samples_new(archive, NULL, &samples, &e);
    rc = rc < 0 ? rc : hr_samples_along(samples, "time", &e);
    rc = rc < 0 ? rc : hr_samples_patch(samples, "y", 5, 5, HR_EDGE_CLIP, &e);
    rc = rc < 0 ? rc : hr_samples_crop(samples, "x", 4, 2, &e);
    rc = rc < 0 ? rc : view("t", "t");
    rc = rc < 0 ? rc : hr_view_steps(samples, "t", "y", 0, 2, &e);
    rc = rc < 0 ? rc : hr_samples_constant(samples, "c", m, 1, NULL, &e);
    rc = rc < 0 ? rc : hr_samples_axis_where(samples, "y", mask, 3, &kept, &e);
    rc = rc < 0 ? rc : hr_samples_axis_split(kept, "time", (double[]){.5, .5}, 2, -1, out, &e);
    rc = rc < 0 ? rc : hr_samples_shared(out[0], out[1], &shared, &e);
    hr_samples_unref(out[0]);
    hr_samples_unref(out[1]);
    hr_samples_unref(kept);
    return rc;
}

static void any_failed_allocation_is_an_error_and_no_leak(void)
{
    int rc = -1;
    uint64_t before = 0;
    for (uint64_t n = 0; (rc < 0 || n < 2) && n < 1000; n++) {
        hr_samples_unref(samples);
        samples = NULL;
        if (n == 1) /* after a round in which nothing failed: what the archive keeps, it has */
            before = mem_live();
        mem_fail_at(n, false);
        rc = everything();
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
    RUN(patches_cover_an_axis_or_say_what_is_left);
    RUN(sizes_that_make_no_sense_are_refused);
    RUN(axes_come_before_views_and_are_eight_at_most);
    RUN(ids_are_row_major_over_axes_in_their_order);
    RUN(crops_have_places_that_all_views_share);
    RUN(coarser_arrays_show_the_same_region_or_are_refused);
    RUN(lengths_and_counts_that_cannot_be_are_refused);
    RUN(one_value_lies_outside);
    RUN(any_failed_allocation_is_an_error_and_no_leak);
    hr_samples_unref(samples);
    hr_archive_unref(archive);
    memory_drop("small");
    return t_done();
}
