/* See joined.h. */
#include "api/joined.h"
#include <stdio.h>
#include <string.h>
#include "api/joined_in.h"
#include "base/buf.h"
#include "base/mem.h"
#include "store/members.h"

/* ---- life ------------------------------------------------------------------------------------------------------- */

void joined_free(struct joined *j)
{
    if (!j)
        return;
    for (int k = 0; k < j->n; k++)
        hr_archive_unref(j->members[k]);
    mem_free(j->arrays);
    mem_free(j->groups);
    mem_free((void *)j->checked);
    store_unref(j->store);
    pthread_mutex_destroy(&j->lock);
    arena_dispose(&j->arena);
    mem_free(j);
}

struct store *joined_store(const struct joined *j)
{
    return j->store;
}

/* "3 archives along time (a.zarr … c.zarr)" */
static int open_store(struct joined *j, struct hr_error *e)
{
    struct store **of = mem_array((size_t)j->n, sizeof *of);
    char url[400];
    if (!of)
        return error_nomem(e, (size_t)j->n * sizeof *of, "the stores of archives");
    for (int k = 0; k < j->n; k++)
        of[k] = archive_store(j->members[k]);
    snprintf(url, sizeof url, "%d archives%s%s (%.120s%s%.120s)", j->n, j->along ? " along " : "",
             j->along ? j->along : "", archive_url(j->members[0]),
             j->n > 2   ? " … "
             : j->n > 1 ? ", "
                        : "",
             j->n > 1 ? archive_url(j->members[j->n - 1]) : "");
    int rc = store_members_open(of, j->n, url, &j->store, e);
    mem_free(of);
    return rc;
}

static int check_name(const char *const *names, int k, struct hr_error *e)
{
    const char *s = names[k];
    if (!s || !*s || strchr(s, '/') || !strcmp(s, ".") || !strcmp(s, ".."))
        return error_set(e, HR_EINVAL,
                         "combine: \"%.80s\" is no name: it comes before a slash in the paths of "
                         "the archive's arrays",
                         s ? s : "");
    for (int i = 0; i < k; i++)
        if (!strcmp(names[i], s))
            return error_set(e, HR_EINVAL, "combine: two archives are called %s", s);
    return 0;
}

static int take_members(struct joined *j, struct hr_archive *const *members,
                        const char *const *names, int n, const char *along, struct hr_error *e)
{
    j->members = arena_array(&j->arena, (size_t)n, sizeof *j->members);
    j->names = arena_array(&j->arena, (size_t)n, sizeof *j->names);
    j->along = along ? arena_strdup(&j->arena, along) : NULL;
    if (!j->members || !j->names || (along && !j->along))
        return error_nomem(e, (size_t)n * sizeof *j->members, "archives");
    for (int k = 0; k < n; k++) {
        if (!members[k])
            return error_set(e, HR_EINVAL, "archive %d of %d is none", k, n);
        TRY(archive_check(members[k], e));
        if (!along)
            TRY(check_name(names, k, e));
        j->names[k] = along ? archive_url(members[k]) : arena_strdup(&j->arena, names[k]);
        if (!j->names[k])
            return error_nomem(e, 64, "archives");
        j->members[j->n++] = hr_archive_ref(members[k]);
    }
    return open_store(j, e);
}

int joined_new(struct hr_archive *const *members, const char *const *names, int n,
               const char *along, struct joined **out, struct hr_error *e)
{
    if (n < 1 || n > STORE_MEMBERS_MOST)
        return error_set(e, HR_EINVAL, "%d archives: between 1 and %d can be read as one", n,
                         STORE_MEMBERS_MOST);
    struct joined *j = mem_zalloc(sizeof *j);
    if (!j)
        return error_nomem(e, sizeof *j, "archives");
    arena_init(&j->arena);
    pthread_mutex_init(&j->lock, NULL);
    int rc = take_members(j, members, names, n, along, e);
    if (rc < 0) {
        joined_free(j);
        return rc;
    }
    *out = j;
    return 0;
}

/* ---- arrays ----------------------------------------------------------------------------------------------------- */

/* A copy of an array of member k, as part of this archive. */
static int take(struct joined *j, int k, const struct array *x, struct array **out,
                struct hr_error *e)
{
    char prefix[STORE_MEMBER_PREFIX];
    store_member_prefix(k, prefix);
    TRY(array_move(&j->arena, x, prefix, &j->owners, out, e));
    if (x->problem && !archive_joined(j->members[k])) {
        (*out)->problem = arena_printf(&j->arena, "%s: %s", archive_url(j->members[k]), x->problem);
        if (!(*out)->problem)
            return error_nomem(e, 64, "an array");
    }
    return 0;
}

static int rename_array(struct joined *j, struct array *x, const char *path, struct hr_error *e)
{
    if (!(x->path = arena_strdup(&j->arena, path)))
        return error_nomem(e, strlen(path), "an array");
    return 0;
}

