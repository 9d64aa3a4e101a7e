/* What `plan` and `bench` are asked for: one archive or several, views, a choice of samples and a loader's options, read from a command
 * line and turned into the library's objects. view.c reads the part of it that is a small language. */
#ifndef CLI_REQUEST_H
#define CLI_REQUEST_H
#include <stdbool.h>
#include "cli.h"

#define REQUEST_MOST_ARCHIVES 256
#define REQUEST_MOST_VIEWS    64
#define REQUEST_MOST_AXES     8

struct request {
    const char *command;
    const char *urls[REQUEST_MOST_ARCHIVES],
        *names[REQUEST_MOST_ARCHIVES]; /* names: of --combine */
    int n_urls;
    const char *storage, *concat; /* concat: the dimension along which the archives are one */
    const char *along;            /* the first axis */
    struct {
        const char *name, *what; /* what: NULL, each position; else "patch:256" and the like */
    } axes[REQUEST_MOST_AXES];
    int n_axes;
    const char *views[REQUEST_MOST_VIEWS];
    int n_views;
    const char *sel, *isel;         /* on the sample axis; NULL: all samples */
    const char *weights, *stratify; /* as given; NULL: none */
    struct hr_loader_options loader;
    bool json;
    int64_t epochs, steps; /* bench */
    double step_seconds;   /* bench: what a training step takes */
};
struct opened {
    struct hr_archive *archive;
    struct hr_samples *samples;
    struct hr_loader *loader;
};

/* EXIT_OK and a complete request; -1: help was asked for and `usage` (with the options common to both commands) was
 * printed; otherwise the exit status. `bench` allows its own options. */
int request_read(int argc, char **argv, const char *usage, bool bench, struct request *r);
/* EXIT_OK, or the exit status with everything closed again and the reason said. */
int request_open(const struct request *r, struct opened *o);
void request_close(struct opened *o);

/* ---- along.c ----------------------------------------------------------------------------------------------------- */

int along_take(struct request *r, const char *text); /* one --along */
bool along_has(const struct request *r, const char *name, size_t n);
int along_add(const struct request *r, struct hr_samples *s); /* the axes, before any view */

/* ---- sampling.c -------------------------------------------------------------------------------------------------- */

/* --weights and --stratify → the options of a loader over o->samples. */
int sampling_add(const struct request *r, const struct opened *o, struct hr_loader_options *out);

/* ---- view.c ------------------------------------------------------------------------------------------------------ */

/* Add the view that `text` describes to samples along `along`. On failure the reason is said, with a line that shows which
 * part of the text is meant. */
int view_add(const struct request *r, const char *text, struct hr_samples *s);
/* --sel and --isel: `text` is DIM=LABELS or DIM=A:B[:STEP]; *out replaces *s. */
int view_keep(const struct request *r, const char *option, const char *text, bool by_index,
              struct hr_samples **s);

#endif
