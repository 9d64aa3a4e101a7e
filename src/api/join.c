/* See join.h. The right side is searched by bisection, texts through a sorted list of their positions. */
#include "api/join.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/decimal.h"
#include "base/mem.h"

struct join {
    const char *what; /* "join" or "lag", for messages */
    const struct coordinate *left, *right;
    int64_t back_us; /* the left's values are this much less: times, … */
    double back;     /* … or numbers */
    bool near;       /* with a tolerance */
    int64_t us;      /* of times */
    double number;   /* of numbers */
    bool single, floats, falling;
    int64_t n;      /* how many positions of the right have a value, … */
    int64_t *place; /* … and which: texts in their order; NULL where all numbers are there */
};

/* ---- can they be joined? ---------------------------------------------------------------------------------------- */

static const char *kind_name(const struct coordinate *c)
{
    return c->kind == COORDINATE_TIME ? "times" : c->kind == COORDINATE_TEXT ? "texts" : "numbers";
}

static int check_kinds(const struct join *j, struct hr_error *e)
{
    const char *a = kind_name(j->left), *b = kind_name(j->right);
    if (!strcmp(a, b))
        return 0;
    return error_set(e, HR_EINVAL, "join: %s holds %s, but %s holds %s", j->left->name, a,
                     j->right->name, b);
}

static int read_tolerance(struct join *j, const char *tolerance, struct hr_error *e)
{
    char *end = NULL;
    j->near = tolerance != NULL;
    if (!tolerance)
        return 0;
    double number = decimal_read(tolerance, &end);
    bool plain = end != tolerance && !*end && number >= 0 && !isinf(number);
    switch (j->left->kind) {
    case COORDINATE_TEXT:
        return error_set(e, HR_EINVAL, "%s: texts of %s are equal or not: leave tolerance out",
                         j->what, j->left->name);
    case COORDINATE_TIME:
        if (cftime_duration(tolerance, &j->us) && j->us >= 0)
            return 0;
        if (plain)
            return error_set(
                e, HR_EINVAL,
                "%s: tolerance %.12g has no unit, and %s holds times: write \"%.12gh\" for hours, "
                "\"%.12gD\" for days",
                j->what, number, j->left->name, number, number);
        return error_set(e, HR_EINVAL,
                         "%s: tolerance \"%s\" is no duration: write \"3h\", \"30min\", \"1D\"",
                         j->what, tolerance);
    default:
        j->number = number;
        if (!plain)
            return error_set(e, HR_EINVAL,
                             "%s: tolerance \"%s\" is no number in the unit of coordinate %s",
                             j->what, tolerance, j->left->name);
        return 0;
    }
}

/* ---- values ----------------------------------------------------------------------------------------------------- */

static double number(const struct join *j, const struct coordinate *c, int64_t i)
{
    double v = c->kind == COORDINATE_FLOAT ? c->floats[i] : (double)c->ints[i];
    return j->single ? (double)(float)v : v;
}

static bool lacks(const struct join *j, const struct coordinate *c, int64_t i)
{
    return j->floats ? isnan(number(j, c, i))
                     : c->kind == COORDINATE_TIME && c->ints[i] == INT64_MIN;
}

/* The k-th of the right's values. */
static int64_t right_at(const struct join *j, int64_t k)
{
    return j->place ? j->place[k] : k;
}

/* Positions without a value (NaN, NaT) are nobody's counterpart. */
static int leave_out(struct join *j, struct hr_error *e)
{
    const struct coordinate *c = j->right;
    int64_t n = 0;
    for (int64_t i = 0; i < c->n; i++)
        n += !lacks(j, c, i);
    j->n = n;
    if (n == c->n)
        return 0;
    j->place = mem_array((size_t)n + 1, sizeof *j->place);
    if (!j->place)
        return error_nomem(e, (uint64_t)n * 8, "the values of a join");
    for (int64_t i = c->n - 1; i >= 0; i--)
        if (!lacks(j, c, i))
            j->place[--n] = i;
    return 0;
}

