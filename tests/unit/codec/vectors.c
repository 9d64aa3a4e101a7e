/* Chunks as other software wrote them (tests/golden/make_codec_vectors.py says how the file comes about): each decodes to
 * the bytes it is said to, scatters to the same, fails cleanly when it is cut short, and never crashes when it is not
 * what it was. The file is the only argument. */
#include "base/arena.h"
#include "base/json.h"
#include "base/mem.h"
#include "codec/step.h"
#include "frames.h"
#include "t.h"

struct vector {
    char *name;
    struct arena arena;
    struct json *meta;
    struct dtype type;
    int ndim;
    uint64_t shape[8], count;
    void *fill;
    const char *fill_text;
    size_t fill_size;
    uint8_t *stored, *decoded;
    size_t n_stored, n_decoded;
    struct codec_chain *chain;
};

static struct vector *vectors;
static int n_vectors;
static struct codec_context *context;

static uint8_t *unhex(const char *s, size_t n, size_t *size)
{
    uint8_t *out = malloc(n / 2 + 1);
    for (size_t i = 0; i + 1 < n; i += 2)
        sscanf(s + i, "%2hhx", &out[i / 2]);
    *size = n / 2;
    return out;
}

static int build(struct vector *v, struct arena *a, struct codec_chain **out, struct hr_error *e)
{
    const struct json *m = v->meta, *fill = json_get(m, "fill_value");
    int64_t version = 0;
    json_int64(json_get(m, "zarr"), &version);
    if (version == 2) {
        const char *order = json_str(json_get(m, "order"));
        TRY(dtype_from_v2(a, json_get(m, "dtype"), "t", &v->type, e));
        return codec_chain_v2(a, json_get(m, "compressor"), json_get(m, "filters"), *order,
                              &v->type, v->ndim, v->shape, NULL, "t", out, e);
    }
    TRY(dtype_from_v3(a, json_get(m, "data_type"), "t", &v->type, e));
    if (!(v->fill = arena_alloc(a, v->type.item_size + 1)))
        return error_nomem(e, 1, "t");
    TRY(dtype_fill_v3(a, &v->type, fill, "t", v->fill, &v->fill_text, &v->fill_size, e));
    TRY(codec_chain_v3(a, json_get(m, "codecs"), &v->type, v->ndim, v->shape, v->fill, "t", out,
                       e));
    if (v->fill_text)
        codec_chain_text_fill(*out, v->fill_text, v->fill_size);
    return 0;
}

static void load_line(char *line)
{
    struct vector *v = &vectors[n_vectors++];
    char *meta = strchr(line, '\t'), *stored = strchr(meta + 1, '\t'),
         *decoded = strchr(stored + 1, '\t');
    struct hr_error e;
    *meta++ = *stored++ = *decoded++ = 0;
    v->name = line;
    v->stored = unhex(stored, strlen(stored), &v->n_stored);
    v->decoded = unhex(decoded, strlen(decoded), &v->n_decoded);
    arena_init(&v->arena);
    if (json_parse(&v->arena, meta, strlen(meta), "vectors.txt", &v->meta, &e) < 0) {
        printf("Bail out! %s\n", e.text);
        exit(1);
    }
    const struct json *shape = json_get(v->meta, "shape");
    v->count = 1;
    for (v->ndim = 0; v->ndim < (int)shape->size; v->ndim++) {
        v->shape[v->ndim] = (uint64_t)shape->items[v->ndim].i;
        v->count *= v->shape[v->ndim];
    }
}

static void load(const char *path)
{
    static char text[4 << 20];
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (!n) {
        printf("Bail out! %s is missing\n", path);
        exit(1);
    }
    fclose(f);
    vectors = calloc(1000, sizeof *vectors);
    for (char *line = strtok_r(text, "\n", &(char *){NULL}), *end; line; line = *end ? end : NULL) {
        end = line + strlen(line) + 1;
        char *stop = strchr(end, '\n');
        if (stop)
            *stop = 0;
        load_line(line);
    }
}

/* Decode; strings are joined by NUL. */
static int decode(struct vector *v, const struct codec_chain *c, struct codec_context *x,
                  const uint8_t *src, size_t n, uint8_t *out, size_t *made, struct hr_error *e)
{
    if (v->type.item_size) {
        *made = codec_chain_decoded_size(c);
        return codec_chain_decode(c, x, src, n, out, e);
    }
    uint64_t *offsets = malloc((v->count + 1) * 8);
    const char *data;
    int rc = codec_chain_decode_strings(c, x, src, n, v->count, offsets, &data, e);
    *made = 0;
    for (uint64_t i = 0; rc == 0 && i < v->count; i++) {
        if (i)
            out[(*made)++] = 0;
        memcpy(out + *made, data + offsets[i], offsets[i + 1] - offsets[i]);
        *made += offsets[i + 1] - offsets[i];
    }
    free(offsets);
    return rc;
}

