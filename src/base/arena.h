/* Memory that is given back all at once: one arena per opened archive, per parsed document. Not thread-safe. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H
#include <stddef.h>
#include <stdint.h>

struct arena_block;
struct arena {
    struct arena_block *head;
    size_t total; /* bytes obtained from mem_alloc */
};

void arena_init(struct arena *a);
void arena_dispose(struct arena *a);
void *arena_alloc(struct arena *a, size_t n); /* zeroed, 16-byte aligned; NULL when out of memory */
void *arena_array(struct arena *a, size_t count, size_t size);
char *arena_strndup(struct arena *a, const char *s, size_t n);
char *arena_strdup(struct arena *a, const char *s);
char *arena_printf(struct arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
