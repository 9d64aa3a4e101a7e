/* Where chunks lie: keys in every encoding, grids, shards within shards. */
#include <time.h>
#include "format/shard.h"
#include "fake.h"

static struct hr_error e;

/* A root array, readable or not; the reader stays in *keep. */
static const struct array *open_array(const char *key, const char *text, struct reader **keep)
{
    const struct fake_object object = {key, text};
    struct fake f = {.objects = &object, .n = 1};
    *keep = fake_open(&f, &e);
    return *keep ? reader_find(*keep, "") : NULL;
}

static void check_key(const char *document, const char *text, uint64_t chunk, const char *want)
{
    struct reader *r;
    struct where w;
    const struct array *x = open_array(document, text, &r);
    if (check(x != NULL) && check(!x->problem)) {
        check_eq(array_locate(x, NULL, chunk, &w, &e), 0);
        check_eq(w.kind, WHERE_OBJECT);
        check_eq(w.shard, chunk);
        check_str(w.key, want);
    } else {
        printf("# %s\n", x && x->problem ? x->problem : e.text);
    }
    reader_free(r);
}

#define V3_WITH_KEYS(shape, chunks, keys)                                                          \
    V3_ARRAY_WITH(shape, "\"uint8\"", chunks, keys, "0", V3_BYTES, "")

static void keys_of_every_encoding(void)
{
    check_key(".zarray", V2_ARRAY("[40, 60]", "[2, 3]"), 399, "19.19");
    check_key(
        ".zarray",
        V2_ARRAY_WITH("[40, 60]", "[2, 3]", "\"<i4\"", "0", ", \"dimension_separator\": \"/\""),
        399, "19/19");
    check_key("zarr.json", V3_WITH_KEYS("[40, 60]", "[2, 3]", "{\"name\": \"default\"}"), 21,
              "c/1/1");
    check_key("zarr.json", V3_WITH_KEYS("[40, 60]", "[2, 3]", "\"default\""), 21, "c/1/1");
    check_key("zarr.json",
              V3_WITH_KEYS("[40, 60]", "[2, 3]",
                           "{\"name\": \"default\", \"configuration\": {\"separator\": \".\"}}"),
              21, "c.1.1");
    check_key("zarr.json", V3_WITH_KEYS("[40, 60]", "[2, 3]", "{\"name\": \"v2\"}"), 21, "1.1");
    check_key("zarr.json",
              V3_WITH_KEYS("[40, 60]", "[2, 3]",
                           "{\"name\": \"v2\", \"configuration\": {\"separator\": \"/\"}}"),
              21, "1/1");
}

static void scalars_have_one_key(void)
{
    check_key(".zarray", V2_ARRAY("[]", "[]"), 0, "0");
    check_key("zarr.json", V3_WITH_KEYS("[]", "[]", "{\"name\": \"default\"}"), 0, "c");
    check_key("zarr.json",
              V3_WITH_KEYS("[]", "[]",
                           "{\"name\": \"default\", \"configuration\": {\"separator\": \".\"}}"),
              0, "c");
    check_key("zarr.json", V3_WITH_KEYS("[]", "[]", "{\"name\": \"v2\"}"), 0, "0");
}

static void keys_stand_below_the_path(void)
{
    struct fake f = FAKE({"zarr.json", V3_GROUP}, {"a b/ü/zarr.json", V3_ARRAY("[4]", "[2]")});
    struct reader *r = fake_open(&f, &e);
    struct where w;
    if (!check(r != NULL))
        return;
    check_eq(fake_want(&f, r, "a b/ü", &e), READER_READY);
    check_eq(array_locate(reader_find(r, "a b/ü"), NULL, 1, &w, &e), 0);
    check_str(w.key, "a b/ü/c/1");
    check_eq(array_locate(reader_find(r, "a b/ü"), NULL, 2, &w, &e), HR_EINTERNAL);
    reader_free(r);
}

static void check_problem(const char *document, const char *text, int code, const char *part)
{
    struct reader *r;
    const struct array *x = open_array(document, text, &r);
    if (check(x && x->problem)) {
        check_eq(x->problem_code, code);
        check_has(x->problem, part);
    }
    reader_free(r);
}

static void sizes_that_overflow_are_refused(void)
{
    check_problem("zarr.json", V3_ARRAY("[4294967296, 4294967296]", "[1, 1]"), HR_EUNSUPPORTED,
                  "overflows");
    check_problem(".zarray", V2_ARRAY("[9223372036854775807]", "[1]"), HR_EUNSUPPORTED,
                  "overflows");
    check_problem("zarr.json", V3_ARRAY("[9223372036854775808]", "[1]"), HR_EFORMAT, "shape");
    check_problem("zarr.json", V3_ARRAY("[4.0]", "[1]"), HR_EFORMAT, "shape");
    check_problem("zarr.json", V3_ARRAY("[-4]", "[1]"), HR_EFORMAT, "shape");
    check_problem("zarr.json", V3_ARRAY("[4]", "[0]"), HR_EFORMAT, "chunk");
    check_problem("zarr.json", V3_ARRAY("[4]", "[2, 2]"), HR_EFORMAT, "chunk_shape");
    check_problem(
        "zarr.json",
        V3_ARRAY("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[1]"),
        HR_EUNSUPPORTED, "33 dimensions");
}