static void every_vector_decodes_to_its_bytes(void)
{
    int bad = 0;
    for (int i = 0; i < n_vectors; i++) {
        struct vector *v = &vectors[i];
        struct hr_error e = {0};
        uint8_t *out = malloc(v->n_decoded + 4096);
        size_t made = 0;
        int rc = build(v, &v->arena, &v->chain, &e);
        if (rc == 0)
            rc = decode(v, v->chain, context, v->stored, v->n_stored, out, &made, &e);
        if (rc || made != v->n_decoded || memcmp(out, v->decoded, made)) {
            printf("# %s: %s\n", v->name, rc ? e.text : "other bytes");
            bad++;
        }
        free(out);
    }
    check(n_vectors > 100);
    check_eq(bad, 0);
}

static void every_vector_scatters_to_the_same_bytes(void)
{
    int bad = 0;
    for (int i = 0; i < n_vectors; i++) {
        struct vector *v = &vectors[i];
        if (!v->chain || !v->type.item_size)
            continue;
        for (int round = 0; round < 20; round++) {
            uint8_t *out = malloc(v->n_decoded);
            uint64_t from = below(v->n_decoded), n = 1 + below(v->n_decoded - from), cut = below(n);
            struct codec_run runs[] = {{from, cut, out}, {from + cut, n - cut, out + cut}};
            struct hr_error e = {0};
            if (codec_chain_scatter(v->chain, context, v->stored, v->n_stored, runs, 2, NULL,
                                    below(2), &e) < 0 ||
                memcmp(out, v->decoded + from, n)) {
                printf("# %s: %s\n", v->name, e.text);
                bad++;
            }
            free(out);
        }
    }
    check_eq(bad, 0);
}

/* Cut short at every length: an error, except that what has no end mark of its own may lose trailing padding. */
static void truncated_chunks_are_errors(void)
{
    int bad = 0;
    for (int i = 0; i < n_vectors; i++) {
        struct vector *v = &vectors[i];
        uint8_t *out = malloc(v->n_decoded + (64 << 10));
        for (size_t n = 0; v->chain && n < v->n_stored; n++) {
            uint8_t *cut = malloc(n + 1); /* of its own, so that a read past the end is seen */
            size_t made;
            struct hr_error e = {0};
            memcpy(cut, v->stored, n);
            int rc = decode(v, v->chain, context, cut, n, out, &made, &e);
            if (rc == 0 && !strstr(v->name, "shard") && memcmp(out, v->decoded, v->n_decoded)) {
                printf("# %s cut to %zu of %zu decodes\n", v->name, n, v->n_stored);
                bad++;
            }
            if (rc < 0 && !*e.text)
                bad++;
            free(cut);
        }
        free(out);
    }
    check_eq(bad, 0);
}

static void damaged_chunks_do_no_harm(void)
{
    for (int i = 0; i < n_vectors; i++) {
        struct vector *v = &vectors[i];
        uint8_t *out = malloc(v->n_decoded + (64 << 10)), *copy = malloc(v->n_stored + 1);
        for (int round = 0; v->chain && v->type.item_size && round < 150; round++) {
            memcpy(copy, v->stored, v->n_stored);
            for (uint64_t k = 1 + below(3); k && v->n_stored; k--)
                copy[below(below(2)           ? v->n_stored
                           : v->n_stored < 40 ? v->n_stored
                                              : 40)] = (uint8_t)rng();
            size_t made;
            struct hr_error e = {0};
            int rc = decode(v, v->chain, context, copy, v->n_stored, out, &made, &e);
            if (rc != 0)
                check(rc == HR_EDATA || rc == HR_EUNSUPPORTED || rc == HR_ENOMEM);
        }
        free(out);
        free(copy);
    }
}

static void every_failed_allocation_is_an_error_and_leaks_nothing(void)
{
    for (int i = 0; i < n_vectors; i++) {
        struct vector *v = &vectors[i];
        uint8_t *out = malloc(v->n_decoded + 4096);
        for (uint64_t n = 1;; n++) {
            uint64_t before = mem_live();
            struct arena a;
            struct codec_chain *c = NULL;
            struct hr_error e = {0};
            size_t made;
            arena_init(&a);
            mem_fail_at(n, true);
            struct codec_context *x = codec_context_new();
            int rc = x ? build(v, &a, &c, &e) : HR_ENOMEM;
            if (rc == 0)
                rc = decode(v, c, x, v->stored, v->n_stored, out, &made, &e);
            mem_fail_at(0, false);
            codec_context_free(x);
            arena_dispose(&a);
            if (mem_live() != before)
                printf("# %s, allocation %" PRIu64 "\n", v->name, n);
            check_eq(mem_live(), before);
            if (rc == 0)
                break;
            if (!check(rc == HR_ENOMEM || rc == HR_EDATA))
                break;
        }
        free(out);
    }
}

int main(int argc, char **argv)
{
    context = codec_context_new();
    load(argc > 1 ? argv[1] : "tests/golden/codec/vectors.txt");
    RUN(every_vector_decodes_to_its_bytes);
    RUN(every_vector_scatters_to_the_same_bytes);
    RUN(truncated_chunks_are_errors);
    RUN(damaged_chunks_do_no_harm);
    RUN(every_failed_allocation_is_an_error_and_leaks_nothing);
    for (int i = 0; i < n_vectors; i++) {
        arena_dispose(&vectors[i].arena);
        free(vectors[i].stored);
        free(vectors[i].decoded);
    }
    free(vectors);
    codec_context_free(context);
    return t_done();
}
