/* The loader as the files of api/ see it: loader.c (life and consumption), loader_build.c (from options to plan and driver), wiring.c (what the
 * driver needs of samples), sampling.c (weights), loader_state.c (resuming), loader_report.c (plan and stats). */
#ifndef API_LOADER_H
#define API_LOADER_H
#include <pthread.h>

#include "api/samples.h"
#include "engine/choices.h"
#include "plan/state.h"
#include "run/driver.h"

/* Everything the driver looks at besides the plan; it lives until the driver has ended. */
struct wiring {
    struct samples_plan *samples;
    const struct array **arrays;  /* one per array of the plan */
    struct scatter_part *parts;   /* one per part */
    struct batch_tensor *tensors; /* one per view, of cells several; then one per table */
    int n_tensors;
    int *first;                    /* the first tensor of each view, then of each table */
    struct table *tables;          /* one per table */
    struct transform **transforms; /* likewise; NULL where there is nothing to do */
    struct arena arena;
};
int wiring_new(struct hr_samples *s, const struct hr_loader_options *o, struct wiring **out,
               struct hr_error *e);
void wiring_free(struct wiring *w);
/* Options and wiring → the planner's configuration. `resumed` may be NULL. */
void wiring_plan_config(const struct wiring *w, const struct hr_loader_options *o,
                        const struct plan_state *resumed, struct plan_config *out);

/* sampling.c: what options say of how samples come. */
struct sampling {
    struct weights *weights; /* NULL: none */
    struct bins *bins;       /* likewise */
};
int sampling_new(const struct hr_loader_options *o, struct sampling *s, struct hr_error *e);
void sampling_dispose(struct sampling *s);

struct hr_loader {
    int refs; /* atomic */
    uint32_t process;
    struct hr_samples *samples;
    struct hr_loader_options options;
    struct sampling sampling;
    struct {                    /* by the consumer's thread */
        uint64_t epoch, step;   /* the next batch that it has not received; epoch is atomic */
        bool started;           /* the driver is on its way to it */
        struct hr_error failed; /* answered until the position is set anew */
        bool repeats;           /* a whole epoch was consumed */
        bool kept;              /* keeping chunks over epochs was tried */
    } consumer;
    pthread_mutex_t mutex;    /* `engine` is replaced when a state brings other options */
    bool closed;              /* under it, as is the rest */
    uint64_t first_ns;        /* when a batch was first asked for */
    struct driver_stats past; /* of drivers before this one */
    struct {
        struct plan *plan;
        struct driver *driver;
    } engine;
};

/* Plan and driver for options (and a state to resume from). */
int loader_build(struct hr_samples *s, const struct hr_loader_options *o,
                 const struct sampling *sampling, const struct plan_state *resumed,
                 struct plan **plan, struct driver **driver, struct hr_error *e);
/* A driver alone, for a plan there is. `before`: the one it succeeds, which keeps all chunks, or NULL. On success the wiring is
 * the driver's. */
int loader_driver(struct wiring *w, const struct hr_loader_options *o, struct plan *plan,
                  struct driver *before, struct driver **driver, struct hr_error *e);
/* The engine's part of a driver's configuration: budget, tables, reads. */
void loader_engine_config(const struct wiring *w, const struct hr_loader_options *o,
                          const struct plan *plan, const struct store *store, unsigned workers,
                          bool lean, struct driver_config *c);
/* Other blocks and spreads (engine/choices.h): how many there are to choose from; 0 where that takes too long. */
int loader_choices(struct hr_samples *s, const struct hr_loader_options *o,
                   const struct sampling *sampling, struct engine_choice *out, struct hr_error *e);
/* To an error about memory: what would fit. */
void loader_advise_budget(struct hr_samples *s, const struct hr_loader_options *o,
                          const struct sampling *sampling, struct hr_error *e);
/* References to what is there now; HR_EFORK in a forked child. */
int loader_engine(struct hr_loader *l, struct plan **plan, struct driver **driver,
                  struct hr_error *e);
/* What all drivers of the loader have done. */
int loader_stats(struct hr_loader *l, struct driver_stats *out, struct hr_error *e);
int loader_check(const struct hr_loader *l, struct hr_error *e);
/* From now on these; the position is set. */
void loader_replace(struct hr_loader *l, struct plan *plan, struct driver *driver);
void loader_move(struct hr_loader *l, uint64_t epoch, uint64_t step);

#endif
