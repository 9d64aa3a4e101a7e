/* What the items of a chunk are: the zarr data type, in every spelling of v2 and v3, as one small value.
 *
 * Decoding ends in *native-endian* items, C order, packed. `kind` is the public type; items that are not numbers are
 * HR_RAW/HR_UTF32 of item_size bytes. Struct items stay HR_RAW with their field list, so that a field can be addressed
 * as an array of its own. */
#ifndef CODEC_DTYPE_H
#define CODEC_DTYPE_H
#include <stdbool.h>
#include "base/arena.h"
#include "base/json.h"
#include "headrace.h"

struct dtype_field {
    const char *name;
    struct dtype *type;
    uint32_t offset; /* bytes from the start of the packed item */
    uint64_t repeat; /* elements of a sub-array field; 1 otherwise */
};
struct dtype {
    enum hr_dtype kind;
    uint64_t item_size; /* bytes; 0 for HR_STRING, HR_BYTES */
    uint32_t
        swap_size; /* bytes of one swappable word: 2, 4, 8, 16→8 for complex128; 1 where order does not matter */
    bool big_endian;    /* as stored by v2; v3's `bytes` codec overrides */
    char time_unit[4];  /* datetime/timedelta: "s", "ms", "us", "ns", "D", …; "" generic */
    int32_t time_count; /* multiplier of the unit, 1 */
    const char
        *name; /* as numpy prints it, for people: "<f4" → "float32", "S5", "U10", "struct{…}" */
    struct dtype_field *fields; /* structs */
    uint32_t n_fields;
};

/* v2 `dtype` member / v3 `data_type` member. `where` prefixes errors. Unknown names are HR_EUNSUPPORTED, by name. */
int dtype_from_v2(struct arena *a, const struct json *v, const char *where, struct dtype *out,
                  struct hr_error *e);
int dtype_from_v3(struct arena *a, const struct json *v, const char *where, struct dtype *out,
                  struct hr_error *e);
int dtype_from_numpy(struct arena *a, const char *text, const char *where, struct dtype *out,
                     struct hr_error *e);

/* Fill values in every spelling (reference: zarr.md §1, §2) → one native-endian item of item_size bytes at `out`.
 * Strings/bytes (item_size 0): arena text through *text,*text_size. null gives zero, and
 * NaT for times. */
int dtype_fill_v2(struct arena *a, const struct dtype *t, const struct json *v, const char *where,
                  void *out, const char **text, size_t *text_size, struct hr_error *e);
int dtype_fill_v3(struct arena *a, const struct dtype *t, const struct json *v, const char *where,
                  void *out, const char **text, size_t *text_size, struct hr_error *e);

/* Reverse the bytes of every word of `count` items in place, field by field in structs; 1-byte and S fields stay. */
void dtype_swap(const struct dtype *t, void *items, uint64_t count);

/* Stored items → native ones, in place: words whose stored order (`big_endian` of the type, of each field in structs) is
 * not the machine's are reversed, and bool bytes other than 0 and 1 become 1. False from dtype_is_native: nothing to do. */
void dtype_to_native(const struct dtype *t, void *items, uint64_t count);
bool dtype_is_native(const struct dtype *t);
/* A copy of the type with one byte order throughout, as v3's `bytes` codec imposes it. NULL when out of memory. */
struct dtype *dtype_with_order(struct arena *a, const struct dtype *t, bool big_endian);
bool dtype_has_order(const struct dtype *t); /* some word of it is longer than a byte */

/* The public kinds by name: "float32", "bfloat16", also "f4", "<f4", "bf16"; NULL, HR_NONE and 0 when there is none. */
const char *dtype_kind_name(enum hr_dtype kind);
enum hr_dtype dtype_kind_parse(const char *name);
size_t dtype_kind_size(enum hr_dtype kind);

#endif
