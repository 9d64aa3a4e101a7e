/* JSON metadata comes from whoever wrote the archive. Whatever the bytes: no crash and no leak; a refusal has a code and
 * a text; what is accepted can be written and read again to the same tree, and each member is found by its key. */
#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"

#include <string.h>

#define HOLD(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            __builtin_trap();                                                                      \
    } while (0)

static void members_found(const struct json *v)
{
    for (uint32_t i = 0; json_is(v, JSON_ARRAY) && i < v->size; i++)
        members_found(&v->items[i]);
    for (uint32_t i = 0; json_is(v, JSON_OBJECT) && i < v->size; i++) {
        const struct json_member *m = &v->members[i];
        HOLD(m->key[m->key_size] == 0);
        if (!memchr(m->key, 0, m->key_size))
            HOLD(json_get(v, m->key) == &m->value);
        members_found(&m->value);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    uint64_t before = mem_live();
    struct arena a;
    struct buf first, second;
    struct json *root = NULL, *again = NULL;
    struct hr_error e = {0};
    arena_init(&a);
    buf_init(&first);
    buf_init(&second);
    int rc = json_parse(&a, (const char *)data, n, "input", &root, &e);
    if (rc < 0) {
        HOLD(e.code == rc && !strncmp(e.text, "input", 5) && strlen(e.text) > 10 && !root);
    } else {
        members_found(root);
        json_write(root, &first);
        HOLD(json_parse(&a, first.data, first.size, "written", &again, &e) == 0);
        json_write(again, &second);
        HOLD(first.size == second.size && !memcmp(first.data, second.data, first.size));
    }
    buf_dispose(&first);
    buf_dispose(&second);
    arena_dispose(&a);
    HOLD(mem_live() == before);
    return 0;
}
