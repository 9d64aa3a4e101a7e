/* Near names by edit distance with transpositions (Damerau–Levenshtein, restricted form), over bytes.
 *
 * A name is near when at most a third of the wanted one has to change, or when it differs only in case, or when the wanted
 * name is its last path component: people type "salt" for "ocean/deep/salt". Names of more than 64 bytes are compared
 * exactly only; three candidates are kept, in order of nearness and then as they came. */
#include "format/near.h"
#include <string.h>
#include <strings.h>

#define LONGEST 64

void near_init(struct near *x, const char *wanted)
{
    *x = (struct near){.wanted = wanted};
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    unsigned m = a < b ? a : b;
    return m < c ? m : c;
}

static unsigned distance(const char *a, size_t na, const char *b, size_t nb)
{
    unsigned rows[3][LONGEST + 1];
    unsigned *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= nb; j++)
        last[j] = (unsigned)j;
    for (size_t i = 1; i <= na; i++) {
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= nb; j++) {
            unsigned change = a[i - 1] != b[j - 1];
            row[j] = min3(last[j] + 1, row[j - 1] + 1, last[j - 1] + change);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < row[j])
                row[j] = before[j - 2] + 1;
        }
        unsigned *spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[nb];
}

/* UINT_MAX-like 1000: not near. */
static unsigned score(const char *wanted, const char *name)
{
    const char *wanted_base = strrchr(wanted, '/'), *name_base = strrchr(name, '/');
    wanted_base = wanted_base ? wanted_base + 1 : wanted;
    name_base = name_base ? name_base + 1 : name;
    if (!strcasecmp(wanted, name))
        return 0;
    if (!strcasecmp(wanted_base, name_base))
        return 1;
    size_t na = strlen(wanted), nb = strlen(name);
    if (na > LONGEST || nb > LONGEST)
        return 1000;
    unsigned d = distance(wanted, na, name, nb), allowed = (unsigned)na / 3;
    return d <= (allowed > 1 ? allowed : 1) ? d + 1 : 1000;
}

/* Names come as the store lists them, in any order; those kept are the same each time. */
static void keep_first(struct near *x, const char *name)
{
    int at = 0, order = -1;
    while (at < x->n_offered && (order = strcmp(x->offered[at], name)) < 0)
        at++;
    if (at > NEAR_MAX || (at < x->n_offered && order == 0))
        return;
    x->n_offered += x->n_offered <= NEAR_MAX;
    for (int i = x->n_offered - 1; i > at; i--)
        x->offered[i] = x->offered[i - 1];
    x->offered[at] = name;
}

void near_offer(struct near *x, const char *name)
{
    keep_first(x, name);
    unsigned s = score(x->wanted, name);
    if (s >= 1000 || !*x->wanted)
        return;
    for (int i = 0; i < x->n; i++)
        if (!strcmp(x->best[i].name, name))
            return;
    int at = x->n;
    while (at > 0 && x->best[at - 1].score > s)
        at--;
    if (at == NEAR_MAX)
        return;
    int last = x->n < NEAR_MAX ? x->n++ : NEAR_MAX - 1;
    for (int i = last; i > at; i--)
        x->best[i] = x->best[i - 1];
    x->best[at].name = name;
    x->best[at].score = s;
}

void near_text(const struct near *x, struct buf *out)
{
    for (int i = 0; i < x->n; i++) {
        const char *before = !i ? "" : i == x->n - 1 ? " or " : ", ";
        buf_printf(out, "%s\"%.80s\"", before, x->best[i].name);
    }
}

void near_others(const struct near *x, struct buf *out)
{
    for (int i = 0; i < x->n_offered; i++)
        if (i == NEAR_MAX)
            buf_puts(out, ", …");
        else
            buf_printf(out, "%s\"%.80s\"", i ? ", " : "", x->offered[i]);
}
