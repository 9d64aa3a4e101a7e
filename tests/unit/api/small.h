/* Arrays of a handful of items in memory://small, zarr v2 and uncompressed, for tests of names and labels. */
#ifndef TESTS_SMALL_H
#define TESTS_SMALL_H
#include "api/archive.h"
#include "store/memory.h"
#include "t.h"

static inline void small_put(const char *key, const char *text)
{
    memory_put("small", key, text, strlen(text), NULL);
}

/* One chunk. `shape` "[4]", `dims` "[\"time\"]", `more`: further attributes ("" or ", \"units\": …"). No data: its items
 * are zeros. */
static inline void small_array(const char *path, const char *shape, const char *dtype,
                               const char *dims, const char *more, const void *data, size_t n)
{
    char key[100], text[600], chunk[40] = "0";
    snprintf(key, sizeof key, "%s/.zarray", path);
    snprintf(
        text, sizeof text,
        "{\"zarr_format\": 2, \"shape\": %s, \"chunks\": %s, \"dtype\": \"%s\", \"order\": \"C\","
        " \"fill_value\": null, \"filters\": null, \"compressor\": null}",
        shape, shape, dtype);
    small_put(key, text);
    snprintf(key, sizeof key, "%s/.zattrs", path);
    snprintf(text, sizeof text, "{\"_ARRAY_DIMENSIONS\": %s%s}", dims, more);
    small_put(key, text);
    for (const char *p = strchr(shape, ','); p; p = strchr(p + 1, ','))
        strcat(chunk, ".0");
    snprintf(key, sizeof key, "%s/%s", path, chunk);
    if (data)
        memory_put("small", key, data, n, NULL);
}
#define SMALL(path, dtype, dim, more, ...)                                                         \
    do {                                                                                           \
        char shape[24];                                                                            \
        snprintf(shape, sizeof shape, "[%zu]", sizeof(__VA_ARGS__) / sizeof *(__VA_ARGS__));       \
        small_array(path, shape, dtype, "[\"" dim "\"]", more, __VA_ARGS__, sizeof(__VA_ARGS__));  \
    } while (0)

static inline struct hr_archive *small_open(void)
{
    struct hr_archive *a = NULL;
    struct hr_error e;
    if (hr_open("memory://small", NULL, &a, &e) < 0) {
        printf("# %s\n", e.text);
        exit(1);
    }
    return a;
}

#endif
