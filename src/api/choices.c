/* What other blocks and spreads would cost, for plan() and for budgets that are too small. */
#include "engine/choices.h"

#include <stdio.h>

#include "api/archive.h"
#include "api/cells.h"
#include "api/loader.h"
#include "api/runtime.h"

/* A filter's bits are counted anew for each choice: half a second for 10^8. Weights are summed anew, too. */
#define MOST_FILTERED 20000000
#define MOST_SAMPLED  5000000 /* samples with weights or bins */

static int find(struct wiring *w, const struct hr_loader_options *o,
                const struct sampling *sampling, struct engine_choice *out, struct hr_error *e)
{
    struct plan_config c;
    struct plan *plan;
    struct driver_config d = {.store = archive_store(w->samples->archive)};
    wiring_plan_config(w, o, NULL, &c);
    c.weights = sampling->weights;
    c.bins = sampling->bins;
    if ((c.filter && c.filter->n > MOST_FILTERED) ||
        ((c.weights || c.bins) && o->n_positions > MOST_SAMPLED))
        return 0;
    TRY(plan_open(&c, &plan, e));
    int rc = runtime_workers(&d.workers, e);
    if (rc >= 0) {
        loader_engine_config(w, o, plan, d.store, workers_count(d.workers), true, &d);
        rc = engine_choices(&c, plan, &d.engine, out, e);
        runtime_workers_done();
    }
    plan_unref(plan);
    return rc;
}

int loader_choices(struct hr_samples *s, const struct hr_loader_options *o,
                   const struct sampling *sampling, struct engine_choice *out, struct hr_error *e)
{
    struct wiring *w;
    TRY(wiring_new(s, o, &w, e));
    int rc = find(w, o, sampling, out, e);
    wiring_free(w);
    return rc;
}

/* Cells that are read together; 0: there are none. */
static uint64_t rows_of_runs(const struct core *c)
{
    uint64_t rows = 0;
    for (size_t i = 0; i < c->n_views; i++)
        if (c->views[i]->cells && c->views[i]->cells->matrix.row_chunk > rows)
            rows = c->views[i]->cells->matrix.row_chunk;
    return rows;
}

void loader_advise_budget(struct hr_samples *s, const struct hr_loader_options *o,
                          const struct sampling *sampling, struct hr_error *e)
{
    struct engine_choice all[ENGINE_CHOICES];
    uint64_t budget = o->memory ? o->memory : runtime_default_memory();
    int n = loader_choices(s, o, sampling, all, NULL);
    char text[160] = "";
    size_t k = 0;
    for (int i = n - 1; i >= 0 && k < 100; i--) {
        char need[24];
        if (all[i].current || all[i].minimum > budget)
            continue;
        k += (size_t)snprintf(
            text + k, sizeof text - k, "%sblock=%llu, spread=%llu (%s, chunks read %.2f times)",
            k ? "; or " : "", (unsigned long long)all[i].block, (unsigned long long)all[i].spread,
            error_bytes(need, sizeof need, all[i].minimum), all[i].amplification);
    }
    if (k)
        error_append(e, ". What would fit: %s", text);
    uint64_t runs = rows_of_runs(s->core);
    if (runs > 1)
        error_append(e, ". Runs of fewer cells take less, too: row_chunk=%llu, say",
                     (unsigned long long)runs / 2);
}
