#include "base/distance.h"
#include "t.h"

static void edits_are_counted(void)
{
    static const struct {
        const char *a, *b;
        unsigned edits;
    } rows[] = {
        {"", "", 0},
        {"", "abc", 3},
        {"t2m", "t2m", 0},
        {"t2m", "t2", 1},
        {"t2m", "tm", 1},
        {"t2m", "u2m", 1},
        {"kitten", "sitting", 3},
        {"saturday", "sunday", 3},
        {"T2M", "t2m", 2},
        {"température", "temperature", 2}, /* é is two bytes */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_eq(distance(rows[i].a, rows[i].b), rows[i].edits);
        check_eq(distance(rows[i].b, rows[i].a), rows[i].edits);
    }
}

static void neighbours_exchanged_are_one_edit(void)
{
    check_eq(distance("tempreature", "temperature"), 1);
    check_eq(distance("ab", "ba"), 1);
    check_eq(distance("abcd", "badc"), 2);
    check_eq(distance("ca", "abc"), 3); /* restricted: what was exchanged is not edited again */
}

static void names_too_long_to_compare_are_far(void)
{
    char a[DISTANCE_LONGEST + 2], b[DISTANCE_LONGEST + 2];
    memset(a, 'a', sizeof a);
    memset(b, 'b', sizeof b);
    a[DISTANCE_LONGEST] = b[DISTANCE_LONGEST] = 0;
    check_eq(distance(a, b), DISTANCE_LONGEST);
    check_eq(distance(a, ""), DISTANCE_LONGEST);
    a[DISTANCE_LONGEST] = 'a';
    a[DISTANCE_LONGEST + 1] = 0;
    check_eq(distance(a, a), DISTANCE_FAR);
    check_eq(distance("a", a), DISTANCE_FAR);
}

int main(void)
{
    RUN(edits_are_counted);
    RUN(neighbours_exchanged_are_one_edit);
    RUN(names_too_long_to_compare_are_far);
    return t_done();
}
