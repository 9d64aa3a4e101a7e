/* zarr v2 documents: .zarray with its .zattrs, .zgroup.
 *
 * Tolerant where writers are sloppy and nothing can go wrong: unknown members are ignored (v2 §"Arrays"; zarr-python#2647),
 * `filters` may be [] or null, an empty dimension may have chunks of length 0 (zarr-python#3711). Strict where a guess would
 * give wrong numbers: order, separator, ranks. */
#include <string.h>
#include "format/node.h"

static int check_format(const struct json *doc, const char *where, struct hr_error *e)
{
    const struct json *format;
    int64_t version;
    if (!json_is(doc, JSON_OBJECT))
        return error_set(e, HR_EFORMAT, "%s: the document is %s, an object is expected", where,
                         json_type_name(doc));
    TRY(node_member(doc, "zarr_format", where, &format, e));
    if (!json_int64(format, &version))
        return error_set(e, HR_EFORMAT, "%s: zarr_format is %s, 2 is expected", where,
                         json_type_name(format));
    if (version != 2)
        return error_set(e, HR_EUNSUPPORTED,
                         "%s: zarr_format %lld in a v2 document; only 2 is read there", where,
                         (long long)version);
    return 0;
}

int group_from_v2(const struct json *doc, const char *where, struct hr_error *e)
{
    return check_format(doc, where, e);
}

/* What "|O" holds is said by the object codec, in `filters` or in `compressor`. */
static enum hr_dtype object_kind(const struct json *filters, const struct json *compressor)
{
    for (uint32_t i = 0; json_is(filters, JSON_ARRAY) && i < filters->size; i++)
        if (json_equal(json_get(&filters->items[i], "id"), "vlen-bytes"))
            return HR_BYTES;
    return json_equal(json_get(compressor, "id"), "vlen-bytes") ? HR_BYTES : HR_STRING;
}

static int read_chunks(struct arena *a, const struct json *doc, const char *where, struct array *x,
                       struct array_layout *l, struct hr_error *e)
{
    const struct json *v;
    uint64_t *chunk;
    TRY(node_member(doc, "chunks", where, &v, e));
    TRY(node_lengths(a, v, "chunks", where, &x->ndim, &chunk, e));
    for (int d = 0; d < x->ndim; d++) {
        if (!chunk[d] && x->shape[d])
            return error_set(e, HR_EFORMAT, "%s: chunks: dimension %d has chunks of length 0",
                             where, d);
        if (!chunk[d])
            chunk[d] = 1;
    }
    l->object = chunk;
    return 0;
}

static int read_separator(const struct json *doc, const char *where, char *out, struct hr_error *e)
{
    const struct json *v = json_get(doc, "dimension_separator");
    *out = '.';
    if (!v || json_is(v, JSON_NULL) || json_equal(v, "."))
        return 0;
    if (!json_equal(v, "/"))
        return error_set(e, HR_EFORMAT, "%s: dimension_separator must be \".\" or \"/\"", where);
    *out = '/';
    return 0;
}

static int read_codecs(struct arena *a, const struct json *doc, const char *where, struct array *x,
                       struct array_layout *l, struct hr_error *e)
{
    const struct json *filters = json_get(doc, "filters"),
                      *compressor = json_get(doc, "compressor");
    const struct json *order = json_get(doc, "order");
    struct codec_chain *chain;
    if (order && !json_equal(order, "C") && !json_equal(order, "F"))
        return error_set(e, HR_EFORMAT, "%s: order must be \"C\" or \"F\"", where);
    char o = json_equal(order, "F") ? 'F' : 'C';
    TRY(codec_chain_v2(a, compressor, filters, o, &x->type, x->ndim, l->object, x->fill, where,
                       &chain, e));
    l->object_chain = chain;
    return 0;
}

int array_from_v2(struct arena *a, const struct json *doc, const struct json *zattrs,
                  const char *where, struct array *x, struct hr_error *e)
{
    struct array_layout *l = arena_alloc(a, sizeof *l);
    const struct json *v;
    uint64_t *shape;
    char separator;
    if (!l)
        return error_nomem(e, sizeof *l, "an array");
    x->layout = l;
    x->zarr_format = 2;
    l->owner = x->number;
    l->where = where;
    l->type = &x->type;
    TRY(check_format(doc, where, e));
    TRY(node_member(doc, "shape", where, &v, e));
    int ndim = -1;
    TRY(node_lengths(a, v, "shape", where, &ndim, &shape, e));
    x->shape = shape;
    x->ndim = ndim;
    TRY(node_attributes(zattrs, where, &x->attributes, e));
    TRY(node_array_dimensions(a, x, e));
    TRY(read_chunks(a, doc, where, x, l, e));
    x->chunk = l->object;
    TRY(node_member(doc, "dtype", where, &v, e));
    TRY(dtype_from_v2(a, v, where, &x->type, e));
    if (json_equal(v, "|O")) {
        x->type.kind = object_kind(json_get(doc, "filters"), json_get(doc, "compressor"));
        x->type.name = x->type.kind == HR_BYTES ? "bytes" : "string";
    }
    TRY(node_fill(a, json_get(doc, "fill_value"), where, x, l, e));
    TRY(read_separator(doc, where, &separator, e));
    TRY(layout_keys(a, l, x->path, "", separator, x->ndim, e));
    TRY(read_codecs(a, doc, where, x, l, e));
    return layout_build(a, x, l, e);
}
