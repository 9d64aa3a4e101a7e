/* Consolidated metadata: every document of a hierarchy in one, so that opening is one request.
 *
 * v2's .zmetadata is a flat map from document keys ("a/b/.zarray") to documents; v3 inlines whole nodes by relative path in
 * the root's zarr.json. Members may come in any order (zarr-python#4227), so v2's are sorted once and the pieces of a
 * node found by bisection: hierarchies of 10^5 arrays exist. */
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "format/nodes.h"

/* The path of a node as a key of the document gives it; unsound ones become broken nodes under their own name. */
static int node_path(struct nodes *n, const char *key, size_t size, const char **path, bool *sound,
                     struct hr_error *e)
{
    while (size && key[0] == '/') {
        key++;
        size--;
    }
    while (size && key[size - 1] == '/')
        size--;
    *path = arena_strndup(&n->arena, key, size);
    if (!*path)
        return error_nomem(e, size, "a path");
    *sound = path_is_sound(*path) && strlen(*path) == size;
    if (*sound)
        return 0;
    struct hr_error why;
    int rc = error_set(&why, HR_EFORMAT,
                       "consolidated metadata: \"%.200s\" is no path within the archive", *path);
    return nodes_add_broken(n, *path, rc, &why, e);
}

static int add_all_v3(struct nodes *n, const struct json *metadata, struct hr_error *e)
{
    for (uint32_t i = 0; i < metadata->size; i++) {
        const struct json_member *m = &metadata->members[i];
        const char *path;
        bool sound;
        TRY(node_path(n, m->key, m->key_size, &path, &sound, e));
        if (!sound)
            continue;
        const char *where = arena_printf(&n->arena, "%s (consolidated in zarr.json)", path);
        if (!where)
            return error_nomem(e, strlen(path), "a path");
        TRY(nodes_add_v3(n, path, &m->value, where, NULL, e));
    }
    return 0;
}

int nodes_consolidated_v3(struct nodes *n, const struct json *metadata, struct hr_error *e)
{
    n->consolidated = "zarr.json";
    int rc = add_all_v3(n, metadata, e);
    n->consolidated = NULL;
    return rc;
}

static int compare_members(const void *a, const void *b)
{
    const struct json_member *const *x = a, *const *y = b;
    return strcmp((*x)->key, (*y)->key);
}

static int compare_key(const void *key, const void *member)
{
    const struct json_member *const *m = member;
    return strcmp(key, (*m)->key);
}

struct sorted {
    const struct json_member **members;
    size_t n;
};

static const struct json *find_document(const struct sorted *s, const char *key)
{
    const struct json_member **m = bsearch(key, s->members, s->n, sizeof *s->members, compare_key);
    return m ? &(*m)->value : NULL;
}

/* The key's part before "/.zarray" (or the whole of ".zarray", the root); false if it is another document. */
static bool split_key(const struct json_member *m, const char *name, size_t *stem)
{
    size_t n = strlen(name);
    if (m->key_size < n || strcmp(m->key + m->key_size - n, name))
        return false;
    *stem = m->key_size - n;
    if (*stem && m->key[*stem - 1] != '/')
        return false;
    return true;
}

static int add_v2(struct nodes *n, const struct sorted *s, const struct json_member *m, size_t stem,
                  bool is_array, struct hr_error *e)
{
    const char *path;
    bool sound;
    TRY(node_path(n, m->key, stem, &path, &sound, e));
    const char *attributes = arena_printf(&n->arena, "%.*s.zattrs", (int)stem, m->key);
    const char *where = arena_printf(&n->arena, "%s (in .zmetadata)", m->key);
    if (!attributes || !where)
        return error_nomem(e, m->key_size, "a path");
    if (!sound)
        return 0;
    const struct json *zattrs = find_document(s, attributes);
    return (is_array ? nodes_add_array_v2 : nodes_add_group_v2)(n, path, &m->value, zattrs, where,
                                                                e);
}

static int add_all_v2(struct nodes *n, const struct json *metadata, const struct sorted *s,
                      struct hr_error *e)
{
    for (uint32_t i = 0; i < metadata->size; i++) {
        const struct json_member *m = &metadata->members[i];
        size_t stem;
        if (split_key(m, ".zarray", &stem))
            TRY(add_v2(n, s, m, stem, true, e));
        else if (split_key(m, ".zgroup", &stem))
            TRY(add_v2(n, s, m, stem, false, e));
    }
    return nodes_add_group_v2(n, "", NULL, find_document(s, ".zattrs"), ".zmetadata", e);
}

int nodes_consolidated_v2(struct nodes *n, const struct json *doc, const char *where,
                          struct hr_error *e)
{
    const struct json *metadata = json_get(doc, "metadata"),
                      *format = json_get(doc, "zarr_consolidated_format");
    int64_t version;
    if (!json_is(metadata, JSON_OBJECT))
        return error_set(e, HR_EFORMAT, "%s: member \"metadata\" is %s, an object is expected",
                         where, json_type_name(metadata));
    if (format && (!json_int64(format, &version) || version != 1))
        return error_set(e, HR_EUNSUPPORTED, "%s: only zarr_consolidated_format 1 is read", where);
    struct sorted s = {.n = metadata->size,
                       .members = mem_array(metadata->size, sizeof *s.members)};
    if (!s.members)
        return error_nomem(e, metadata->size * sizeof *s.members, where);
    for (size_t i = 0; i < s.n; i++)
        s.members[i] = &metadata->members[i];
    qsort(s.members, s.n, sizeof *s.members, compare_members);
    n->consolidated = ".zmetadata";
    int rc = add_all_v2(n, metadata, &s, e);
    n->consolidated = NULL;
    mem_free(s.members);
    return rc;
}