/* Neighbours k - 1 and k of the right's values: < 0 rising, > 0 falling, 0 equal. */
static int fall(const struct join *j, int64_t k)
{
    const struct coordinate *c = j->right;
    int64_t x = right_at(j, k - 1), y = right_at(j, k);
    if (!j->floats)
        return (c->ints[x] > c->ints[y]) - (c->ints[x] < c->ints[y]);
    double a = number(j, c, x), b = number(j, c, y);
    return (a > b) - (a < b);
}

static int check_order(struct join *j, struct hr_error *e)
{
    const struct coordinate *c = j->right;
    char at[64];
    for (int64_t k = 1; k < j->n; k++) {
        int way = fall(j, k);
        int64_t i = right_at(j, k);
        j->falling = k == 1 ? way > 0 : j->falling;
        if (way && (way > 0) == j->falling)
            continue;
        coordinate_text(c, i, at, sizeof at);
        return error_set(e, HR_EINVAL,
                         "%s: %s %s (at index %lld, %s): values are looked up in a sorted "
                         "coordinate without repeats",
                         j->what, c->name, way ? "is not sorted" : "has a value twice",
                         (long long)i, at);
    }
    return 0;
}

static int by_text(const void *a, const void *b, void *texts)
{
    const char **t = texts;
    return strcmp(t[*(const int64_t *)a], t[*(const int64_t *)b]);
}

static int sort_texts(struct join *j, struct hr_error *e)
{
    const struct coordinate *c = j->right;
    j->place = mem_array((size_t)c->n + 1, sizeof *j->place);
    if (!j->place)
        return error_nomem(e, (uint64_t)c->n * 8, "the labels of a join");
    j->n = c->n;
    for (int64_t i = 0; i < c->n; i++)
        j->place[i] = i;
    qsort_r(j->place, (size_t)c->n, sizeof *j->place, by_text, (void *)c->texts);
    for (int64_t i = 1; i < c->n; i++)
        if (!strcmp(c->texts[j->place[i - 1]], c->texts[j->place[i]]))
            return error_set(e, HR_EINVAL, "join: %s has the label \"%.60s\" twice", c->name,
                             c->texts[j->place[i]]);
    return 0;
}

/* ---- searching -------------------------------------------------------------------------------------------------- */

