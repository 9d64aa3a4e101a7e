/* Boxes of arrays through the public calls: steps, edges, absent chunks, fields, strings, packing, slabs. Every box is held
 * against the same box taken from a plain buffer. */
#include "api/archive.h"
#include "base/mem.h"
#include "store/memory.h"
#include "t.h"
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

static struct hr_error e;

static void put(const char *key, const void *data, size_t n)
{
    if (memory_put("region", key, data, n, &e) < 0)
        exit(1);
}
static void put_text(const char *key, const char *text)
{
    put(key, text, strlen(text));
}
static struct hr_archive *open_archive(void)
{
    struct hr_archive *a = NULL;
    if (hr_open("memory://region", NULL, &a, &e) < 0)
        printf("# %s\n", e.text);
    return a;
}

#define SHAPE0 7
#define SHAPE1 11
static int16_t plain[SHAPE0][SHAPE1];

/* 7 × 11 in chunks of 3 × 4, value 100·i + j; chunk (1, 1) is absent and reads as -1. */
static void put_matrix(void)
{
    put_text(".zgroup", "{\"zarr_format\": 2}");
    put_text("m/.zarray", "{\"zarr_format\": 2, \"shape\": [7, 11], \"chunks\": [3, 4], \"dtype\": "
                          "\"<i2\", \"order\": \"C\", "
                          "\"fill_value\": -1, \"filters\": null, \"compressor\": null}");
    for (int ci = 0; ci < 3; ci++)
        for (int cj = 0; cj < 3; cj++) {
            int16_t chunk[3][4];
            char key[32];
            for (int i = 0; i < 3; i++)
                for (int j = 0; j < 4; j++) {
                    int row = ci * 3 + i, column = cj * 4 + j;
                    chunk[i][j] = (int16_t)(100 * row + column);
                    if (row < SHAPE0 && column < SHAPE1)
                        plain[row][column] = ci == 1 && cj == 1 ? -1 : chunk[i][j];
                }
            snprintf(key, sizeof key, "m/%d.%d", ci, cj);
            if (ci != 1 || cj != 1)
                put(key, chunk, sizeof chunk);
        }
}

static bool same_box(struct hr_archive *a, const int64_t *start, const int64_t *count,
                     const int64_t *step)
{
    void *data;
    size_t n;
    if (hr_archive_read(a, "m", 2, start, count, step, HR_NONE, 0, &data, &n, &e) < 0) {
        printf("# %s\n", e.text);
        return false;
    }
    bool same = n == (size_t)(count[0] * count[1]) * 2;
    const int16_t *got = data;
    for (int64_t i = 0; same && i < count[0]; i++)
        for (int64_t j = 0; j < count[1]; j++)
            same &= got[i * count[1] + j] == plain[start[0] + i * step[0]][start[1] + j * step[1]];
    hr_free(data);
    return same;
}

static void every_box_equals_the_plain_array(void)
{
    put_matrix();
    struct hr_archive *a = open_archive();
    int boxes = 0, wrong = 0;
    if (!check(a != NULL))
        return;
    for (int64_t s0 = 0; s0 < 7; s0 += 2)
        for (int64_t s1 = 0; s1 < 11; s1 += 3)
            for (int64_t t0 = -3; t0 <= 3; t0++)
                for (int64_t t1 = -5; t1 <= 5; t1 += 2)
                    for (int64_t n = 0; n < 5; n++) {
                        int64_t start[] = {s0, s1}, count[] = {n, 4 - n},
                                step[] = {t0 ? t0 : 5, t1};
                        int64_t last0 = s0 + (n - 1) * step[0], last1 = s1 + (3 - n) * step[1];
                        if ((n && (last0 < 0 || last0 >= 7)) ||
                            (n < 4 && (last1 < 0 || last1 >= 11)))
                            continue;
                        boxes++;
                        wrong += !same_box(a, start, count, step);
                    }
    printf("# %d boxes\n", boxes);
    check(boxes > 400);
    check_eq(wrong, 0);
    hr_archive_unref(a);
}

