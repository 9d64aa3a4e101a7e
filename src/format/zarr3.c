/* zarr v3 documents: zarr.json of arrays and groups (core 3.1).
 *
 * The rule that makes v3 safe to extend is kept: a member, grid, key encoding or transformer this reader does not know is
 * refused by name, unless the document itself says that it need not be understood ("must_understand": false, which is not
 * honoured for data type, grid and key encoding). Consolidated metadata is carved out by the specification
 * (zarr-specs#373); `null` there, as zarr-python 3.0 wrote it, means none (zarrs#287). */
#include <string.h>
#include "format/node.h"

static const char *const array_members[] = {
    "zarr_format",          "node_type",  "shape",  "data_type",  "chunk_grid",
    "chunk_key_encoding",   "fill_value", "codecs", "attributes", "dimension_names",
    "storage_transformers", NULL};
static const char *const group_members[] = {"zarr_format", "node_type", "attributes",
                                            "consolidated_metadata", NULL};

static bool listed(const char *const *names, const char *name)
{
    while (*names && strcmp(*names, name))
        names++;
    return *names != NULL;
}

static int check_members(const struct json *doc, const char *const *known, const char *where,
                         struct hr_error *e)
{
    for (uint32_t i = 0; i < doc->size; i++) {
        const struct json_member *m = &doc->members[i];
        const struct json *understand = json_get(&m->value, "must_understand");
        if (listed(known, m->key) || (json_is(understand, JSON_BOOL) && !understand->boolean))
            continue;
        return error_set(e, HR_EUNSUPPORTED,
                         "%s: member \"%.80s\" is not known, and zarr v3 forbids reading on "
                         "without understanding it",
                         where, m->key);
    }
    return 0;
}

int node_kind_v3(const struct json *doc, const char *where, bool *is_array, struct hr_error *e)
{
    const struct json *format, *type;
    int64_t version;
    if (!json_is(doc, JSON_OBJECT))
        return error_set(e, HR_EFORMAT, "%s: the document is %s, an object is expected", where,
                         json_type_name(doc));
    TRY(node_member(doc, "zarr_format", where, &format, e));
    if (!json_int64(format, &version))
        return error_set(e, HR_EFORMAT, "%s: zarr_format is %s, 3 is expected", where,
                         json_type_name(format));
    if (version != 3)
        return error_set(e, HR_EUNSUPPORTED, "%s: zarr_format %lld is not read (2 and 3 are)",
                         where, (long long)version);
    TRY(node_member(doc, "node_type", where, &type, e));
    *is_array = json_equal(type, "array");
    if (!*is_array && !json_equal(type, "group"))
        return error_set(e, HR_EFORMAT, "%s: node_type must be \"array\" or \"group\"", where);
    return 0;
}

int group_from_v3(const struct json *doc, const char *where, const struct json **consolidated,
                  struct hr_error *e)
{
    const struct json *v = json_get(doc, "consolidated_metadata"), *kind = json_get(v, "kind");
    const struct json *nodes = json_get(v, "metadata");
    *consolidated = NULL;
    TRY(check_members(doc, group_members, where, e));
    if (!v || json_is(v, JSON_NULL))
        return 0;
    if (!json_is(v, JSON_OBJECT))
        return error_set(e, HR_EFORMAT, "%s: consolidated_metadata is %s, an object is expected",
                         where, json_type_name(v));
    if (kind && !json_equal(kind, "inline"))
        return 0; /* another kind: must_understand is false here, so read the nodes one by one */
    if (!json_is(nodes, JSON_OBJECT))
        return error_set(e, HR_EFORMAT,
                         "%s: consolidated_metadata.metadata is %s, an object is expected", where,
                         json_type_name(nodes));
    *consolidated = nodes;
    return 0;
}

static int read_dimension_names(struct arena *a, const struct json *v, const char *where,
                                struct array *x, struct hr_error *e)
{
    if (!v || json_is(v, JSON_NULL))
        return node_array_dimensions(a, x, e);
    if (!json_is(v, JSON_ARRAY) || v->size != (uint32_t)x->ndim)
        return error_set(e, HR_EFORMAT, "%s: dimension_names must list %d names", where, x->ndim);
    const char **dims = arena_array(a, (size_t)x->ndim + 1, sizeof *dims);
    if (!dims)
        return error_nomem(e, (size_t)x->ndim * sizeof *dims, "dimension names");
    bool any = false;
    for (int d = 0; d < x->ndim; d++) {
        dims[d] = json_str(&v->items[d]);
        if (!dims[d] && !json_is(&v->items[d], JSON_NULL))
            return error_set(e, HR_EFORMAT,
                             "%s: dimension_names: entry %d is neither a name nor null", where, d);
        any |= dims[d] != NULL;
    }
    if (any)
        x->dims = dims;
    return 0;
}

