/* Tables of joins, against brute force over every pair of values. */
#include "api/join.h"
#include <math.h>
#include "base/mem.h"
#include "t.h"

static struct hr_error e;
static uint64_t state = 7;

static void must(int rc)
{
    if (!check(rc >= 0)) {
        printf("# %s\n", e.text);
        exit(99);
    }
}

static uint64_t draw(uint64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
}

static struct coordinate of_ints(const char *name, enum coordinate_kind kind, int64_t *v, int64_t n)
{
    return (struct coordinate){.kind = kind, .name = name, .n = n, .ints = v};
}

static int64_t nearest(const struct coordinate *a, int64_t i, const struct coordinate *b,
                       int64_t most)
{
    int64_t best = -1, least = most;
    for (int64_t k = 0; k < b->n; k++) {
        int64_t d = llabs(a->ints[i] - b->ints[k]);
        if (d < least || (d == least && (best < 0 || b->ints[k] > b->ints[best]))) {
            least = d;
            best = k;
        }
    }
    return best;
}

static void tables_are_what_brute_force_gives(void)
{
    for (int round = 0; round < 3000; round++) {
        int64_t l[30], r[30], n = 1 + (int64_t)draw(29), m = 1 + (int64_t)draw(29), at = 0, *table;
        for (int64_t i = 0; i < n; i++)
            l[i] = (int64_t)draw(120) - 10;
        for (int64_t i = 0; i < m; i++)
            r[i] = at += 1 + (int64_t)draw(5);
        for (int64_t i = 0; i < m / 2 && round % 2; i++) {
            int64_t v = r[i];
            r[i] = r[m - 1 - i];
            r[m - 1 - i] = v;
        }
        int64_t most = (int64_t)draw(4);
        char text[24];
        bool time = round % 3 == 0;
        snprintf(text, sizeof text, time ? "%lldus" : "%lld", (long long)most);
        struct coordinate a = of_ints("left", time ? COORDINATE_TIME : COORDINATE_INT, l, n),
                          b = of_ints("right", time ? COORDINATE_TIME : COORDINATE_INT, r, m);
        int64_t some = 0, wrong = 0;
        for (int64_t i = 0; i < n; i++)
            some += nearest(&a, i, &b, most) >= 0;
        int rc = join_table(&a, &b, most ? text : NULL, &table, &e);
        if (!check_eq(rc, some ? 0 : HR_EINVAL) || rc < 0)
            continue;
        for (int64_t i = 0; i < n; i++)
            wrong += table[i] != nearest(&a, i, &b, most);
        check_eq(wrong, 0);
        mem_free(table);
    }
}

static void floats_compare_as_they_are_stored(void)
{
    double l[] = {0.1, 0.25, (double)NAN, 7, 3},
           r[] = {(double)0.1f, (double)0.2f, (double)0.3f, 3};
    struct coordinate a = {.kind = COORDINATE_FLOAT, .name = "a", .n = 5, .floats = l},
                      b = {.kind = COORDINATE_FLOAT,
                           .name = "b",
                           .n = 4,
                           .floats = r,
                           .single = true};
    int64_t whole[] = {3, 5}, *t;
    must(join_table(&a, &b, NULL, &t, &e));
    check(t[0] == 0 && t[1] == -1 && t[2] == -1 && t[3] == -1 && t[4] == 3);
    mem_free(t);
    must(join_table(&a, &b, "0.06", &t, &e));
    check(t[0] == 0 && (t[1] == 1 || t[1] == 2) && t[2] == -1 && t[3] == -1 && t[4] == 3);
    mem_free(t);
    struct coordinate c = of_ints("c", COORDINATE_INT, whole, 2);
    must(join_table(&a, &c, NULL, &t, &e));
    check(t[0] == -1 && t[4] == 0);
    mem_free(t);
}

static void texts_need_no_order(void)
{
    const char *l[] = {"b", "x", "a", "b"}, *r[] = {"c", "b", "a"}, *twice[] = {"a", "c", "a"};
    struct coordinate a = {.kind = COORDINATE_TEXT, .name = "here", .n = 4, .texts = l},
                      b = {.kind = COORDINATE_TEXT, .name = "there", .n = 3, .texts = r};
    int64_t *t;
    must(join_table(&a, &b, NULL, &t, &e));
    check(t[0] == 1 && t[1] == -1 && t[2] == 2 && t[3] == 1);
    mem_free(t);
    check_eq(join_table(&a, &b, "1", &t, &e), HR_EINVAL);
    b.texts = twice;
    check_eq(join_table(&a, &b, NULL, &t, &e), HR_EINVAL);
    check(strstr(e.text, "there has the label \"a\" twice") != NULL);
}

static int64_t moment(enum calendar c, const char *text)
{
    int64_t from, to;
    check(cftime_label(c, text, &from, &to));
    return from;
}

