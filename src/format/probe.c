/* What a hierarchy holds where it cannot be listed: names that its own metadata give away.
 *
 * Public archives often lie behind servers without listings, and in buckets that may be read and not listed. A group's
 * attributes name children by their conventions (OME-Zarr, AnnData, xarray), an array names its companions (dimensions, CF
 * attributes), and at the root, where nothing is named, a few usual names are tried. Children are sought like any node; what
 * is but likely costs one request each: as an array of the root's version. Everything is a guess: absence is no error, and
 * the archive stays incomplete. */
#include <string.h>
#include "base/mem.h"
#include "format/round.h"

#define GUESSES_MAX 512

/* ---- two kinds of names ------------------------------------------------------------------------------------------ */

static const char *child_path(struct reader *r, const char *group, const char *name, size_t n)
{
    return arena_printf(&r->nodes.arena, "%s%s%.*s", group, *group ? "/" : "", (int)n, name);
}

static int child(struct reader *r, const struct task *t, const char *name, struct hr_error *e)
{
    const char *path = name ? child_path(r, t->path, name, strlen(name)) : NULL;
    if (!name)
        return 0;
    if (!path)
        return error_nomem(e, strlen(name), "a path");
    return path_is_sound(path) ? reader_push(r, reader_first_phase(r), path, t->depth + 1, true, e)
                               : 0;
}

static bool guessed_before(const struct reader *r, const char *path)
{
    for (size_t i = 0; i < r->n_guesses; i++)
        if (!strcmp(r->guesses[i], path))
            return true;
    return false;
}

static int guess(struct reader *r, const char *group, int depth, const char *name, size_t n,
                 struct hr_error *e)
{
    if (!n || r->n_guesses == GUESSES_MAX)
        return 0;
    const char *path = child_path(r, group, name, n);
    if (!path ||
        mem_grow((void **)&r->guesses, &r->guesses_cap, r->n_guesses + 1, sizeof *r->guesses) < 0)
        return error_nomem(e, n, "a path");
    if (!path_is_sound(path) || nodes_knows(&r->nodes, path) || guessed_before(r, path))
        return 0;
    r->guesses[r->n_guesses++] = path;
    TRY(reader_push(r, reader_first_phase(r), path, depth + 1, true, e));
    r->queue[r->n - 1].guess = true;
    return 0;
}

/* Names in an attribute, separated by spaces. */
static int guess_words(struct reader *r, const char *group, int depth, const struct json *words,
                       struct hr_error *e)
{
    for (const char *p = json_str(words); p && *p;) {
        size_t n = strcspn(p, " ");
        TRY(guess(r, group, depth, p, n, e));
        p += n + (p[n] != 0);
    }
    return 0;
}

/* ---- OME-Zarr: 0.4 at the top of the attributes, 0.5 under "ome" -------------------------------------------------- */

static int paths_of(struct reader *r, const struct task *t, const struct json *list,
                    const char *member, struct hr_error *e)
{
    for (uint32_t i = json_is(list, JSON_ARRAY) ? list->size : 0; i > 0; i--)
        TRY(child(r, t, json_str(json_get(&list->items[i - 1], member)), e));
    return 0;
}

static int ome_children(struct reader *r, const struct task *t, const struct json *attributes,
                        struct hr_error *e)
{
    const struct json *ome = json_get(attributes, "ome") ? json_get(attributes, "ome") : attributes;
    const struct json *scales = json_get(ome, "multiscales"), *labels = json_get(ome, "labels");
    for (uint32_t i = 0; json_is(labels, JSON_ARRAY) && i < labels->size; i++)
        TRY(child(r, t, json_str(&labels->items[i]), e));
    TRY(paths_of(r, t, json_get(json_get(ome, "plate"), "wells"), "path", e));
    TRY(paths_of(r, t, json_get(json_get(ome, "well"), "images"), "path", e));
    if (json_get(ome, "bioformats2raw.layout"))
        TRY(child(r, t, "0", e));
    if (!json_is(scales, JSON_ARRAY))
        return 0;
    TRY(child(r, t, "labels", e));
    for (uint32_t i = 0; i < scales->size; i++)
        TRY(paths_of(r, t, json_get(&scales->items[i], "datasets"), "path", e));
    return 0;
}

