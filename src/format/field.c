/* A field of a struct array as an array of its own: the same objects and chunks, seen through an offset and a stride.
 *
 * It shares the layout, so the chunks of all fields are the same chunks to every cache; only type, fill value and the place
 * in the item differ. A sub-array field ("('<f4', (3,))") stays one opaque item, for its axes are no axes of the grid. */
#include <string.h>
#include "format/node.h"

/* Nested names may hold dots and slashes themselves, so every prefix that is a field is tried. */
static bool find_field(const struct dtype *t, const char *rest, uint64_t offset,
                       const struct dtype_field **out, uint64_t *at)
{
    for (uint32_t i = 0; i < t->n_fields; i++) {
        const struct dtype_field *f = &t->fields[i];
        size_t n = strlen(f->name);
        if (strncmp(rest, f->name, n))
            continue;
        *at = offset + f->offset;
        *out = f;
        if (!rest[n])
            return true;
        if ((rest[n] == '.' || rest[n] == '/') && f->repeat == 1 &&
            find_field(f->type, rest + n + 1, *at, out, at))
            return true;
    }
    return false;
}

int field_array(struct arena *a, const struct array *whole, const char *path, const char *rest,
                struct array **out, struct hr_error *e)
{
    const struct dtype_field *f = NULL;
    uint64_t at = 0;
    *out = NULL;
    if (!whole->type.n_fields || !find_field(&whole->type, rest, 0, &f, &at))
        return 0;
    struct array *x = arena_alloc(a, sizeof *x);
    if (!x)
        return error_nomem(e, sizeof *x, "a field");
    *x = *whole;
    x->path = path;
    x->parent = whole->path;
    x->field_offset = (uint32_t)at;
    x->field_stride = whole->type.item_size;
    x->type = *f->type;
    if (f->repeat != 1) {
        x->type.kind = HR_RAW;
        x->type.item_size = f->type->item_size * f->repeat;
        x->type.name = arena_printf(a, "%s×%llu", f->type->name, (unsigned long long)f->repeat);
        x->type.n_fields = 0;
        if (!x->type.name)
            return error_nomem(e, 64, "a field");
    }
    if (whole->fill)
        x->fill = (const char *)whole->fill + at;
    *out = x;
    return 0;
}
