/* Do the coordinates of the members of a concatenated archive fit together? Arrays are put one behind the other by position
 * alone, so that members of other grids or years in the wrong order would go unnoticed. Every coordinate is compared once,
 * when an array that follows it is first used. */
#include <math.h>
#include <string.h>

#include "api/joined_in.h"
#include "api/label.h"
#include "api/runtime.h"
#include "base/distance.h"
#include "base/mem.h"

struct member_coordinate {
    struct coordinate c;
    const char *name; /* of the member */
    bool known;
};

static void show(const struct coordinate *c, char out[200])
{
    char first[64], last[64];
    coordinate_text(c, 0, first, sizeof first);
    coordinate_text(c, c->n - 1, last, sizeof last);
    if (c->n > 1)
        snprintf(out, 200, "%.64s … %.64s", first, last);
    else
        snprintf(out, 200, "%.64s", first);
}

/* ---- one behind the other --------------------------------------------------------------------------------------- */

static double value(const struct coordinate *c, int64_t i)
{
    return c->floats && !c->ints ? c->floats[i] : (double)c->ints[i];
}

/* As integers where they are: doubles would take neighbours for one. */
static int compare(const struct coordinate *a, int64_t i, const struct coordinate *b, int64_t k)
{
    if (a->ints && b->ints)
        return (a->ints[i] > b->ints[k]) - (a->ints[i] < b->ints[k]);
    double x = value(a, i), y = value(b, k);
    return (x > y) - (x < y);
}

struct extremes {
    int64_t low, high; /* positions of the least and the greatest */
};

static struct extremes extremes_of(const struct coordinate *c)
{
    struct extremes x = {0, 0};
    for (int64_t i = 1; i < c->n; i++) {
        x.low = compare(c, i, c, x.low) < 0 ? i : x.low;
        x.high = compare(c, i, c, x.high) > 0 ? i : x.high;
    }
    return x;
}

static int misplaced(const struct joined *j, const struct member_coordinate *p,
                     const struct member_coordinate *q, const char *how, struct hr_error *e)
{
    char a[200], b[200];
    show(&p->c, a);
    show(&q->c, b);
    return error_set(e, HR_EINVAL, "concat along %s: %.120s (%s) and %.120s (%s) %s", j->along,
                     p->name, a, q->name, b, how);
}

static int check_sequence(const struct joined *j, const struct member_coordinate *all,
                          struct hr_error *e)
{
    const struct member_coordinate *p = NULL;
    int direction = 0;
    for (int k = 0; k < j->n && !direction; k++)
        if (all[k].known && all[k].c.n > 1)
            direction = compare(&all[k].c, all[k].c.n - 1, &all[k].c, 0);
    for (int k = 0; k < j->n; k++) {
        const struct member_coordinate *q = &all[k];
        if (!q->known || !q->c.n)
            continue;
        if (p) {
            struct extremes a = extremes_of(&p->c), b = extremes_of(&q->c);
            int way = compare(&p->c, a.high, &q->c, b.low) < 0   ? 1
                      : compare(&p->c, a.low, &q->c, b.high) > 0 ? -1
                                                                 : 0;
            if (!way)
                return misplaced(j, p, q, "overlap", e);
            if (direction && way != direction)
                return misplaced(j, p, q,
                                 "are not in order: give the archives in the order of the "
                                 "coordinate",
                                 e);
            direction = way;
        }
        p = q;
    }
    return 0;
}

/* ---- equal ------------------------------------------------------------------------------------------------------ */

static bool equal_at(const struct coordinate *a, const struct coordinate *b, int64_t i)
{
    if (a->kind == COORDINATE_TEXT)
        return !strcmp(a->texts[i], b->texts[i]);
    if (a->kind == COORDINATE_FLOAT)
        return a->floats[i] == b->floats[i] || (isnan(a->floats[i]) && isnan(b->floats[i]));
    return a->ints[i] == b->ints[i];
}