static int dimension(const struct array *x, const char *name)
{
    char room[ARRAY_DIM_NAME];
    int found = -1;
    for (int d = 0; d < x->ndim; d++)
        if (!strcmp(array_dim_name(x, d, room), name))
            found = found < 0 ? d : x->ndim;
    return found;
}

/* What all members must have alike, where it does not follow the dimension. Those that lack it say nothing. */
static int check_constant(struct joined *j, const struct array *x, struct hr_error *e)
{
    for (int k = 1; k < j->n; k++) {
        const struct array *y;
        TRY(archive_seek(j->members[k], x->path, &y, e));
        if (!y || y->problem)
            continue;
        bool same = array_same_type(x, y) && x->ndim == y->ndim;
        for (int d = 0; same && d < x->ndim; d++)
            same = x->shape[d] == y->shape[d];
        if (!same)
            return error_set(
                e, HR_EINVAL,
                "array %s has no dimension %s and is taken from the first archive, but "
                "its type or shape differs between %s and %s",
                x->path, j->along, j->names[0], j->names[k]);
    }
    return 0;
}

/* The array of member k that belongs to the first one's, as part of this archive. */
static int take_like(struct joined *j, int k, const struct array *first, const struct array **out,
                     struct hr_error *e)
{
    const struct array *x = NULL;
    struct array *moved = NULL;
    TRY(archive_seek(j->members[k], first->path, &x, e));
    if (!x)
        return error_set(e, HR_ENOENT, "array %s is in %s but not in %s", first->path, j->names[0],
                         j->names[k]);
    TRY(take(j, k, x, &moved, e));
    *out = moved;
    return 0;
}

/* `mine`: the first one's array as part of this archive. */
static int concat_members(struct joined *j, const struct array *first, const struct array *mine,
                          int dim, struct array **out, struct hr_error *e)
{
    const struct array **of = mem_array((size_t)j->n, sizeof *of);
    if (!of)
        return error_nomem(e, (size_t)j->n * sizeof *of, "the members of an array");
    int rc = 0;
    of[0] = mine;
    for (int k = 1; k < j->n && rc >= 0; k++)
        rc = take_like(j, k, first, &of[k], e);
    if (rc >= 0)
        rc = array_concat(&j->arena, of, j->names, j->n, dim, out, e);
    mem_free(of);
    return rc;
}

/* What cannot be joined is an array with a problem, as one that cannot be read is. */
static int with_problem(struct joined *j, struct array *x, int rc, const struct hr_error *why,
                        struct hr_error *e)
{
    bool lasting = rc == HR_EINVAL || rc == HR_ENOENT || rc == HR_EFORMAT || rc == HR_EUNSUPPORTED;
    if (!lasting || why->retryable) {
        if (e)
            *e = *why;
        return rc;
    }
    x->problem = arena_strdup(&j->arena, why->text);
    x->problem_code = rc;
    return x->problem ? 0 : error_nomem(e, sizeof why->text, "an array");
}

static int make_concat(struct joined *j, const struct array *first, struct array **out,
                       struct hr_error *e)
{
    struct hr_error why = {0};
    int rc = 0, dim = first->problem ? -1 : dimension(first, j->along);
    TRY(take(j, 0, first, out, e));
    if (first->problem)
        return 0;
    if (dim == first->ndim && dim)
        rc = error_set(&why, HR_EUNSUPPORTED, "array %s has dimension %s twice", first->path,
                       j->along);
    else if (dim < 0)
        rc = check_constant(j, first, &why);
    else
        rc = concat_members(j, first, *out, dim, out, &why);
    return rc < 0 ? with_problem(j, *out, rc, &why, e) : 0;
}

static int keep_array(struct joined *j, struct array *x, const struct array **out,
                      struct hr_error *e)
{
    if (mem_grow((void **)&j->arrays, &j->arrays_cap, (size_t)j->n_arrays + 1, sizeof *j->arrays) <
        0)
        return error_nomem(e, (size_t)j->n_arrays * sizeof *j->arrays, "the list of arrays");
    x->number = j->n_arrays;
    j->arrays[j->n_arrays++] = x;
    *out = x;
    return 0;
}

static const struct array *known(const struct joined *j, const char *path)
{
    for (int i = 0; i < j->n_arrays; i++)
        if (!strcmp(j->arrays[i]->path, path))
            return j->arrays[i];
    return NULL;
}

/* The member a path leads into, and the rest of it; -1. */
static int member_named(const struct joined *j, const char *path, const char **rest)
{
    size_t n = strcspn(path, "/");
    *rest = path[n] ? path + n + 1 : path + n;
    for (int k = 0; k < j->n; k++)
        if (strlen(j->names[k]) == n && !strncmp(j->names[k], path, n))
            return k;
    return -1;
}

