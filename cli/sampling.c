/* --weights and --stratify, as weights= and stratify= of Samples.batches in Python.
 *
 *     --weights NAME                    an array of numbers along a sample axis
 *     --weights NAME=balanced           every value of NAME comes as often
 *     --weights NAME=VALUE:W,VALUE:W…   a weight for each value of NAME
 *     --stratify NAME[,NAME…]           bins: the values of NAME; of several, their combinations */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "column.h"

#define MOST_BINS 1024

/* Samples that are left of each class. */
static int count_left(const struct opened *o, const struct classes *c, double *count)
{
    enum { RUN = 4096 };
    struct hr_error e;
    int64_t n, ids[RUN];
    if (hr_samples_count(o->samples, &n, &e) < 0)
        return cli_fail(&e);
    for (int64_t i = 0; i < n; i += RUN) {
        int64_t some = n - i < RUN ? n - i : RUN;
        if (hr_samples_ids(o->samples, i, some, ids, &e) < 0)
            return cli_fail(&e);
        for (int64_t j = 0; j < some; j++)
            count[c->codes[ids[j]]]++;
    }
    return EXIT_OK;
}

static void balance(const struct classes *c, const double *count, double *weights)
{
    double all = 0, there = 0;
    for (int64_t i = 0; i < c->n; i++) {
        all += count[i];
        there += count[i] > 0;
    }
    for (int64_t i = 0; i < c->n; i++)
        weights[i] = count[i] > 0 ? all / there / count[i] : 0;
}

static int64_t class_of(const struct classes *c, const char *label)
{
    char *end;
    double v = strtod(label, &end);
    for (int64_t i = 0; i < c->n; i++)
        if (c->texts ? !strcmp(c->texts[i], label) : end != label && !*end && c->numbers[i] == v)
            return i;
    return -1;
}

/* "VALUE:W,VALUE:W" */
static int listed(const struct request *r, const char *name, const char *text,
                  const struct classes *c, const double *count, double *weights)
{
    for (int64_t i = 0; i < c->n; i++)
        weights[i] = -1;
    for (const char *p = text;; p++) {
        size_t n = strcspn(p, ",");
        const char *one = cli_keep_text(p, n), *colon = strrchr(one, ':');
        char *end = NULL;
        double w = colon ? strtod(colon + 1, &end) : -1;
        if (!colon || end == colon + 1 || *end || !(w >= 0))
            return cli_usage(r->command,
                             "--weights %s=%s: balanced, or VALUE:WEIGHT,VALUE:WEIGHT… is "
                             "expected; weights are numbers from 0 on",
                             name, one);
        const char *label = cli_keep_text(one, (size_t)(colon - one));
        int64_t at = class_of(c, label);
        if (at < 0)
            return cli_usage(r->command, "--weights: %s has no value %s", name, label);
        weights[at] = w;
        p += n;
        if (!*p)
            break;
    }
    for (int64_t i = 0; i < c->n; i++)
        if (weights[i] < 0 && count[i] > 0) {
            char number[32];
            snprintf(number, sizeof number, "%.15g", c->numbers ? c->numbers[i] : 0);
            return cli_usage(r->command,
                             "--weights: the weight of %s %s is missing, which samples have; 0 "
                             "leaves a class out",
                             name, c->texts ? c->texts[i] : number);
        } else {
            weights[i] = weights[i] > 0 ? weights[i] : 0;
        }
    return EXIT_OK;
}

static int weights_add(const struct request *r, const struct opened *o,
                       struct hr_loader_options *out)
{
    const char *equals = strchr(r->weights, '=');
    size_t n = equals ? (size_t)(equals - r->weights) : strlen(r->weights);
    const char *name = cli_keep_text(r->weights, n);
    struct column column;
    struct classes c;
    int rc = column_read(r, o, "--weights", name, &column);
    if (rc)
        return rc;
    out->n_positions = column.n;
    if (!equals && column.texts)
        return cli_usage(r->command,
                         "--weights: %s holds texts; %s=balanced, or %s=VALUE:WEIGHT,… gives them "
                         "weights",
                         name, name, name);
    if (!equals) {
        out->weights = column.numbers;
        return EXIT_OK;
    }
    if (!classes_find(&column, MOST_CLASSES, &c))
        return cli_usage(r->command, "--weights: %s has more than %d different values", name,
                         MOST_CLASSES);
    double *weights = cli_keep((size_t)c.n * sizeof *weights),
           *count = cli_keep((size_t)c.n * sizeof *count);
    if ((rc = count_left(o, &c, count)))
        return rc;
    if (!strcmp(equals + 1, "balanced"))
        balance(&c, count, weights);
    else if ((rc = listed(r, name, equals + 1, &c, count, weights)))
        return rc;
    out->classes = c.codes;
    out->class_weights = weights;
    out->n_classes = c.n;
    return EXIT_OK;
}

/* Those combinations that there are, in order; c->codes become theirs. */
static void compress(const uint32_t *codes, uint32_t most, int64_t n, struct classes *c)
{
    uint16_t *number = cli_keep(((size_t)most + 1) * sizeof *number);
    for (int64_t i = 0; i < n; i++)
        number[codes[i]] = 1;
    c->n = 0;
    for (uint32_t v = 0; v < most; v++)
        if (number[v])
            number[v] = (uint16_t)c->n++;
    for (int64_t i = 0; i < n; i++)
        c->codes[i] = number[codes[i]];
}

static int strata_add(const struct request *r, const struct opened *o,
                      struct hr_loader_options *out)
{
    struct classes all = {.n = 1};
    for (const char *p = r->stratify;; p++) {
        size_t n = strcspn(p, ",");
        const char *name = cli_keep_text(p, n);
        struct column column;
        struct classes c;
        int rc = column_read(r, o, "--stratify", name, &column);
        if (rc)
            return rc;
        if (!classes_find(&column, MOST_BINS, &c))
            return cli_usage(r->command,
                             "--stratify: %s has more than %d different values; bins of them are "
                             "made in Python",
                             name, MOST_BINS);
        uint32_t *codes = cli_keep((size_t)column.n * sizeof *codes);
        for (int64_t i = 0; i < column.n; i++)
            codes[i] = (all.codes ? all.codes[i] * (uint32_t)c.n : 0) + c.codes[i];
        int64_t bins = all.n;
        all.codes = c.codes;
        compress(codes, (uint32_t)(bins * c.n), column.n, &all);
        if (all.n > MOST_BINS)
            return cli_usage(r->command, "--stratify %s: more than %d bins together", r->stratify,
                             MOST_BINS);
        out->n_positions = column.n;
        p += n;
        if (!*p)
            break;
    }
    out->strata = all.codes;
    out->n_strata = all.n;
    return EXIT_OK;
}

int sampling_add(const struct request *r, const struct opened *o, struct hr_loader_options *out)
{
    int rc = EXIT_OK;
    if (r->weights)
        rc = weights_add(r, o, out);
    if (!rc && r->stratify)
        rc = strata_add(r, o, out);
    return rc;
}
