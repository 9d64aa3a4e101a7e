/* A strict JSON reader for metadata: integers stay exact (int64/uint64), depth and size are capped, and the bare tokens
 * NaN, Infinity and -Infinity that other writers emit are accepted (reference: zarr-python#412). The tree lives in an
 * arena; strings are unescaped, NUL-terminated UTF-8 and may contain NULs (use `size`). Duplicate keys: the last value
 * wins, at the first one's place, as in Python. Text after the document is an error. A tree is never changed after
 * json_parse, so many threads may read it; json_get in a large object is a hash look-up. */
#ifndef BASE_JSON_H
#define BASE_JSON_H
#include <stdbool.h>
#include "base/arena.h"
#include "base/error.h"

#define JSON_MAX_DEPTH 128
#define JSON_MAX_BYTES (256u << 20)

enum json_type {
    JSON_NULL,
    JSON_BOOL,
    JSON_INT,
    JSON_UINT,
    JSON_DOUBLE,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
};

/* JSON_INT: any integer that fits int64. JSON_UINT: larger ones that fit uint64. Others are JSON_DOUBLE. */
struct json {
    enum json_type type;
    uint32_t size; /* string: bytes; array, object: members */
    union {
        bool boolean;
        int64_t i;
        uint64_t u;
        double d;
        const char *string;
        struct json *items;          /* array */
        struct json_member *members; /* object, in document order */
    };
    /* Numbers: the token as written (raw_size bytes), for decimals that must be rounded once. Objects: for json.c alone.
     * Else NULL. */
    const char *raw;
    uint32_t raw_size;
};
struct json_member {
    const char *key;
    uint32_t key_size;
    struct json value;
};

/* `where` names the document in errors ("t2m/zarr.json"). The text need not outlive the call. On failure (HR_EFORMAT;
 * HR_EUNSUPPORTED beyond JSON_MAX_BYTES; HR_ENOMEM) *out is untouched and what was used of the arena stays used. */
int json_parse(struct arena *a, const char *text, size_t n, const char *where, struct json **out,
               struct hr_error *e);

/* The member's value; NULL if it is absent or `object` is no object. */
const struct json *json_get(const struct json *object, const char *key);

/* All take NULL for an absent value. */
bool json_is(const struct json *v, enum json_type t);
bool json_equal(const struct json *v, const char *string); /* v is this string */
const char *json_str(const struct json *v);          /* NULL if not a string, or it holds a NUL */
bool json_int64(const struct json *v, int64_t *out); /* JSON_INT only: neither 4.0 nor "4" */
bool json_number(const struct json *v, double *out); /* INT, UINT or DOUBLE */
const char *json_type_name(const struct json *v);    /* "an object", "null", … for errors */

/* One line into a struct buf: members in document order, numbers as they were written. */
void json_write(const struct json *v, void *buf);

#endif
