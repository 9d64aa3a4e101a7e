/* Each group goes to the run that, of the samples dealt so far, lacks most of its share. At every moment no run then has
 * more than its share and the group it got last, so sizes end within the largest group of what was asked for, and groups
 * in their natural order (blocks of an axis) are dealt interleaved. As soon as there are only as many groups left as runs
 * without one, those get them: a run is empty only if there are fewer groups than runs. */
#include "api/deal.h"

#define LEFT_OUT (-1)

struct dealer {
    const double *fractions;
    int runs;
    double rest; /* of the fractions: left out */
    double got[1001], dealt;
    int empty;
};

static double share(const struct dealer *d, int run)
{
    return run < d->runs ? d->fractions[run] : d->rest;
}

/* The run (d->runs: none) that lacks most; `only_empty`: among those that have nothing yet. */
static int neediest(const struct dealer *d, bool only_empty)
{
    int best = -1;
    double most = 0;
    for (int run = 0; run <= d->runs; run++) {
        double lack = share(d, run) * d->dealt - d->got[run];
        if (!(share(d, run) > 1e-12) || (only_empty && (run == d->runs || d->got[run] > 0)))
            continue;
        if (best < 0 || lack > most) {
            best = run;
            most = lack;
        }
    }
    return best;
}

int deal_groups(const uint64_t *sizes, const uint64_t *order, uint64_t n, const double *fractions,
                int runs, int16_t *to, struct hr_error *e)
{
    struct dealer d = {.fractions = fractions, .runs = runs, .rest = 1, .empty = runs};
    for (int i = 0; i < runs; i++)
        d.rest -= fractions[i];
    if (n < (uint64_t)runs)
        return error_set(e, HR_EINVAL, "%llu group%s cannot be dealt to %d splits, none empty",
                         (unsigned long long)n, n == 1 ? "" : "s", runs);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t group = order ? order[i] : i;
        d.dealt += (double)sizes[group];
        int run = neediest(&d, n - i <= (uint64_t)d.empty);
        if (run < 0)
            run = d.runs;
        d.empty -= run < d.runs && !(d.got[run] > 0);
        d.got[run] += (double)sizes[group];
        to[group] = (int16_t)(run < d.runs ? run : LEFT_OUT);
    }
    return 0;
}