static int check_equal(const struct joined *j, const struct member_coordinate *all, const char *dim,
                       struct hr_error *e)
{
    const struct coordinate *a = &all[0].c;
    char x[64], y[64];
    for (int k = 1; k < j->n; k++) {
        const struct coordinate *b = &all[k].c;
        if (!all[0].known || !all[k].known)
            continue;
        if (a->kind != b->kind)
            return error_set(e, HR_EINVAL,
                             "concat along %s: coordinate %s is of another kind in %s than in %s",
                             j->along, dim, all[k].name, all[0].name);
        for (int64_t i = 0; i < a->n; i++) {
            if (equal_at(a, b, i))
                continue;
            coordinate_text(a, i, x, sizeof x);
            coordinate_text(b, i, y, sizeof y);
            return error_set(e, HR_EINVAL,
                             "concat along %s: coordinate %s differs: at index %lld it is %s in "
                             "%.120s but %s in %.120s",
                             j->along, dim, (long long)i, x, all[0].name, y, all[k].name);
        }
    }
    return 0;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static bool is_checked(struct joined *j, const char *path)
{
    bool found = false;
    pthread_mutex_lock(&j->lock);
    for (size_t i = 0; i < j->n_checked; i++)
        found |= !strcmp(j->checked[i], path);
    pthread_mutex_unlock(&j->lock);
    return found;
}

/* `path` stays as long as the archive. One that is lost for want of memory is checked again. */
static void note_checked(struct joined *j, const char *path)
{
    pthread_mutex_lock(&j->lock);
    if (mem_grow((void **)&j->checked, &j->checked_cap, j->n_checked + 1, sizeof *j->checked) >= 0)
        j->checked[j->n_checked++] = path;
    pthread_mutex_unlock(&j->lock);
}

/* The coordinate of one member; not known where it has none that could be read. */
static int read_member(struct joined *j, int k, const struct array *x, int d, const char *dim,
                       struct member_coordinate *out, struct hr_error *e)
{
    struct hr_error why = {0};
    const struct array *y;
    out->name = j->names[k];
    TRY(archive_array(j->members[k], x->path, &y, e));
    int rc = coordinate_read(j->members[k], y, dim, (int64_t)y->shape[d], &out->c, &why);
    out->known = rc >= 0;
    if (rc >= 0 || rc == HR_ENOENT || rc == HR_EFORMAT || rc == HR_EUNSUPPORTED)
        return 0;
    if (e)
        *e = why;
    return rc;
}

static int check_dimension(struct joined *j, const struct array *x, int d, const char *dim,
                           struct hr_error *e)
{
    struct member_coordinate *all = mem_array((size_t)j->n, sizeof *all);
    int rc = all ? 0 : error_nomem(e, (size_t)j->n * sizeof *all, "coordinates");
    for (int k = 0; k < j->n && rc >= 0; k++)
        rc = read_member(j, k, x, d, dim, &all[k], e);
    if (rc >= 0)
        rc = d == x->members->dim ? check_sequence(j, all, e) : check_equal(j, all, dim, e);
    for (int k = 0; all && k < j->n; k++)
        if (all[k].known)
            coordinate_dispose(&all[k].c);
    mem_free(all);
    return rc;
}

/* Along the joined dimension texts have no order to check, and may be many. */
static bool is_text(const struct array *x)
{
    enum hr_dtype t = x->type.kind;
    return t == HR_STRING || t == HR_BYTES || t == HR_UTF32 || t == HR_RAW;
}

static int check_concat(struct joined *j, struct hr_archive *a, const struct array *x,
                        struct hr_error *e)
{
    char room[ARRAY_DIM_NAME];
    for (int d = 0; x->members && d < x->ndim; d++) {
        const struct array *c = NULL;
        const char *dim = array_dim_name(x, d, room);
        TRY(coordinate_find(a, x, dim, &c, e));
        if (!c || is_checked(j, c->path) || (d == x->members->dim && is_text(c)))
            continue;
        TRY(check_dimension(j, x, d, dim, e));
        note_checked(j, c->path);
    }
    return 0;
}

/* Of a member under a name: its own checks, if it is made of archives too. */
static int check_combined(struct joined *j, const struct array *x, struct hr_error *e)
{
    const struct array *y;
    size_t n = strcspn(x->path, "/");
    for (int k = 0; k < j->n; k++)
        if (strlen(j->names[k]) == n && !strncmp(j->names[k], x->path, n))
            return archive_array(j->members[k], x->path[n] ? x->path + n + 1 : "", &y, e);
    return 0;
}

struct dimension_search {
    const char *along;
    char found[ARRAY_DIM_NAME]; /* the name nearest to it */
    unsigned apart;
    bool there, all; /* it is there; all dimensions have been seen */
};

static int search(const struct archive_contents *c, void *arg, struct hr_error *e)
{
    struct dimension_search *s = arg;
    char room[ARRAY_DIM_NAME];
    (void)e;
    s->all = c->complete;
    for (int i = 0; i < c->n_arrays; i++)
        for (int d = 0; d < c->arrays[i]->ndim; d++) {
            const char *name = array_dim_name(c->arrays[i], d, room);
            unsigned apart = name ? distance(s->along, name) : DISTANCE_FAR;
            s->there |= name && !strcmp(name, s->along);
            if (apart < s->apart)
                snprintf(s->found, sizeof s->found, "%s", name);
            s->apart = apart < s->apart ? apart : s->apart;
        }
    return 0;
}

/* A name that no array has makes every array that of the first archive. */
static void tell_unchecked(const struct joined *j)
{
    char text[512];
    snprintf(text, sizeof text,
             "concat along %.60s: %.120s cannot be listed and its metadata is not consolidated, so "
             "that nobody knows whether its arrays have that dimension, and those that do not are "
             "taken from the first archive: consolidate the metadata, or look at the shape of one",
             j->along, j->names[0]);
    runtime_log(30, text);
}

int joined_check_along(const struct joined *j, struct hr_error *e)
{
    struct dimension_search s = {.along = j->along, .apart = (unsigned)strlen(j->along) / 3 + 2};
    int k = 0;
    while (k < j->n && (archive_walk(j->members[k], search, &s, NULL) < 0 || (!s.there && !s.all)))
        k++;
    if (k == j->n && !s.there)
        tell_unchecked(j);
    if (k == j->n || s.there)
        return 0;
    return error_set(e, HR_EINVAL,
                     "concat along %.80s: no array of %.120s has that dimension%s%s%s", j->along,
                     j->names[k], *s.found ? "; did you mean " : "", s.found, *s.found ? "?" : "");
}

int joined_check(struct joined *j, struct hr_archive *a, const struct array *x, struct hr_error *e)
{
    return j->along ? check_concat(j, a, x, e) : check_combined(j, x, e);
}