static int no_such_name(const struct joined *j, const char *path, struct hr_error *e)
{
    struct buf names;
    buf_init(&names);
    for (int k = 0; k < j->n && names.size < 300; k++)
        buf_printf(&names, "%s%s", k ? ", " : "", j->names[k]);
    int rc = error_set(e, HR_ENOENT,
                       "no array %.100s: paths begin with the name of one of the archives (%.300s)",
                       path, names.data ? names.data : "");
    buf_dispose(&names);
    return rc;
}

static int find_combined(struct joined *j, const char *path, bool must, const struct array **out,
                         struct hr_error *e)
{
    const char *rest;
    const struct array *x = NULL;
    struct array *mine = NULL;
    int k = member_named(j, path, &rest);
    if (k < 0)
        return must ? no_such_name(j, path, e) : 0;
    TRY((must ? archive_look_up : archive_seek)(j->members[k], rest, &x, e));
    if (!x)
        return 0;
    TRY(take(j, k, x, &mine, e));
    TRY(rename_array(j, mine, path, e));
    return keep_array(j, mine, out, e);
}

static int find_concat(struct joined *j, const char *path, bool must, const struct array **out,
                       struct hr_error *e)
{
    const struct array *first = NULL;
    struct array *mine = NULL;
    TRY((must ? archive_look_up : archive_seek)(j->members[0], path, &first, e));
    if (!first)
        return 0;
    TRY(make_concat(j, first, &mine, e));
    return keep_array(j, mine, out, e);
}

int joined_find(struct joined *j, const char *path, bool must, const struct array **out,
                struct hr_error *e)
{
    *out = known(j, path);
    if (*out)
        return 0;
    return j->along ? find_concat(j, path, must, out, e) : find_combined(j, path, must, out, e);
}

/* ---- the whole -------------------------------------------------------------------------------------------------- */

struct walk {
    struct joined *j;
    const char *name; /* of a member under a name; NULL: its paths are those of the whole */
    struct buf paths; /* of the arrays met, NUL-terminated */
    bool format_mixed;
    struct archive_contents *out;
};

static int note_group(struct joined *j, const char *path, const struct group *g, struct hr_error *e)
{
    for (int i = 0; i < j->n_groups; i++)
        if (!strcmp(j->groups[i].path, path))
            return 0;
    if (mem_grow((void **)&j->groups, &j->groups_cap, (size_t)j->n_groups + 1, sizeof *j->groups) <
        0)
        return error_nomem(e, (size_t)j->n_groups * sizeof *j->groups, "the list of groups");
    struct group mine = g ? *g : (struct group){0};
    if (!(mine.path = arena_strdup(&j->arena, path)))
        return error_nomem(e, strlen(path), "a path");
    j->groups[j->n_groups++] = mine;
    return 0;
}

/* "era5" + "t2m" */
static const char *full_path(struct walk *w, const char *path)
{
    if (!w->name)
        return path;
    return arena_printf(&w->j->arena, "%s%s%s", w->name, *path ? "/" : "", path);
}

static int visit(const struct archive_contents *c, void *arg, struct hr_error *e)
{
    struct walk *w = arg;
    struct archive_contents *out = w->out;
    w->format_mixed |= out->format && strcmp(out->format, c->format);
    out->format = c->format;
    out->consolidated &= c->consolidated;
    out->complete &= c->complete;
    if (w->j->along && w->name)
        return 0; /* a member behind the first: its documents are known now */
    for (int i = 0; i < c->n_groups; i++) {
        const char *path = full_path(w, c->groups[i].path);
        TRY(path ? note_group(w->j, path, &c->groups[i], e) : error_nomem(e, 64, "a path"));
    }
    for (int i = 0; i < c->n_arrays; i++) {
        const char *path = full_path(w, c->arrays[i]->path);
        if (!path || buf_add(&w->paths, path, strlen(path) + 1) < 0)
            return error_nomem(e, 64, "a path");
    }
    return 0;
}

static int walk_members(struct joined *j, struct walk *w, struct hr_error *e)
{
    if (!j->along)
        TRY(note_group(j, "", NULL, e));
    for (int k = 0; k < j->n; k++) {
        w->name = !j->along || k ? j->names[k] : NULL;
        TRY(archive_walk(j->members[k], visit, w, e));
    }
    for (size_t at = 0; at < w->paths.size; at += strlen(w->paths.data + at) + 1) {
        const struct array *x;
        TRY(joined_find(j, w->paths.data + at, false, &x, e));
    }
    return 0;
}

int joined_walk(struct joined *j, struct archive_contents *out, struct hr_error *e)
{
    struct walk w = {.j = j, .out = out};
    *out = (struct archive_contents){.consolidated = true, .complete = true};
    buf_init(&w.paths);
    int rc = walk_members(j, &w, e);
    buf_dispose(&w.paths);
    TRY(rc);
    out->arrays = (const struct array *const *)j->arrays;
    out->n_arrays = j->n_arrays;
    out->groups = j->groups;
    out->n_groups = j->n_groups;
    out->format = w.format_mixed ? "zarr" : out->format;
    return 0;
}