static void boxes_that_leave_the_array_are_refused(void)
{
    struct hr_archive *a = open_archive();
    void *data;
    size_t n;
    const int64_t start[] = {0, 0}, far[] = {0, 11}, count[] = {2, 2}, step[] = {1, 1},
                  long_step[] = {7, 1}, none[] = {0, 1};
    check_eq(hr_archive_read(a, "m", 2, far, count, step, HR_NONE, 0, &data, &n, &e), HR_EINVAL);
    check_has(e.text, "leave its length 11");
    check_eq(hr_archive_read(a, "m", 2, start, count, long_step, HR_NONE, 0, &data, &n, &e),
             HR_EINVAL);
    check_eq(hr_archive_read(a, "m", 2, start, count, none, HR_NONE, 0, &data, &n, &e), HR_EINVAL);
    check_eq(hr_archive_read(a, "m", 1, start, count, step, HR_NONE, 0, &data, &n, &e), HR_EINVAL);
    check_eq(hr_archive_read(a, "nope", 0, NULL, NULL, NULL, HR_NONE, 0, &data, &n, &e), HR_ENOENT);
    hr_archive_unref(a);
}

/* What hr_archive_cat writes, in a memory file. */
static char *cat(struct hr_archive *a, const char *path, enum hr_dtype dtype, int decode, size_t *n)
{
    int fd = memfd_create("cat", 0);
    char *data = NULL;
    if (hr_archive_cat(a, path, dtype, decode, fd, &e) < 0) {
        printf("# %s\n", e.text);
    } else {
        *n = (size_t)lseek(fd, 0, SEEK_END);
        data = malloc(*n + 1);
        if (pread(fd, data, *n, 0) != (ssize_t)*n)
            exit(1);
    }
    close(fd);
    return data;
}

static void cat_writes_the_whole_array(void)
{
    struct hr_archive *a = open_archive();
    size_t n = 0;
    char *data = cat(a, "m", HR_NONE, 0, &n);
    check(data && n == sizeof plain && !memcmp(data, plain, n));
    free(data);
    hr_archive_unref(a);
}

static void cat_of_chunk_rows_larger_than_a_slab_is_the_same(void)
{
    /* 3 × 2 × 40,000,000 bytes in one chunk row: slabs are parts of it. All but one chunk are absent. */
    put_text("wide/.zarray",
             "{\"zarr_format\": 2, \"shape\": [3, 2, 40000000], \"chunks\": [3, 1, 1000], "
             "\"dtype\": \"|u1\", "
             "\"order\": \"C\", \"fill_value\": 9, \"filters\": null, \"compressor\": null}");
    char chunk[3][1000];
    for (int i = 0; i < 3; i++)
        memset(chunk[i], 'a' + i, 1000);
    put("wide/0.1.39999", chunk, sizeof chunk);
    struct hr_archive *a = open_archive();
    size_t n = 0;
    char *data = cat(a, "wide", HR_NONE, 0, &n);
    if (check(data && n == 240000000)) {
        check_eq(data[0], 9);
        check_eq(data[79999999], 'a');
        check_eq(data[79998999], 9);
        check_eq(data[159999000], 'b');
        check_eq(data[239999999], 'c');
        check_eq(data[199999999], 9);
    }
    free(data);
    hr_archive_unref(a);
}

static void fields_and_their_fill_are_strided(void)
{
    put_text(
        "t/.zarray",
        "{\"zarr_format\": 2, \"shape\": [4], \"chunks\": [2], \"dtype\": [[\"a\", \"|u1\"], "
        "[\"b\", \">i4\"]], "
        "\"order\": \"C\", \"fill_value\": \"BwAAAAg=\", \"filters\": null, \"compressor\": null}");
    put("t/0", "\x01\x00\x00\x00\x02\x03\x00\x00\x00\x04", 10);
    struct hr_archive *a = open_archive();
    void *data;
    size_t n;
    const int32_t b[] = {2, 4, 8, 8};
    if (check_eq(hr_archive_read(a, "t.b", 0, NULL, NULL, NULL, HR_NONE, 1, &data, &n, &e), 0)) {
        check(n == sizeof b && !memcmp(data, b, n));
        hr_free(data);
    } else {
        printf("# %s\n", e.text);
    }
    hr_archive_unref(a);
}

