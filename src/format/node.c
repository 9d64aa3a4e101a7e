/* What v2 and v3 documents have in common: lists of lengths, attributes, dimension names, fill values.
 *
 * Every message names the document and the member, and what was found in place of what was expected: metadata is written
 * by a dozen libraries, and the reader of the message is seldom its author. */
#include "format/node.h"
#include <string.h>
#include "base/mem.h"

int node_member(const struct json *doc, const char *key, const char *where, const struct json **out,
                struct hr_error *e)
{
    *out = json_get(doc, key);
    if (!*out)
        return error_set(e, HR_EFORMAT, "%s: member \"%s\" is missing", where, key);
    return 0;
}

int node_lengths(struct arena *a, const struct json *v, const char *key, const char *where,
                 int *ndim, uint64_t **out, struct hr_error *e)
{
    if (!json_is(v, JSON_ARRAY))
        return error_set(e, HR_EFORMAT, "%s: %s is %s, a list of integers is expected", where, key,
                         json_type_name(v));
    if (v->size > HR_MAX_DIMS)
        return error_set(e, HR_EUNSUPPORTED, "%s: %s has %u dimensions; at most %d are read", where,
                         key, v->size, HR_MAX_DIMS);
    if (*ndim >= 0 && v->size != (uint32_t)*ndim)
        return error_set(e, HR_EFORMAT, "%s: %s has %u entries, the shape has %d", where, key,
                         v->size, *ndim);
    uint64_t *n = arena_array(a, (size_t)v->size + 1, sizeof *n);
    if (!n)
        return error_nomem(e, v->size * sizeof *n, key);
    for (uint32_t d = 0; d < v->size; d++) {
        int64_t length;
        if (!json_int64(&v->items[d], &length) || length < 0)
            return error_set(e, HR_EFORMAT, "%s: entry %u of %s is not an integer ≥ 0 below 2^63",
                             where, d, key);
        n[d] = (uint64_t)length;
    }
    *ndim = (int)v->size;
    *out = n;
    return 0;
}

int node_attributes(const struct json *v, const char *where, const struct json **out,
                    struct hr_error *e)
{
    *out = NULL;
    if (!v || json_is(v, JSON_NULL))
        return 0;
    if (!json_is(v, JSON_OBJECT))
        return error_set(e, HR_EFORMAT, "%s: attributes are %s, an object is expected", where,
                         json_type_name(v));
    *out = v;
    return 0;
}

int node_array_dimensions(struct arena *a, struct array *x, struct hr_error *e)
{
    const struct json *v = json_get(x->attributes, "_ARRAY_DIMENSIONS");
    if (!json_is(v, JSON_ARRAY) || v->size != (uint32_t)x->ndim)
        return 0;
    for (uint32_t d = 0; d < v->size; d++)
        if (!json_str(&v->items[d]))
            return 0;
    const char **dims = arena_array(a, (size_t)v->size + 1, sizeof *dims);
    if (!dims)
        return error_nomem(e, v->size * sizeof *dims, "dimension names");
    for (uint32_t d = 0; d < v->size; d++)
        dims[d] = json_str(&v->items[d]);
    x->dims = dims;
    return 0;
}

int node_fill(struct arena *a, const struct json *v, const char *where, struct array *x,
              struct array_layout *l, struct hr_error *e)
{
    void *fill = arena_alloc(a, x->type.item_size + 1);
    if (!fill)
        return error_nomem(e, x->type.item_size, "a fill value");
    x->fill_text = "";
    x->fill_null = !v || json_is(v, JSON_NULL);
    int rc = (x->zarr_format == 2 ? dtype_fill_v2 : dtype_fill_v3)(
        a, &x->type, v, where, fill, &x->fill_text, &x->fill_text_size, e);
    x->fill = l->fill = fill;
    l->fill_json = v;
    return rc;
}

int node_extension(const struct json *v, const char *key, const char *where, const char **name,
                   const struct json **configuration, struct hr_error *e)
{
    *configuration = NULL;
    *name = json_is(v, JSON_OBJECT) ? json_str(json_get(v, "name")) : json_str(v);
    if (!*name)
        return error_set(e, HR_EFORMAT, "%s: %s is %s without a name", where, key,
                         json_type_name(v));
    const struct json *c = json_get(v, "configuration");
    if (c && !json_is(c, JSON_NULL) && !json_is(c, JSON_OBJECT))
        return error_set(e, HR_EFORMAT, "%s: the configuration of %s is %s, an object is expected",
                         where, key, json_type_name(c));
    *configuration = json_is(c, JSON_OBJECT) ? c : NULL;
    return 0;
}

bool path_is_sound(const char *path)
{
    if (!*path)
        return true;
    for (const char *s = path;; s++) {
        size_t n = strcspn(s, "/");
        if (!n || (n == 1 && s[0] == '.') || (n == 2 && s[0] == '.' && s[1] == '.'))
            return false;
        s += n;
        if (!*s)
            return true;
    }
}
