/* Shard indexes: asked for once, checked entry by entry, kept within a bound. */
#include "format/shard.h"
#include "fake.h"

#define NONE UINT64_MAX

static struct hr_error e;
static struct reader *reader;
static struct codec_context *context;

#define SHARDING(inner, codecs, where)                                                             \
    "[{\"name\": \"sharding_indexed\", \"configuration\": {\"chunk_shape\": " inner                \
    ", \"codecs\": " codecs ", \"index_codecs\": [{\"name\": \"bytes\", \"configuration\": "       \
    "{\"endian\": \"little\"}}], \"index_location\": \"" where "\"}}]"
#define SHARDED(shape, shard, codecs)                                                              \
    V3_ARRAY_WITH(shape, "\"uint8\"", shard, "\"default\"", "7", codecs, "")

static const struct array *open_array(const char *text)
{
    const struct fake_object object = {"zarr.json", text};
    struct fake f = {.objects = &object, .n = 1};
    reader = fake_open(&f, &e);
    const struct array *x = reader ? reader_find(reader, "") : NULL;
    if (!context)
        context = codec_context_new();
    if (!check(x && !x->problem)) {
        printf("# %s\n", x ? x->problem : e.text);
        exit(1);
    }
    return x;
}

static int feed(struct shard_cache *c, const struct array *x, const struct where *w,
                const uint64_t *entries, size_t n, uint64_t object_size)
{
    struct answer answer = {ANSWER_BYTES, entries, n * 16};
    return shard_cache_feed(c, x, w, &answer, object_size, context, &e);
}

/* A 1-D array of 4 chunks a shard, 2 chunks an entry pair: opened, its first index fed. */
static int locate_with(const uint64_t *entries, uint64_t object_size, uint64_t chunk,
                       struct where *w)
{
    const struct array *x =
        open_array(SHARDED("[16]", "[8]", SHARDING("[2]", "[\"bytes\"]", "end")));
    struct shard_cache *c = shard_cache_new(1 << 20);
    check_eq(array_locate(x, c, chunk, w, &e), 0);
    check_eq(w->kind, WHERE_INDEX);
    check_eq(w->need_offset, -64);
    check_eq(w->need_length, 64);
    int rc = feed(c, x, w, entries, 4, object_size);
    if (rc >= 0)
        rc = array_locate(x, c, chunk, w, &e);
    shard_cache_free(c);
    reader_free(reader);
    return rc;
}

static void an_index_answers_for_all_chunks_of_its_shard(void)
{
    const struct array *x =
        open_array(SHARDED("[10, 13]", "[4, 6]", SHARDING("[2, 3]", "[\"bytes\"]", "end")));
    struct shard_cache *c = shard_cache_new(1 << 20);
    struct where w;
    check_eq(x->grid[0], 5);
    check_eq(x->grid[1], 5);
    check_eq(x->shard[1], 6);
    /* chunk (3, 2) is entry (1, 0) of shard (1, 1) */
    check_eq(array_locate(x, c, 17, &w, &e), 0);
    check_eq(w.kind, WHERE_INDEX);
    check_str(w.key, "c/1/1");
    check_eq(w.shard, 4);
    const uint64_t entries[] = {0, 6, 6, 7, 13, 8, NONE, NONE};
    check_eq(feed(c, x, &w, entries, 4, 21 + 64), 0);
    check_eq(array_locate(x, c, 17, &w, &e), 0);
    check_eq(w.kind, WHERE_RANGE);
    check_eq(w.offset, 13);
    check_eq(w.length, 8);
    check_eq(array_locate(x, c, 18, &w, &e), 0);
    check_eq(w.kind, WHERE_MISSING);
    check_eq(array_locate(x, c, 13, &w, &e), 0);
    check_eq(w.offset, 6);
    check_eq(array_locate(x, c, 0, &w, &e), 0); /* another shard */
    check_eq(w.kind, WHERE_INDEX);
    shard_cache_free(c);
    reader_free(reader);
}

static void an_absent_shard_is_remembered(void)
{
    const struct array *x =
        open_array(SHARDED("[16]", "[8]", SHARDING("[2]", "[\"bytes\"]", "end")));
    struct shard_cache *c = shard_cache_new(1 << 20);
    struct answer missing = {.kind = ANSWER_MISSING};
    struct where w;
    check_eq(array_locate(x, c, 5, &w, &e), 0);
    check_eq(shard_cache_feed(c, x, &w, &missing, 0, context, &e), 0);
    for (uint64_t chunk = 4; chunk < 8; chunk++) {
        check_eq(array_locate(x, c, chunk, &w, &e), 0);
        check_eq(w.kind, WHERE_MISSING);
        check_eq(w.shard, 1);
    }
    shard_cache_free(c);
    reader_free(reader);
}