static int64_t find_text(const struct join *j, const char *text)
{
    int64_t low = 0, high = j->right->n;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        int r = strcmp(j->right->texts[j->place[middle]], text);
        if (!r)
            return j->place[middle];
        if (r < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

/* A value of the left, as what the right is compared with. */
struct wanted {
    int64_t i;
    double d;
};

static bool want(const struct join *j, int64_t at, struct wanted *w)
{
    const struct coordinate *c = j->left;
    if (j->floats) {
        w->d = number(j, c, at) - j->back;
        return !isnan(w->d) && (isfinite(w->d) || j->back == 0);
    }
    if (lacks(j, c, at))
        return false;
    if (__builtin_sub_overflow(c->ints[at], j->back_us, &w->i))
        return false;
    return c->kind != COORDINATE_TIME || c == j->right ||
           cftime_convert(c->time.calendar, j->right->time.calendar, &w->i);
}

/* Does the right's value at i lie below the wanted one? */
static bool below(const struct join *j, int64_t i, const struct wanted *w)
{
    return j->floats ? number(j, j->right, i) < w->d : j->right->ints[i] < w->i;
}

static bool equal(const struct join *j, int64_t i, const struct wanted *w)
{
    return j->floats ? number(j, j->right, i) == w->d : j->right->ints[i] == w->i;
}

static double apart(const struct join *j, int64_t i, const struct wanted *w)
{
    if (j->floats)
        return fabs(number(j, j->right, i) - w->d);
    int64_t v = j->right->ints[i];
    return v > w->i ? (double)((uint64_t)v - (uint64_t)w->i)
                    : (double)((uint64_t)w->i - (uint64_t)v);
}

/* The k-th of the right by ascending value. */
static int64_t ascending(const struct join *j, int64_t k)
{
    return right_at(j, j->falling ? j->n - 1 - k : k);
}

static int64_t find_number(const struct join *j, const struct wanted *w)
{
    int64_t low = 0, high = j->n;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (below(j, ascending(j, middle), w))
            low = middle + 1;
        else
            high = middle;
    }
    int64_t above = low < j->n ? ascending(j, low) : -1;
    if (above >= 0 && equal(j, above, w))
        return above;
    if (!j->near)
        return -1;
    int64_t under = low > 0 ? ascending(j, low - 1) : -1, best = above;
    if (above < 0 || (under >= 0 && apart(j, under, w) < apart(j, above, w)))
        best = under;
    double most = j->left->kind == COORDINATE_TIME ? (double)j->us : j->number;
    return best >= 0 && apart(j, best, w) <= most ? best : -1;
}

static int64_t find(const struct join *j, int64_t at)
{
    struct wanted w = {0};
    if (j->left->kind == COORDINATE_TEXT)
        return find_text(j, j->left->texts[at]);
    return want(j, at, &w) ? find_number(j, &w) : -1;
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

static void ends(const struct coordinate *c, char *out, size_t n)
{
    char first[64], last[64];
    if (!c->n) {
        snprintf(out, n, "is empty");
        return;
    }
    coordinate_text(c, 0, first, sizeof first);
    coordinate_text(c, c->n - 1, last, sizeof last);
    snprintf(out, n, "runs from %s to %s", first, last);
}

static int no_overlap(const struct join *j, const char *tolerance, struct hr_error *e)
{
    char left[160], right[160];
    ends(j->left, left, sizeof left);
    ends(j->right, right, sizeof right);
    return error_set(e, HR_EINVAL, "join: no position of %s is in %s%s%s: %s %s, %s %s",
                     j->left->name, j->right->name, tolerance ? " or within " : "",
                     tolerance ? tolerance : "", j->left->name, left, j->right->name, right);
}

static int prepare(struct join *j, const char *tolerance, struct hr_error *e)
{
    const struct coordinate *a = j->left, *b = j->right;
    TRY(check_kinds(j, e));
    TRY(read_tolerance(j, tolerance, e));
    j->floats = a->kind == COORDINATE_FLOAT || b->kind == COORDINATE_FLOAT;
    j->single =
        (a->kind == COORDINATE_FLOAT && a->single) || (b->kind == COORDINATE_FLOAT && b->single);
    if (b->kind == COORDINATE_TEXT)
        return sort_texts(j, e);
    TRY(leave_out(j, e));
    return check_order(j, e);
}

static int fill(const struct join *j, int64_t **table, bool *some, struct hr_error *e)
{
    int64_t *t = mem_array((size_t)j->left->n + 1, sizeof *t);
    *some = false;
    if (!t)
        return error_nomem(e, (uint64_t)j->left->n * 8, "the table of a join");
    for (int64_t i = 0; i < j->left->n; i++) {
        t[i] = find(j, i);
        *some |= t[i] >= 0;
    }
    *table = t;
    return 0;
}

int join_table(const struct coordinate *left, const struct coordinate *right, const char *tolerance,
               int64_t **table, struct hr_error *e)
{
    struct join j = {.what = "join", .left = left, .right = right};
    bool some = true;
    *table = NULL;
    int rc = prepare(&j, tolerance, e);
    if (rc >= 0)
        rc = fill(&j, table, &some, e);
    if (!some) {
        mem_free(*table);
        *table = NULL;
        rc = no_overlap(&j, tolerance, e);
    }
    mem_free(j.place);
    return rc;
}

int join_lag(const struct coordinate *c, const struct lag_by *by, const char *tolerance,
             int64_t **table, bool *some, struct hr_error *e)
{
    struct join j = {.what = "lag", .left = c, .right = c, .back_us = by->us, .back = by->number};
    *table = NULL;
    int rc = prepare(&j, tolerance, e);
    if (c->kind == COORDINATE_INT && !j.floats && by->number != (double)by->us)
        j.floats = true;
    j.near = j.near || by->noise > 0;
    j.number = j.number > by->noise ? j.number : by->noise;
    j.us = (double)j.us > by->noise ? j.us : (int64_t)by->noise;
    if (rc >= 0)
        rc = fill(&j, table, some, e);
    mem_free(j.place);
    return rc;
}
