/* The search for one path: the node itself, then a struct array of which it names a field, then words of help.
 *
 * Every stage may need documents, so the search is a small state machine that pushes tasks and is asked again when they
 * are done. A path that consolidated metadata does not list is still sought under its own name, for such metadata may be
 * stale (pydata/xarray#5878); prefixes of it are not. */
#include <stdio.h>
#include <string.h>
#include "format/scdl_round.h"

static void offer_known(struct reader *r)
{
    for (size_t i = 0; i < r->nodes.n_arrays; i++)
        near_offer(&r->want.near, r->nodes.arrays[i]->path);
}

static void list_first(const struct reader *r, const char *prefix, struct buf *out)
{
    size_t n = strlen(prefix), shown = 0;
    for (size_t i = 0; i < r->nodes.n_arrays; i++) {
        const char *path = r->nodes.arrays[i]->path;
        if (n && (strncmp(path, prefix, n) || path[n] != '/'))
            continue;
        if (shown == NEAR_MAX) {
            buf_puts(out, ", …");
            break;
        }
        buf_printf(out, "%s\"%.80s\"", shown++ ? ", " : "", path);
    }
}

static bool is_sparse(const struct reader *r, const char *path)
{
    char indptr[256];
    int n = snprintf(indptr, sizeof indptr, "%s/indptr", path);
    return *path && n > 0 && (size_t)n < sizeof indptr && nodes_array(&r->nodes, indptr);
}

static int want_error(struct reader *r, struct hr_error *e)
{
    const char *path = r->want.path;
    struct buf names;
    int rc;
    buf_init(&names);
    if (nodes_group(&r->nodes, path)) {
        list_first(r, path, &names);
        if (is_sparse(r, path))
            rc = error_set(e, HR_ENOENT,
                           "\"%.200s\" is a sparse matrix, whose rows are samples of cells "
                           "(archive.cells() in Python); arrays in it: %s",
                           path, names.data);
        else if (names.size)
            rc = error_set(e, HR_ENOENT, "%s%.200s%s is a group, not an array; arrays in it: %s",
                           *path ? "\"" : "", *path ? path : "the root", *path ? "\"" : "",
                           names.data);
        else
            rc = error_set(e, HR_ENOENT, "%s%.200s%s is a group, not an array", *path ? "\"" : "",
                           *path ? path : "the root", *path ? "\"" : "");
        goto out;
    }
    offer_known(r);
    near_text(&r->want.near, &names);
    if (names.size) {
        rc = error_set(e, HR_ENOENT, "no array \"%.200s\"; did you mean %s?", path, names.data);
        goto out;
    }
    near_others(&r->want.near, &names);
    if (nodes_array(&r->nodes, ""))
        rc = error_set(e, HR_ENOENT, "no array \"%.200s\": this is one array, at the root", path);
    else if (names.size)
        rc = error_set(e, HR_ENOENT, "no array \"%.200s\"; there are %s", path, names.data);
    else
        rc = error_set(e, HR_ENOENT, "no array \"%.200s\"%s", path,
                       r->cannot_list ? "; this store cannot list what there is" : "");
out:
    buf_dispose(&names);
    return rc;
}

/* Try path[0 … split) as the struct array of which the rest is a field. 1: it is. */
static int try_field(struct reader *r, const struct array *whole, struct hr_error *e)
{
    struct array *field;
    const char *rest = r->want.path + r->want.split + (r->want.split != 0);
    TRY(field_array(&r->nodes.arena, whole, r->want.path, rest, &field, e));
    if (!field)
        return 0;
    TRY(nodes_add_array(&r->nodes, field, e));
    return 1;
}

/* The next shorter prefix that ends before a '.' or '/', at last the root (a struct array there: "field"). */
static bool shorten(struct want *w)
{
    if (!w->split)
        return false;
    do
        w->split--;
    while (w->split && w->path[w->split] != '/' && w->path[w->split] != '.');
    w->probed = false;
    return true;
}