/* ---- AnnData: groups say what they are in "encoding-type" --------------------------------------------------------- */

static int anndata_children(struct reader *r, const struct task *t, const struct json *attributes,
                            struct hr_error *e)
{
    static const struct {
        const char *type, *names[10];
    } kinds[] = {
        {"anndata", {"X", "obs", "var", "layers", "obsm", "varm", "obsp", "varp", "uns", "raw"}},
        {"csr_matrix", {"data", "indices", "indptr"}},
        {"csc_matrix", {"data", "indices", "indptr"}},
        {"categorical", {"codes", "categories"}},
        {"nullable-integer", {"values", "mask"}},
        {"nullable-boolean", {"values", "mask"}},
    };
    const struct json *type = json_get(attributes, "encoding-type");
    const struct json *columns = json_get(attributes, "column-order");
    for (size_t k = 0; type && k < sizeof kinds / sizeof *kinds; k++)
        for (size_t i = 0; json_equal(type, kinds[k].type) && i < 10 && kinds[k].names[i]; i++)
            TRY(child(r, t, kinds[k].names[i], e));
    if (!json_equal(type, "dataframe"))
        return 0;
    for (uint32_t i = 0; json_is(columns, JSON_ARRAY) && i < columns->size; i++)
        TRY(child(r, t, json_str(&columns->items[i]), e));
    return child(r, t, json_str(json_get(attributes, "_index")), e);
}

/* ---- arrays ------------------------------------------------------------------------------------------------------- */

int probe_companions(struct reader *r, const struct array *x, int depth, struct hr_error *e)
{
    static const char *const attributes[] = {"coordinates", "bounds", "grid_mapping",
                                             "ancillary_variables"};
    const char *slash = strrchr(x->path, '/');
    const char *group =
        slash ? arena_strndup(&r->nodes.arena, x->path, (size_t)(slash - x->path)) : "";
    if (!group)
        return error_nomem(e, strlen(x->path), "a path");
    for (int d = 0; x->dims && d < x->ndim; d++)
        if (x->dims[d])
            TRY(guess(r, group, depth, x->dims[d], strlen(x->dims[d]), e));
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        TRY(guess_words(r, group, depth, json_get(x->attributes, attributes[i]), e));
    return 0;
}

/* ---- a group ------------------------------------------------------------------------------------------------------ */

/* Coordinates and the names that most often stand beside them. */
static int usual_names(struct reader *r, const struct task *t, struct hr_error *e)
{
    static const char *const names[] = {"time",  "latitude", "longitude", "lat",   "lon",
                                        "level", "x",        "y",         "z",     "0",
                                        "X",     "data",     "image",     "values"};
    for (size_t i = sizeof names / sizeof *names; i > 0; i--)
        TRY(guess(r, t->path, t->depth, names[i - 1], strlen(names[i - 1]), e));
    return 0;
}

int probe_children(struct reader *r, const struct task *t, struct hr_error *e)
{
    const struct group *g = nodes_group(&r->nodes, t->path);
    size_t known = r->nodes.n_arrays, before = r->n + r->n_guesses;
    if (!g)
        return 0;
    TRY(ome_children(r, t, g->attributes, e));
    TRY(anndata_children(r, t, g->attributes, e));
    TRY(guess_words(r, t->path, t->depth, json_get(g->attributes, "coordinates"), e));
    if (*t->path)
        return 0;
    for (size_t i = 0; i < known; i++) /* what was asked for by name so far */
        TRY(probe_companions(r, r->nodes.arrays[i], t->depth, e));
    return known || r->n + r->n_guesses > before ? 0 : usual_names(r, t, e);
}
