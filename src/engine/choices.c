/* Each choice is a plan of its own, made from the same configuration: opening one costs little
 * (but for a filter, whose bits are counted anew), and its figures are the ones it would show. */
#include "engine/choices.h"

#include "engine/budget.h"
#include "plan/touch.h"
#include <stdlib.h>

struct wish {
    uint64_t block, spread;
};

static int choice_fill(const struct plan *p, const struct engine_config *g, struct engine_choice *x,
                       struct hr_error *e)
{
    const struct plan_facts *f = plan_facts(p);
    struct engine_config plenty = *g;
    struct footprint print;
    struct budget b;
    struct touch t;
    plenty.budget = INT64_MAX / 2; /* nothing is refused */
    plenty.keep = false;
    TRY(footprint_init(&print, p, e));
    int rc = budget_divide(&b, p, &print, &plenty, e);
    footprint_dispose(&print);
    TRY(rc);
    touch_count(p, &t);
    *x = (struct engine_choice){.block = f->block,
                                .spread = f->spread,
                                .memory = b.facts.comfortable,
                                .minimum = b.facts.minimum,
                                .amplification = t.distinct > 0 ? t.reads / t.distinct : 1};
    return 0;
}

static int choice_add(const struct plan_config *c, const struct wish *w,
                      const struct engine_config *g, struct engine_choice *out, int n,
                      struct hr_error *e)
{
    struct plan_config other = *c;
    struct plan *p;
    if (w->block) /* else as it was asked for: a block that was chosen may have another shape */
        other.block = w->block;
    other.spread = w->spread;
    TRY(plan_open(&other, &p, e));
    int rc = choice_fill(p, g, &out[n], e);
    plan_unref(p);
    for (int i = 0; i < n && !rc; i++) /* a block that is the whole axis cannot grow */
        if (out[i].block == out[n].block && out[i].spread == out[n].spread)
            return n;
    return rc ? rc : n + 1;
}

static int by_memory(const void *a, const void *b)
{
    const struct engine_choice *x = a, *y = b;
    if (x->memory != y->memory)
        return x->memory < y->memory ? -1 : 1;
    return x->block < y->block ? -1 : x->block > y->block;
}

int engine_choices(const struct plan_config *c, const struct plan *p, const struct engine_config *g,
                   struct engine_choice *out, struct hr_error *e)
{
    const struct plan_facts *f = plan_facts(p);
    const struct wish wishes[ENGINE_CHOICES - 1] = {
        {f->block / 4, f->spread}, {f->block / 2, f->spread}, {f->block * 2, f->spread},
        {f->block * 4, f->spread}, {0, f->spread / 4},        {0, f->spread / 2},
        {0, f->spread * 2}};
    int n = 1;
    TRY(choice_fill(p, g, &out[0], e));
    out[0].current = true;
    for (int i = 0; i < ENGINE_CHOICES - 1 && f->shuffle == HR_SHUFFLE_SPREAD; i++)
        if ((i > 3 || wishes[i].block) && wishes[i].spread) {
            n = choice_add(c, &wishes[i], g, out, n, e);
            TRY(n);
        }
    qsort(out, (size_t)n, sizeof *out, by_memory);
    return n;
}