static void damaged_entries_are_errors_of_their_chunk(void)
{
    struct where w;
    const uint64_t half[] = {0, NONE, NONE, 2, 0, 2, 0, 0};
    check_eq(locate_with(half, 100, 0, &w), HR_EDATA);
    check_has(e.text, "half empty");
    check_eq(locate_with(half, 100, 1, &w), HR_EDATA);
    check_eq(locate_with(half, 100, 2, &w), 0);
    check_eq(locate_with(half, 100, 3, &w), HR_EDATA);
    check_has(e.text, "no bytes");
    const uint64_t far[] = {99, 2, 98, 2, NONE - 1, 8, 1, INT64_MAX};
    check_eq(locate_with(far, 100, 0, &w), HR_EDATA);
    check_has(e.text, "past the end");
    check_eq(locate_with(far, 100, 1, &w), 0);
    check_eq(locate_with(far, 0, 0, &w), 0); /* size of the object unknown */
    check_eq(locate_with(far, 0, 2, &w), HR_EDATA);
    check_eq(locate_with(far, 0, 3, &w), HR_EDATA);
    check_has(e.text, "overflows");
}

static void entries_may_alias_and_come_in_any_order(void)
{
    struct where w;
    const uint64_t entries[] = {4, 2, 4, 2, 0, 4, 50, 1};
    check_eq(locate_with(entries, 200, 0, &w), 0);
    check_eq(w.offset, 4);
    check_eq(locate_with(entries, 200, 1, &w), 0);
    check_eq(w.offset, 4);
}

static void an_index_of_wrong_size_is_refused(void)
{
    const struct array *x =
        open_array(SHARDED("[16]", "[8]", SHARDING("[2]", "[\"bytes\"]", "start")));
    struct shard_cache *c = shard_cache_new(1 << 20);
    struct where w;
    const uint64_t entries[8] = {0};
    check_eq(array_locate(x, c, 0, &w, &e), 0);
    check_eq(w.need_offset, 0);
    check_eq(feed(c, x, &w, entries, 3, 48), HR_EDATA);
    check_has(e.text, "48 bytes where its index of 64");
    check_eq(array_locate(x, c, 0, &w, &e), 0); /* nothing was kept */
    check_eq(w.kind, WHERE_INDEX);
    shard_cache_free(c);
    reader_free(reader);
}

static const char nested[] =
    SHARDED("[16]", "[8]", SHARDING("[4]", SHARDING("[2]", "[\"bytes\"]", "end"), "start"));

static void nested_shards_are_offsets_within_offsets(void)
{
    const struct array *x = open_array(nested);
    struct shard_cache *c = shard_cache_new(1 << 20);
    struct where w;
    check_eq(x->chunk[0], 2);
    check_eq(x->shard[0], 8);
    check_eq(array_locate(x, c, 7, &w, &e),
             0); /* second chunk of the second nested shard of object 1 */
    check_eq(w.level, 0);
    check_eq(w.need_offset, 0);
    check_eq(w.need_length, 32);
    const uint64_t outer[] = {NONE, NONE, 100, 50};
    check_eq(feed(c, x, &w, outer, 2, 200), 0);
    check_eq(array_locate(x, c, 7, &w, &e), 0);
    check_eq(w.kind, WHERE_INDEX);
    check_eq(w.level, 1);
    check_eq(w.need_offset, 118);
    check_eq(w.need_length, 32);
    check_eq(w.offset, 100);
    check_eq(w.length, 50);
    const uint64_t inner[] = {0, 2, 16, 2};
    check_eq(feed(c, x, &w, inner, 2, 0), 0);
    check_eq(array_locate(x, c, 7, &w, &e), 0);
    check_eq(w.kind, WHERE_RANGE);
    check_eq(w.offset, 116);
    check_eq(w.length, 2);
    check_eq(array_locate(x, c, 4, &w, &e), 0); /* its nested shard is empty */
    check_eq(w.kind, WHERE_MISSING);
    shard_cache_free(c);
    reader_free(reader);
}

