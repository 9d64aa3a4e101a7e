/* Edit distance with transpositions (Damerau–Levenshtein, restricted: no byte is edited twice), over bytes: a letter of
 * several bytes counts as several. Three rows of the table are enough, and names that would need longer ones are no slips
 * of the finger, so nothing is allocated. */
#include "base/distance.h"

#include <string.h>

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

unsigned distance(const char *a, const char *b)
{
    unsigned rows[3][DISTANCE_LONGEST + 1];
    unsigned *before = rows[0], *last = rows[1], *row = rows[2];
    size_t na = strlen(a), nb = strlen(b);
    if (na > DISTANCE_LONGEST || nb > DISTANCE_LONGEST)
        return DISTANCE_FAR;
    for (size_t j = 0; j <= nb; j++)
        last[j] = (unsigned)j;
    for (size_t i = 1; i <= na; i++) {
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= nb; j++) {
            unsigned change = a[i - 1] != b[j - 1];
            row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + change);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
        unsigned *spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[nb];
}
