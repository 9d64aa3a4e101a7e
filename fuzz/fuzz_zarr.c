/* A hierarchy comes from whoever wrote the archive. Whatever its documents say: no crash, no leak, no endless round; every
 * array is either readable, and then its geometry is consistent and its keys stay within the archive, or has a problem with
 * a code and a text.
 *
 * An input is a little archive as text: a line "@key" begins the object of that key. A key "!" alone makes the store one
 * that cannot list. */
#include "base/mem.h"
#include "format/cf.h"

#include <string.h>

#define HOLD(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            __builtin_trap();                                                                      \
    } while (0)
#define MAX_OBJECTS 64

struct object {
    const char *key;
    size_t key_size;
    const char *text;
    size_t size;
};
struct archive {
    struct object objects[MAX_OBJECTS];
    int n;
    bool cannot_list;
    char names[4096];
};

static void split(struct archive *a, const char *p, size_t n)
{
    const char *end = p + n;
    while (p < end && a->n < MAX_OBJECTS) {
        const char *line = memchr(p, '\n', (size_t)(end - p));
        size_t size = line ? (size_t)(line - p) : (size_t)(end - p);
        const char *next = line ? line + 1 : end;
        if (size && *p == '@') {
            a->cannot_list |= size == 2 && p[1] == '!';
            a->objects[a->n++] = (struct object){p + 1, size - 1, next, 0};
        } else if (a->n) {
            struct object *o = &a->objects[a->n - 1];
            o->size = (size_t)(next - o->text);
        }
        p = next;
    }
}

static void list(struct archive *a, const char *prefix, struct answer *out)
{
    size_t used = 0, n = strlen(prefix);
    for (int i = 0; i < a->n; i++) {
        const struct object *o = &a->objects[i];
        if (o->key_size <= n || (n && (memcmp(o->key, prefix, n) || o->key[n] != '/')))
            continue;
        const char *rest = o->key + n + (n != 0), *end = o->key + o->key_size;
        const char *slash = memchr(rest, '/', (size_t)(end - rest));
        size_t size = (size_t)((slash ? slash + 1 : end) - rest);
        if (used + size + 1 > sizeof a->names)
            break;
        memcpy(a->names + used, rest, size);
        a->names[used + size] = '\0';
        used += size + 1;
    }
    *out = (struct answer){a->cannot_list ? ANSWER_UNSUPPORTED : ANSWER_BYTES, a->names, used};
}

static void answer(struct archive *a, const struct need *need, struct answer *out)
{
    *out = (struct answer){.kind = ANSWER_MISSING};
    if (need->kind == NEED_LIST) {
        list(a, need->key, out);
        return;
    }
    HOLD(*need->key);
    for (int i = 0; i < a->n; i++)
        if (a->objects[i].key_size == strlen(need->key) &&
            !memcmp(a->objects[i].key, need->key, strlen(need->key)))
            *out = (struct answer){ANSWER_BYTES, a->objects[i].text, a->objects[i].size};
}

static int finish(struct archive *a, struct reader *r, struct hr_error *e)
{
    for (int guard = 0; guard < 100000; guard++) {
        struct need need;
        struct answer got;
        int rc = reader_step(r, &need, e);
        if (rc != READER_NEED)
            return rc;
        answer(a, &need, &got);
        rc = reader_feed(r, &got, e);
        if (rc < 0)
            return rc;
    }
    HOLD(!"the round ends");
    return 0;
}

static void hold_error(int rc, const struct hr_error *e)
{
    HOLD(rc >= 0 || (e->code == rc && *e->text));
}

/* No key may climb out of the archive. */
static void hold_key(const char *key)
{
    for (const char *p = key; *p; p += *p == '/') {
        size_t n = strcspn(p, "/");
        HOLD(n && !(n == 1 && p[0] == '.') && !(n == 2 && p[0] == '.' && p[1] == '.'));
        p += n;
    }
}

static void hold_chunk(const struct array *x, uint64_t chunk)
{
    struct hr_error e;
    struct where w;
    uint64_t origin[HR_MAX_DIMS], shape[HR_MAX_DIMS];
    int rc = array_locate(x, NULL, chunk, &w, &e);
    hold_error(rc, &e);
    HOLD(rc == 0 && w.kind == (x->shard ? WHERE_INDEX : WHERE_OBJECT));
    hold_key(w.key);
    array_chunk_box(x, chunk, origin, shape);
    for (int d = 0; d < x->ndim; d++) {
        HOLD(origin[d] < x->shape[d] && shape[d] && shape[d] <= x->chunk[d]);
        uint64_t end = origin[d] + shape[d] < x->shape[d] ? origin[d] + shape[d] : x->shape[d];
        HOLD(array_chunk_index(x, d, origin[d]) == array_chunk_index(x, d, end - 1));
    }
}

static void hold_array(const struct array *x)
{
    struct hr_error e;
    struct cf cf;
    hold_error(cf_of_array(x, &cf, &e), &e);
    HOLD(x->path);
    if (x->problem) {
        HOLD(x->problem_code < 0 && x->problem_code != HR_ENOMEM && *x->problem);
        return;
    }
    uint64_t n = 1;
    for (int d = 0; d < x->ndim; d++) {
        HOLD(x->chunk[d]);
        n *= x->grid[d];
    }
    HOLD(n == x->n_chunks && x->chain && x->fill && x->type.name);
    if (!n)
        return;
    hold_chunk(x, 0);
    hold_chunk(x, n / 2);
    hold_chunk(x, n - 1);
}

static void hold_all(const struct reader *r)
{
    const struct array *const *arrays;
    int n = reader_arrays(r, &arrays);
    for (int i = 0; i < n; i++) {
        HOLD(arrays[i]->number == i && reader_find(r, arrays[i]->path) == arrays[i]);
        hold_array(arrays[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char *const wanted[] = {"", "a", "a.b", "g/a", "g/a/b.c", "a/../b", "t/x"};
    uint64_t before = mem_live();
    struct archive a = {0};
    struct hr_error e = {0};
    split(&a, (const char *)data, n);
    struct reader *r = reader_new(&e);
    HOLD(r);
    int rc = finish(&a, r, &e);
    hold_error(rc, &e);
    if (rc == READER_READY) {
        hold_all(r);
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
            rc = reader_want(r, wanted[i], &e);
            hold_error(rc < 0 ? rc : finish(&a, r, &e), &e);
        }
        rc = reader_walk(r, &e);
        hold_error(rc < 0 ? rc : finish(&a, r, &e), &e);
        hold_all(r);
    }
    reader_free(r);
    HOLD(mem_live() == before);
    return 0;
}