static void nested_entries_stay_within_their_shard(void)
{
    const struct array *x = open_array(nested);
    struct shard_cache *c = shard_cache_new(1 << 20);
    struct where w;
    const uint64_t outer[] = {32, 40, 72, 31}, inner[] = {0, 2, 39, 2};
    array_locate(x, c, 0, &w, &e);
    check_eq(feed(c, x, &w, outer, 2, 200), 0);
    check_eq(array_locate(x, c, 3, &w, &e), HR_EDATA); /* 31 bytes cannot hold an index of 32 */
    check_has(e.text, "shorter than its index");
    check_eq(array_locate(x, c, 0, &w, &e), 0);
    check_eq(feed(c, x, &w, inner, 2, 0), 0);
    check_eq(array_locate(x, c, 0, &w, &e), 0);
    check_eq(array_locate(x, c, 1, &w, &e), HR_EDATA); /* 41 > 40, though the object goes on */
    shard_cache_free(c);
    reader_free(reader);
}

static void a_transpose_around_a_shard_orders_its_index(void)
{
    const struct array *x = open_array(
        SHARDED("[8, 6]", "[4, 6]",
                "[{\"name\": \"transpose\", \"configuration\": {\"order\": [1, 0]}}, {\"name\": "
                "\"sharding_indexed\", "
                "\"configuration\": {\"chunk_shape\": [3, 1], \"codecs\": [\"bytes\"], "
                "\"index_codecs\": [{\"name\": \"bytes\", "
                "\"configuration\": {\"endian\": \"little\"}}], \"index_location\": \"end\"}}]"));
    struct shard_cache *c = shard_cache_new(1 << 20);
    struct where w;
    check_eq(x->chunk[0], 1);
    check_eq(x->chunk[1], 3);
    check_eq(x->n_chunks, 16);
    uint64_t entries[16];
    for (uint64_t i = 0; i < 8; i++) {
        entries[2 * i] = i * 3;
        entries[2 * i + 1] = 3;
    }
    array_locate(x, c, 0, &w, &e);
    check_eq(feed(c, x, &w, entries, 8, 24 + 128), 0);
    check_eq(array_locate(x, c, 3, &w, &e),
             0); /* chunk (1, 1): in the stored order (1, 1) of 2 × 4 */
    check_eq(w.offset, 5 * 3);
    check_eq(array_locate(x, c, 4, &w, &e), 0); /* (2, 0) → entry (0, 2) */
    check_eq(w.offset, 2 * 3);
    shard_cache_free(c);
    reader_free(reader);
}

static void the_cache_stays_within_its_bound_and_never_livelocks(void)
{
    const struct array *x = open_array(
        SHARDED("[80000]", "[80]", SHARDING("[40]", SHARDING("[2]", "[\"bytes\"]", "end"), "end")));
    struct shard_cache *c = shard_cache_new(100 << 10), *tiny = shard_cache_new(0);
    uint64_t inner[40];
    struct where w;
    for (int i = 0; i < 20; i++) {
        inner[2 * i] = (uint64_t)i;
        inner[2 * i + 1] = 1;
    }
    const uint64_t outer[] = {0, 400, 400, 400};
    for (uint64_t chunk = 0; chunk < 40000; chunk += 7) {
        struct shard_cache *both[] = {c, tiny};
        for (int k = 0; k < 2; k++) {
            int turns = 0;
            while (array_locate(x, both[k], chunk, &w, &e) == 0 && w.kind == WHERE_INDEX &&
                   turns++ < 5)
                feed(both[k], x, &w, w.level ? inner : outer, w.level ? 20 : 2, 0);
            check(turns <= 2 && w.kind == WHERE_RANGE);
        }
    }
    check(shard_cache_bytes(c) <= 100 << 10);
    check(shard_cache_bytes(tiny) < 4000);
    shard_cache_free(c);
    shard_cache_free(tiny);
    reader_free(reader);
}

int main(void)
{
    RUN(an_index_answers_for_all_chunks_of_its_shard);
    RUN(an_absent_shard_is_remembered);
    RUN(damaged_entries_are_errors_of_their_chunk);
    RUN(entries_may_alias_and_come_in_any_order);
    RUN(an_index_of_wrong_size_is_refused);
    RUN(nested_shards_are_offsets_within_offsets);
    RUN(nested_entries_stay_within_their_shard);
    RUN(a_transpose_around_a_shard_orders_its_index);
    RUN(the_cache_stays_within_its_bound_and_never_livelocks);
    codec_context_free(context);
    return t_done();
}