static int read_keys(struct arena *a, const struct json *v, const char *where, struct array *x,
                     struct array_layout *l, struct hr_error *e)
{
    const char *name;
    const struct json *c;
    TRY(node_extension(v, "chunk_key_encoding", where, &name, &c, e));
    bool v2 = !strcmp(name, "v2");
    if (!v2 && strcmp(name, "default"))
        return error_set(e, HR_EUNSUPPORTED,
                         "%s: chunk key encoding \"%s\" is not read (default and v2 are)", where,
                         name);
    for (uint32_t i = 0; c && i < c->size; i++)
        if (strcmp(c->members[i].key, "separator"))
            return error_set(e, HR_EUNSUPPORTED,
                             "%s: chunk key encoding with \"%.80s\" is not read", where,
                             c->members[i].key);
    const struct json *separator = json_get(c, "separator");
    if (separator && !json_equal(separator, ".") && !json_equal(separator, "/"))
        return error_set(e, HR_EFORMAT, "%s: the separator of chunk keys must be \".\" or \"/\"",
                         where);
    char s = separator ? separator->string[0] : v2 ? '.' : '/';
    return layout_keys(a, l, x->path, v2 ? "" : "c", s, x->ndim, e);
}

static int read_codecs(struct arena *a, const struct json *doc, const char *where, struct array *x,
                       struct array_layout *l, struct hr_error *e)
{
    struct codec_chain *chain;
    TRY(node_member(doc, "codecs", where, &l->codecs, e));
    if (!json_is(l->codecs, JSON_ARRAY) || !l->codecs->size)
        return error_set(e, HR_EFORMAT, "%s: codecs must be a list of at least one codec", where);
    TRY(codec_chain_v3(a, l->codecs, &x->type, x->ndim, l->object, x->fill, where, &chain, e));
    codec_chain_text_fill(chain, x->fill_text, x->fill_text_size);
    l->object_chain = chain;
    return 0;
}

static int check_transformers(const struct json *v, const char *where, struct hr_error *e)
{
    if (!v || json_is(v, JSON_NULL) || (json_is(v, JSON_ARRAY) && !v->size))
        return 0;
    const struct json *first = json_is(v, JSON_ARRAY) ? &v->items[0] : v;
    const char *name = json_str(json_is(first, JSON_OBJECT) ? json_get(first, "name") : first);
    return error_set(e, HR_EUNSUPPORTED,
                     "%s: storage transformer \"%s\" is not read (none is registered)", where,
                     name ? name : "?");
}

int array_from_v3(struct arena *a, const struct json *doc, const char *where, struct array *x,
                  struct hr_error *e)
{
    struct array_layout *l = arena_alloc(a, sizeof *l);
    const struct json *v;
    uint64_t *shape;
    int ndim = -1;
    if (!l)
        return error_nomem(e, sizeof *l, "an array");
    x->layout = l;
    x->zarr_format = 3;
    l->owner = x->number;
    l->where = where;
    l->type = &x->type;
    TRY(node_member(doc, "shape", where, &v, e));
    TRY(node_lengths(a, v, "shape", where, &ndim, &shape, e));
    x->shape = shape;
    x->ndim = ndim;
    TRY(node_attributes(json_get(doc, "attributes"), where, &x->attributes, e));
    TRY(read_dimension_names(a, json_get(doc, "dimension_names"), where, x, e));
    TRY(node_member(doc, "data_type", where, &v, e));
    TRY(dtype_from_v3(a, v, where, &x->type, e));
    TRY(node_member(doc, "chunk_grid", where, &v, e));
    TRY(grid_from_v3(a, v, where, x, l, e));
    x->chunk = l->object;
    TRY(check_members(doc, array_members, where, e));
    TRY(check_transformers(json_get(doc, "storage_transformers"), where, e));
    TRY(node_member(doc, "fill_value", where, &v, e));
    TRY(node_fill(a, v, where, x, l, e));
    TRY(node_member(doc, "chunk_key_encoding", where, &v, e));
    TRY(read_keys(a, v, where, x, l, e));
    TRY(read_codecs(a, doc, where, x, l, e));
    return layout_build(a, x, l, e);
}
