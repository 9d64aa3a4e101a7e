/* A little zarr v3 archive for the loader's tests, written by the test itself: arrays whose every
 * item says where it stands, so that a batch can be checked without a second reader. Goes to a
 * directory or to memory://. */
#ifndef TESTS_LITTLE_H
#define TESTS_LITTLE_H
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "headrace.h"
#include "store/memory.h"
#include "t.h"

struct little {
    const char *name;   /* of the array */
    int time, y, x;     /* shape */
    int chunk, chunk_y; /* along time, along y; x is whole */
    int shard;          /* chunks along time in a shard, 0: none */
    bool zstd;
    bool i2; /* int16 items, packed: value = item · 0.5 + 100, -1 is missing */
};

static inline float little_value(const struct little *a, int64_t t, int64_t y, int64_t x)
{
    return (float)(t * 1000 + y * a->x + x + (a->name[0] == 'u' ? 500000 : 0));
}
static inline int16_t little_packed(const struct little *a, int64_t t, int64_t y, int64_t x)
{
    int64_t v = (t * 31 + y * a->x + x) % 3000;
    return (int16_t)(v % 7 == 0 ? -1 : v);
}

static char little_root[256];  /* a directory, or "" for memory://little */
static char little_served[64]; /* the URL at which the directory is served, or "" */

static inline void little_path(const char *key, char *out, size_t n, bool make)
{
    snprintf(out, n, "%s/%s", little_root, key);
    for (char *p = out + 1; make && *p; p++)
        if (*p == '/') {
            *p = 0;
            mkdir(out, 0777);
            *p = '/';
        }
}
static inline void little_put(const char *key, const void *data, size_t n)
{
    char path[512];
    if (!*little_root) {
        memory_put("little", key, data, n, NULL);
        return;
    }
    little_path(key, path, sizeof path, true);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, n, f) != n || fclose(f))
        exit(99);
}
static inline void little_delete(const char *key)
{
    char path[512];
    little_path(key, path, sizeof path, false);
    if (*little_root)
        unlink(path);
    else
        memory_delete("little", key);
}

static inline void little_meta(const struct little *a)
{
    char text[2000], codecs[400], outer[900];
    snprintf(
        codecs, sizeof codecs, "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}%s",
        a->zstd ? ",{\"name\":\"zstd\",\"configuration\":{\"level\":3,\"checksum\":false}}" : "");
    snprintf(outer, sizeof outer,
             "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[%d,%d,%d],"
             "\"codecs\":[%s],"
             "\"index_codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}],"
             "\"index_location\":\"end\"}}",
             a->chunk, a->chunk_y, a->x, codecs);
    snprintf(text, sizeof text,
             "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[%d,%d,%d],\"data_type\":\"%s\","
             "\"chunk_grid\":"
             "{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[%d,%d,%d]}},\"chunk_key_"
             "encoding\":{\"name\":"
             "\"default\",\"configuration\":{\"separator\":\"/"
             "\"}},\"fill_value\":%s,\"codecs\":[%s],\"dimension_names\":"
             "[\"time\",\"y\",\"x\"],\"attributes\":{%s}}",
             a->time, a->y, a->x, a->i2 ? "int16" : "float32", a->chunk * (a->shard ? a->shard : 1),
             a->chunk_y, a->x, a->i2 ? "-1" : "-7.5", a->shard ? outer : codecs,
             a->i2 ? "\"scale_factor\":0.5,\"add_offset\":100.0,\"_FillValue\":-1" : "");
    char key[64];
    snprintf(key, sizeof key, "%s/zarr.json", a->name);
    little_put(key, text, strlen(text));
}

/* The stored bytes of chunk (c, cy); returns how many. */
static inline size_t little_chunk(const struct little *a, int c, int cy, char *out, size_t cap)
{
    size_t items = (size_t)a->chunk * a->chunk_y * a->x, item = a->i2 ? 2 : 4, n = 0;
    char *raw = calloc(items, item);
    for (int t = c * a->chunk; t < (c + 1) * a->chunk; t++)
        for (int y = cy * a->chunk_y; y < (cy + 1) * a->chunk_y; y++)
            for (int x = 0; x < a->x; x++, n++) {
                float f = little_value(a, t, y, x);
                int16_t i = little_packed(a, t, y, x);
                memcpy(raw + n * item, a->i2 ? (void *)&i : (void *)&f, item);
            }
    size_t size = items * item;
    if (a->zstd)
        size = ZSTD_compress(out, cap, raw, size, 3);
    else
        memcpy(out, raw, size);
    free(raw);
    return size;
}

static inline void little_write(const struct little *a)
{
    int nt = (a->time + a->chunk - 1) / a->chunk, ny = (a->y + a->chunk_y - 1) / a->chunk_y;
    int per = a->shard ? a->shard : 1;
    size_t cap = ZSTD_compressBound((size_t)a->chunk * a->chunk_y * a->x * 4) + 64;
    char *object = malloc(cap * (size_t)per + 16 * (size_t)per);
    little_put("zarr.json", "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":{}}",
               strlen("{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":{}}"));
    little_meta(a);
    for (int o = 0; o * per < nt; o++)
        for (int cy = 0; cy < ny; cy++) {
            uint64_t index[64][2];
            size_t n = 0;
            for (int i = 0; i < per; i++) {
                size_t size = little_chunk(a, o * per + i, cy, object + n, cap);
                index[i][0] = n;
                index[i][1] = size;
                n += size;
            }
            if (a->shard) {
                memcpy(object + n, index, 16 * (size_t)per);
                n += 16 * (size_t)per;
            }
            char key[64];
            snprintf(key, sizeof key, "%s/c/%d/%d/0", a->name, o, cy);
            little_put(key, object, n);
        }
    free(object);
}

static inline const char *little_url(void)
{
    return *little_served ? little_served : *little_root ? little_root : "memory://little";
}

#endif