static void times_of_two_calendars_meet_by_date(void)
{
    static const enum calendar all[] = {CALENDAR_STANDARD, CALENDAR_PROLEPTIC, CALENDAR_JULIAN,
                                        CALENDAR_NOLEAP,   CALENDAR_ALL_LEAP,  CALENDAR_360};
    int64_t l[1500], r[1500], *t;
    for (int x = 0; x < 6; x++)
        for (int y = 0; y < 6; y++) {
            struct coordinate a = of_ints("a", COORDINATE_TIME, l, 1500),
                              b = of_ints("b", COORDINATE_TIME, r, 1500);
            a.time.calendar = all[x];
            b.time.calendar = all[y];
            for (int64_t i = 0; i < 1500; i++) {
                l[i] = moment(all[x], "1999-01-01T12") + i * 86400000000;
                r[i] = moment(all[y], "1999-01-01T12") + i * 86400000000;
            }
            must(join_table(&a, &b, x % 2 ? "6h" : NULL, &t, &e));
            int64_t wrong = 0;
            for (int64_t i = 0, k = 0; i < 1500; i++) {
                char mine[40], theirs[40];
                cftime_text(all[x], l[i], mine, sizeof mine);
                for (k = 0; k < 1500; k++) {
                    cftime_text(all[y], r[k], theirs, sizeof theirs);
                    if (!strcmp(mine, theirs))
                        break;
                    if (i %
                        50) /* a date in a hundred is searched, others are where the table says */
                        k = t[i] < 0 ? 1499 : k < t[i] ? t[i] - 1 : 1499;
                }
                wrong += t[i] != (k < 1500 ? k : -1);
            }
            check_eq(wrong, 0);
            mem_free(t);
        }
}

static void leap_days_without_counterpart_are_no_entry(void)
{
    int64_t l[] = {moment(CALENDAR_STANDARD, "2000-02-28"), moment(CALENDAR_STANDARD, "2000-02-29"),
                   moment(CALENDAR_STANDARD, "2000-03-01")};
    int64_t r[] = {moment(CALENDAR_NOLEAP, "2000-02-28"), moment(CALENDAR_NOLEAP, "2000-03-01")},
            *t;
    struct coordinate a = of_ints("obs", COORDINATE_TIME, l, 3),
                      b = of_ints("model", COORDINATE_TIME, r, 2);
    b.time.calendar = CALENDAR_NOLEAP;
    must(join_table(&a, &b, NULL, &t, &e));
    check(t[0] == 0 && t[1] == -1 && t[2] == 1);
    mem_free(t);
    must(join_table(&a, &b, "2D", &t, &e));
    check(t[1] == -1);
    mem_free(t);
}

static void what_cannot_be_joined_is_said(void)
{
    int64_t l[] = {0, 3600000000}, r[] = {86400000000, 90000000000}, mixed[] = {1, 3, 2},
            twice[] = {1, 2, 2}, *t;
    const char *texts[] = {"a"};
    struct coordinate a = of_ints("era5/time", COORDINATE_TIME, l, 2),
                      b = of_ints("sst/time", COORDINATE_TIME, r, 2),
                      c = {.kind = COORDINATE_TEXT, .name = "names", .n = 1, .texts = texts},
                      d = of_ints("d", COORDINATE_INT, mixed, 3);
    check_eq(join_table(&a, &b, NULL, &t, &e), HR_EINVAL);
    check(strstr(e.text, "no position of era5/time is in sst/time: era5/time runs from "
                         "1970-01-01T00:00:00 to 1970-01-01T01:00:00, sst/time runs from "
                         "1970-01-02T00:00:00 to 1970-01-02T01:00:00") != NULL);
    check_eq(join_table(&a, &b, "23h", &t, &e), 0);
    check(t[0] == -1 && t[1] == 0);
    mem_free(t);
    check_eq(join_table(&a, &b, "soon", &t, &e), HR_EINVAL);
    check_eq(join_table(&a, &c, NULL, &t, &e), HR_EINVAL);
    check(strstr(e.text, "era5/time holds times, but names holds texts") != NULL);
    check_eq(join_table(&d, &d, NULL, &t, &e), HR_EINVAL);
    check(strstr(e.text, "d is not sorted (at index 2, 2)") != NULL);
    d.ints = twice;
    check_eq(join_table(&d, &d, NULL, &t, &e), HR_EINVAL);
    check(strstr(e.text, "d has a value twice (at index 2, 2)") != NULL);
    check_eq(join_table(&d, &d, "-1", &t, &e), HR_EINVAL);
}

int main(void)
{
    RUN(tables_are_what_brute_force_gives);
    RUN(floats_compare_as_they_are_stored);
    RUN(texts_need_no_order);
    RUN(times_of_two_calendars_meet_by_date);
    RUN(leap_days_without_counterpart_are_no_entry);
    RUN(what_cannot_be_joined_is_said);
    return t_done();
}
