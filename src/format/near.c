/* Near names by edit distance (base/distance.h).
 *
 * A name is near when at most a third of the wanted one has to change, or when it differs only in case, or when the wanted
 * name is its last path component: people type "salt" for "ocean/deep/salt". Names of more than 64 bytes are compared
 * exactly only; three candidates are kept, in order of nearness and then as they came. */
#include "format/near.h"
#include "base/distance.h"
#include <string.h>
#include <strings.h>

void near_init(struct near *x, const char *wanted)
{
    *x = (struct near){.wanted = wanted};
}

/* DISTANCE_FAR: not near. */
static unsigned score(const char *wanted, const char *name)
{
    const char *wanted_base = strrchr(wanted, '/'), *name_base = strrchr(name, '/');
    wanted_base = wanted_base ? wanted_base + 1 : wanted;
    name_base = name_base ? name_base + 1 : name;
    if (!strcasecmp(wanted, name))
        return 0;
    if (!strcasecmp(wanted_base, name_base))
        return 1;
    unsigned d = distance(wanted, name), allowed = (unsigned)strlen(wanted) / 3;
    return d != DISTANCE_FAR && d <= (allowed > 1 ? allowed : 1) ? d + 1 : DISTANCE_FAR;
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
    if (s == DISTANCE_FAR || !*x->wanted)
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