static int want_parents(struct reader *r, struct hr_error *e)
{
    struct want *w = &r->want;
    do {
        const char *parent = arena_strndup(&r->nodes.arena, w->path, w->split);
        if (!parent)
            return error_nomem(e, w->split, "a path");
        const struct array *whole = nodes_array(&r->nodes, parent);
        if (whole) {
            int rc = try_field(r, whole, e);
            if (rc)
                return rc;
        } else if (!w->probed && !reader_closed(r) && !nodes_knows(&r->nodes, parent) &&
                   path_is_sound(parent)) {
            w->probed = true;
            return reader_push(r, reader_first_phase(r), parent, 0, false, e);
        }
    } while (shorten(w));
    w->stage = WANT_NAMES;
    return 0;
}

static int want_names(struct reader *r, struct hr_error *e)
{
    struct want *w = &r->want;
    const char *slash = strrchr(w->path, '/');
    bool list = !reader_closed(r) && !r->cannot_list;
    enum stage now = w->stage++;
    if (!list || (now == WANT_ROOT_NAMES && !slash))
        return 0;
    const char *folder = now == WANT_NAMES && slash
                             ? arena_strndup(&r->nodes.arena, w->path, (size_t)(slash - w->path))
                             : "";
    if (!folder)
        return error_nomem(e, strlen(w->path), "a path");
    if (now == WANT_NAMES && !slash)
        w->stage = WANT_FAILED;
    return reader_push(r, LIST_NAMES, folder, 0, false, e);
}

int want_next(struct reader *r, struct hr_error *e)
{
    switch (r->want.stage) {
    case WANT_NODE:
        if (nodes_array(&r->nodes, r->want.path))
            return 1;
        if (r->want.brief)
            return 1;
        if (nodes_group(&r->nodes, r->want.path))
            return want_error(r, e);
        r->want.stage = WANT_PARENTS;
        r->want.split = strlen(r->want.path);
        return shorten(&r->want) ? want_parents(r, e) : want_error(r, e);
    case WANT_PARENTS:
        return want_parents(r, e);
    case WANT_NAMES:
    case WANT_ROOT_NAMES:
        return want_names(r, e);
    default:
        return want_error(r, e);
    }
}

/* path[0 … n) for as long as the archive is open: nothing new where the array is known, since one may be asked for again and
 * again. */
static const char *keep_path(struct reader *r, const char *path, size_t n)
{
    char text[512];
    const struct array *known = NULL;
    if (n < sizeof text) {
        memcpy(text, path, n);
        text[n] = 0;
        known = nodes_array(&r->nodes, text);
    }
    return known ? known->path : arena_strndup(&r->nodes.arena, path, n);
}

/* Begin the search for `path`, copied and stripped. The caller pushes the first task if it is unknown. */
static int begin(struct reader *r, const char *path, bool brief, struct hr_error *e)
{
    reader_forget_round(r);
    if (!r->ready)
        return error_set(e, HR_EINTERNAL, "the root of the archive has not been read");
    while (*path == '/')
        path++;
    size_t n = strlen(path);
    while (n && path[n - 1] == '/')
        n--;
    const char *copy = keep_path(r, path, n);
    if (!copy)
        return error_nomem(e, n, "a path");
    r->want = (struct want){.stage = WANT_NODE, .path = copy, .brief = brief};
    near_init(&r->want.near, copy);
    return 0;
}

int reader_want(struct reader *r, const char *path, struct hr_error *e)
{
    TRY(begin(r, path, false, e));
    path = r->want.path;
    if (nodes_knows(&r->nodes, path))
        return 0;
    if (r->scdl)
        return scdl_want(r, path, true, e);
    if (!path_is_sound(path)) {
        reader_forget_round(r);
        return error_set(e, HR_ENOENT, "no array \"%.200s\": that is no path within the archive",
                         path);
    }
    return reader_push(r, reader_first_phase(r), path, 0, false, e);
}

int reader_try(struct reader *r, const char *path, struct hr_error *e)
{
    TRY(begin(r, path, true, e));
    path = r->want.path;
    if (r->scdl && !nodes_knows(&r->nodes, path))
        return scdl_want(r, path, false, e);
    if (r->consolidated || nodes_knows(&r->nodes, path) || !path_is_sound(path))
        return 0;
    return reader_push(r, reader_first_phase(r), path, 0, false, e);
}