static void strings_are_joined_by_nul(void)
{
    put_text(
        "s/.zarray",
        "{\"zarr_format\": 2, \"shape\": [2, 3], \"chunks\": [2, 2], \"dtype\": \"|O\", \"order\": "
        "\"C\", "
        "\"fill_value\": \"?\", \"filters\": [{\"id\": \"vlen-utf8\"}], \"compressor\": null}");
    put("s/0.0", "\4\0\0\0\1\0\0\0a\2\0\0\0bb\0\0\0\0\3\0\0\0ddd", 26);
    struct hr_archive *a = open_archive();
    void *data;
    size_t n = 0;
    char *all = cat(a, "s", HR_NONE, 0, &n);
    check(all && n == 13 && !memcmp(all, "a\0bb\0?\0\0ddd\0?", 13));
    free(all);
    const int64_t start[] = {1, 1}, count[] = {2, 2}, step[] = {-1, -1};
    if (check_eq(hr_archive_read(a, "s", 2, start, count, step, HR_NONE, 0, &data, &n, &e), 0)) {
        check(n == 9 && !memcmp(data, "ddd\0\0bb\0a", 9));
        hr_free(data);
    }
    hr_archive_unref(a);
}

static void packing_is_decoded_on_request(void)
{
    put_text("m/.zattrs", "{\"_ARRAY_DIMENSIONS\": [\"y\", \"x\"], \"scale_factor\": 0.5}");
    struct hr_archive *a = open_archive();
    size_t n = 0;
    double *f8 = (double *)cat(a, "m", HR_NONE, 1, &n);
    if (check(f8 && n == sizeof plain * 4)) {
        check(f8[1] == 0.5 && f8[SHAPE1] == 50);
        check(isnan(f8[3 * SHAPE1 + 4])); /* absent: the fill value is the mask value */
    }
    free(f8);
    float *f4 = (float *)cat(a, "m", HR_F32, 1, &n);
    check(f4 && n == sizeof plain * 2 && f4[1] == 0.5f);
    free(f4);
    f4 = (float *)cat(a, "m", HR_F32, 0, &n);
    check(f4 && f4[1] == 1 && f4[3 * SHAPE1 + 4] == -1);
    free(f4);
    hr_archive_unref(a);
}

static void empty_and_scalar_arrays(void)
{
    put_text("empty/.zarray", "{\"zarr_format\": 2, \"shape\": [4611686018427387904, 0, "
                              "4611686018427387904], \"chunks\": [1, 1, 1], "
                              "\"dtype\": \"<f8\", \"order\": \"C\", \"fill_value\": 0, "
                              "\"filters\": null, \"compressor\": null}");
    put_text(
        "scalar/.zarray",
        "{\"zarr_format\": 2, \"shape\": [], \"chunks\": [], \"dtype\": \"|u1\", \"order\": \"C\", "
        "\"fill_value\": 0, \"filters\": null, \"compressor\": null}");
    put("scalar/0", "x", 1);
    struct hr_archive *a = open_archive();
    void *data;
    size_t n = 5;
    if (check_eq(hr_archive_read(a, "empty", 0, NULL, NULL, NULL, HR_NONE, 1, &data, &n, &e), 0)) {
        check_eq(n, 0);
        hr_free(data);
    }
    if (check_eq(hr_archive_read(a, "scalar", 0, NULL, NULL, NULL, HR_NONE, 1, &data, &n, &e), 0)) {
        check(n == 1 && *(char *)data == 'x');
        hr_free(data);
    }
    hr_archive_unref(a);
}

static void a_chunk_of_wrong_size_names_key_and_sizes(void)
{
    put_text("bad/.zarray", "{\"zarr_format\": 2, \"shape\": [4], \"chunks\": [2], \"dtype\": "
                            "\"<i2\", \"order\": \"C\", "
                            "\"fill_value\": 0, \"filters\": null, \"compressor\": null}");
    put("bad/1", "abc", 3);
    struct hr_archive *a = open_archive();
    void *data;
    size_t n;
    check_eq(hr_archive_read(a, "bad", 0, NULL, NULL, NULL, HR_NONE, 0, &data, &n, &e), HR_EDATA);
    check_has(e.text, "chunk bad/1 of memory://region");
    hr_archive_unref(a);
}

int main(void)
{
    RUN(every_box_equals_the_plain_array);
    RUN(boxes_that_leave_the_array_are_refused);
    RUN(cat_writes_the_whole_array);
    RUN(cat_of_chunk_rows_larger_than_a_slab_is_the_same);
    RUN(fields_and_their_fill_are_strided);
    RUN(strings_are_joined_by_nul);
    RUN(packing_is_decoded_on_request);
    RUN(empty_and_scalar_arrays);
    RUN(a_chunk_of_wrong_size_names_key_and_sizes);
    memory_drop("region");
    check_eq(mem_live(), 0);
    return t_done();
}