static void empty_dimensions_have_no_chunks(void)
{
    struct reader *r;
    const struct array *x = open_array(".zarray", V2_ARRAY("[3, 0, 4]", "[2, 0, 4]"), &r);
    if (check(x && !x->problem)) {
        check_eq(x->n_chunks, 0);
        check_eq(x->grid[1], 0);
        check_eq(x->chunk[1], 1);
    }
    reader_free(r);
}

#define RECTILINEAR(shape, sizes)                                                                  \
    "{\"zarr_format\": 3, \"node_type\": \"array\", \"shape\": " shape                             \
    ", \"data_type\": \"uint8\", \"chunk_grid\": "                                                 \
    "{\"name\": \"rectilinear\", \"configuration\": {\"kind\": \"inline\", "                       \
    "\"chunk_shapes\": " sizes                                                                     \
    "}}, \"chunk_key_encoding\": \"default\", \"fill_value\": 0, \"codecs\": [\"bytes\"]}"

static void rectilinear_grids_have_boxes_of_their_own(void)
{
    struct reader *r;
    uint64_t origin[2], shape[2];
    const struct array *x =
        open_array("zarr.json", RECTILINEAR("[10, 9]", "[[3, 4, 3], [[2, 2], 5]]"), &r);
    if (!check(x && !x->problem)) {
        reader_free(r);
        return;
    }
    check_eq(x->n_chunks, 9);
    check_eq(x->chunk[0], 4);
    check_eq(x->chunk[1], 5);
    array_chunk_box(x, 5, origin, shape);
    check_eq(origin[0], 3);
    check_eq(origin[1], 4);
    check_eq(shape[0], 4);
    check_eq(shape[1], 5);
    check_eq(array_chunk_index(x, 0, 6), 1);
    check_eq(array_chunk_index(x, 0, 7), 2);
    check_eq(array_chunk_index(x, 1, 0), 0);
    check_eq(array_chunk_index(x, 1, 8), 2);
    struct arena a;
    arena_init(&a);
    check(array_chunk_chain(x, 5, &a, &e) == x->chain);
    const struct codec_chain *small = array_chunk_chain(x, 0, &a, &e);
    check(small && codec_chain_decoded_size(small) == 6);
    arena_dispose(&a);
    reader_free(r);
}

static void rectilinear_grids_that_are_regular_become_so(void)
{
    struct reader *r;
    const struct array *x =
        open_array("zarr.json", RECTILINEAR("[10, 9]", "[4, [[3, 100000000000]]]"), &r);
    if (check(x && !x->problem)) {
        check(!x->edges);
        check_eq(x->n_chunks, 9);
    }
    reader_free(r);
    x = open_array("zarr.json", RECTILINEAR("[10]", "[[[5, 1], [0, 3]]]"), &r);
    check(x && x->problem);
    reader_free(r);
    x = open_array("zarr.json", RECTILINEAR("[10]", "[[5, 4]]"), &r);
    if (check(x && x->problem))
        check_has(x->problem, "add up to 9");
    reader_free(r);
    x = open_array("zarr.json", RECTILINEAR("[1000000000000]", "[[5, [1, 1000000000000]]]"), &r);
    check(x && x->problem && x->problem_code == HR_EUNSUPPORTED);
    reader_free(r);
}

static void an_unsharded_look_up_is_cheap(void)
{
    struct reader *r;
    struct where w;
    const struct array *x =
        open_array("zarr.json", V3_ARRAY("[100000, 721, 1440]", "[1, 103, 144]"), &r);
    if (!check(x && !x->problem))
        return;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (uint64_t i = 0; i < 1000000; i++)
        array_locate(x, NULL, i * 6, &w, &e);
    clock_gettime(CLOCK_MONOTONIC, &b);
    double ns = ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / 1e6;
    printf("# %.0f ns a look-up, last key %s\n", ns, w.key);
    check_str(w.key, "c/85714/1/4");
    reader_free(r);
}

int main(void)
{
    RUN(keys_of_every_encoding);
    RUN(scalars_have_one_key);
    RUN(keys_stand_below_the_path);
    RUN(sizes_that_overflow_are_refused);
    RUN(empty_dimensions_have_no_chunks);
    RUN(rectilinear_grids_have_boxes_of_their_own);
    RUN(rectilinear_grids_that_are_regular_become_so);
    RUN(an_unsharded_look_up_is_cheap);
    return t_done();
}
