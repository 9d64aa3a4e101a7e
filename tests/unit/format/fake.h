/* A store of literals that drives a reader, for the tests of the format room: no files, no network, every request counted. */
#ifndef TESTS_FORMAT_FAKE_H
#define TESTS_FORMAT_FAKE_H
#include "base/mem.h"
#include "format/reader.h"
#include "t.h"

struct fake_object {
    const char *key, *text;
    size_t size; /* 0: that of the text */
};
struct fake {
    const struct fake_object *objects;
    size_t n;
    bool cannot_list;
    bool hides_sizes;      /* of objects read in part */
    uint64_t pretend_size; /* every object is said to be this large (its bytes are not looked at) */
    int requests;
    char log[4096]; /* keys asked for, separated by spaces */
};

#define FAKE(...)                                                                                  \
    {                                                                                              \
        .objects = (const struct fake_object[]){__VA_ARGS__},                                      \
        .n = sizeof((const struct fake_object[]){__VA_ARGS__}) / sizeof(struct fake_object)        \
    }

/* Names below `prefix`, each once, in the order of the objects. */
static inline size_t fake_list(const struct fake *f, const char *prefix, char *names, size_t room)
{
    size_t used = 0, n = strlen(prefix);
    for (size_t i = 0; i < f->n; i++) {
        const char *key = f->objects[i].key;
        if (n && (strncmp(key, prefix, n) || key[n] != '/'))
            continue;
        const char *rest = key + n + (n != 0);
        size_t size = strcspn(rest, "/");
        size += rest[size] == '/';
        bool seen = false;
        for (size_t at = 0; at < used; at += strlen(names + at) + 1)
            seen |= strlen(names + at) == size && !strncmp(names + at, rest, size);
        if (seen || used + size + 1 > room)
            continue;
        memcpy(names + used, rest, size);
        names[used + size] = '\0';
        used += size + 1;
    }
    return used;
}

static inline size_t fake_size(const struct fake_object *o)
{
    return o->size ? o->size : strlen(o->text);
}

/* Of a whole object, the bytes that were asked for; there are as many. */
static inline void fake_cut(const struct fake *f, const struct need *need, struct answer *out)
{
    size_t size = out->size, n = (size_t)need->length;
    size_t from = need->offset < 0 ? (size - (n < size ? n : size)) : (size_t)need->offset;
    out->object_size = f->hides_sizes ? 0 : size;
    out->data = (const char *)out->data + from;
    out->size = from > size ? 0 : n < size - from ? n : size - from;
}

static inline void fake_answer(struct fake *f, const struct need *need, char *names, size_t room,
                               struct answer *out)
{
    size_t used = strlen(f->log);
    f->requests++;
    snprintf(f->log + used, sizeof f->log - used, "%s%s%s", used ? " " : "",
             need->kind == NEED_LIST ? "list:" : "", need->key);
    *out = (struct answer){.kind = ANSWER_MISSING};
    if (need->kind == NEED_LIST) {
        *out = (struct answer){f->cannot_list ? ANSWER_UNSUPPORTED : ANSWER_BYTES, names,
                               f->cannot_list ? 0 : fake_list(f, need->key, names, room)};
        return;
    }
    for (size_t i = 0; i < f->n; i++)
        if (!strcmp(f->objects[i].key, need->key))
            *out = (struct answer){ANSWER_BYTES, f->objects[i].text,
                                   f->pretend_size ? f->pretend_size : fake_size(&f->objects[i])};
    if (need->kind == NEED_RANGE && out->kind == ANSWER_BYTES)
        fake_cut(f, need, out);
}

/* Run the round that was begun to its end. */
static inline int fake_finish(struct fake *f, struct reader *r, struct hr_error *e)
{
    static char names[1 << 20];
    for (int guard = 0; guard < 1000000; guard++) {
        struct need need;
        struct answer answer;
        int rc = reader_step(r, &need, e);
        if (rc != READER_NEED)
            return rc;
        fake_answer(f, &need, names, sizeof names, &answer);
        rc = reader_feed(r, &answer, e);
        if (rc < 0)
            return rc;
    }
    return error_set(e, HR_EINTERNAL, "the reader never ends");
}

static inline int fake_want(struct fake *f, struct reader *r, const char *path, struct hr_error *e)
{
    int rc = reader_want(r, path, e);
    return rc < 0 ? rc : fake_finish(f, r, e);
}

static inline int fake_walk(struct fake *f, struct reader *r, struct hr_error *e)
{
    int rc = reader_walk(r, e);
    return rc < 0 ? rc : fake_finish(f, r, e);
}

/* Open; on failure NULL, with the error in *e. */
static inline struct reader *fake_open(struct fake *f, struct hr_error *e)
{
    struct reader *r = reader_new(e);
    if (r && fake_finish(f, r, e) < 0) {
        reader_free(r);
        return NULL;
    }
    return r;
}

/* Documents. */
#define V3_ARRAY_WITH(shape, type, chunks, keys, fill, codecs, more)                               \
    "{\"zarr_format\": 3, \"node_type\": \"array\", \"shape\": " shape ", \"data_type\": " type    \
    ", \"chunk_grid\": {\"name\": \"regular\", \"configuration\": {\"chunk_shape\": " chunks       \
    "}}, \"chunk_key_encoding\": " keys ", \"fill_value\": " fill ", \"codecs\": " codecs more "}"
#define V3_BYTES "[{\"name\": \"bytes\", \"configuration\": {\"endian\": \"little\"}}]"
#define V3_KEYS  "{\"name\": \"default\"}"
#define V3_ARRAY(shape, chunks)                                                                    \
    V3_ARRAY_WITH(shape, "\"int32\"", chunks, V3_KEYS, "0", V3_BYTES, "")
#define V3_GROUP "{\"zarr_format\": 3, \"node_type\": \"group\"}"
#define V2_ARRAY_WITH(shape, chunks, dtype, fill, more)                                            \
    "{\"zarr_format\": 2, \"shape\": " shape ", \"chunks\": " chunks ", \"dtype\": " dtype         \
    ", \"fill_value\": " fill ", \"order\": \"C\", \"filters\": null, \"compressor\": null" more   \
    "}"
#define V2_ARRAY(shape, chunks) V2_ARRAY_WITH(shape, chunks, "\"<i4\"", "0", "")
#define V2_GROUP                "{\"zarr_format\": 2}"
#endif
