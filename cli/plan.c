/* headrace plan: what an epoch will read and hold and how well it is shuffled, before a chunk is fetched.
 *
 * The numbers are the library's (hr_loader_plan_json; docs/reports.md has the members); here they become a table of a label
 * and sentences, in the same words as Loader.plan() prints in Python. */
#include "json.h"
#include "request.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: headrace plan [OPTION…] ARCHIVE --along DIM --view VIEW … --batch N\n\n"
    "Shows what an epoch will read, hold in memory and how well it is shuffled, from the\n"
    "archive's geometry alone: no chunk is fetched.\n";

#define LABEL   12
#define COLUMNS 96

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static void row(const char *label, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A label and a text, broken at spaces so that it stays within COLUMNS. */
static void row(const char *label, const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    int at = printf("%-*s", LABEL, label);
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, " ");
        int width = cli_width(p, n);
        if (at > LABEL && at + 1 + width > COLUMNS)
            at = printf("\n%*s", LABEL, "") - 1;
        else if (at > LABEL)
            at += printf(" ");
        printf("%.*s", (int)n, p);
        at += width;
        p += n + (p[n] == ' ');
    }
    putchar('\n');
}

static const char *count(const struct value *object, const char *key)
{
    return cli_count(value_number(object, key, 0));
}

static const char *bytes(const struct value *object, const char *key)
{
    return cli_bytes(cli_keep(24), value_number(object, key, 0));
}

static const char *plural(const struct value *object, const char *key)
{
    return value_number(object, key, 0) == 1 ? "" : "s";
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static const char *tensor_shape(const struct value *view, const struct value *plan)
{
    char *out = cli_keep(1024), *p = out, *end = out + 1023;
    p += snprintf(p, (size_t)(end - p), "(%s", value_text(plan, "rows", "?"));
    const struct value *shape = value_get(view, "shape");
    for (const struct value *n = shape ? shape->first : NULL; n && p < end - 32; n = n->next)
        p += snprintf(p, (size_t)(end - p), ", %.24s", n->text);
    snprintf(p, (size_t)(end - p), ")");
    return out;
}

static void print_views(const struct value *samples, const struct value *plan)
{
    const struct value *views = value_get(samples, "views");
    for (const struct value *v = views ? views->first : NULL; v; v = v->next)
        row(v == views->first ? "batch" : "", "%s  %s %s", value_text(v, "name", ""),
            tensor_shape(v, plan), value_text(v, "dtype", ""));
}

static void print_order(const struct value *p)
{
    const char *shuffle = value_text(p, "shuffle", "none");
    if (!strcmp(shuffle, "none"))
        row("order", "as in the archive");
    else if (!strcmp(shuffle, "global"))
        row("order", "an exact permutation, seed %s", value_text(p, "seed", "0"));
    else if (value_number(p, "blocks", 0) == 1)
        row("order", "spread, seed %s: one block of %s chunk cell%s", value_text(p, "seed", "0"),
            count(p, "block"), plural(p, "block"));
    else
        row("order", "spread, seed %s: %s of %s blocks open, each of %s chunk cell%s",
            value_text(p, "seed", "0"), count(p, "open_blocks"), count(p, "blocks"),
            count(p, "block"), plural(p, "block"));
    if (value_number(p, "world", 1) > 1 || value_number(p, "streams", 1) > 1)
        row("ranks", "rank %s of %s, %s stream%s, global batch %s", value_text(p, "rank", "0"),
            value_text(p, "world", "1"), count(p, "streams"), plural(p, "streams"),
            count(p, "global_batch"));
}

static void print_cost(const struct value *p)
{
    const struct value *c = value_get(p, "cost");
    const char *about = value_text(c, "exact", "false"), *again = "each once";
    const char *take = value_number(p, "samples", 0) == 1 ? "the sample takes" : "samples take";
    about = strcmp(about, "true") ? "about " : "";
    double useful = value_number(c, "useful_bytes", 0), read = value_number(c, "read_bytes", 0);
    const char *reads = count(c, "chunk_reads"), *different = count(c, "distinct_chunks");
    if (strcmp(reads, different)) {
        char *words = cli_keep(strlen(different) + 32);
        snprintf(words, strlen(different) + 32, "%s different ones", different);
        again = words;
    }
    row("reads", "%s%s chunk%s an epoch, %s decoded; %s: amplification %.3g", about, reads,
        strcmp(reads, "1") ? "s" : "", bytes(c, "read_bytes"), again,
        value_number(c, "amplification", 1));
    if (useful > read)
        row("", "%s %s: each decoded byte is used %.2f times", take, bytes(c, "useful_bytes"),
            useful / read);
    else
        row("", "%s %s, %.3g %% of what is decoded", take, bytes(c, "useful_bytes"),
            100 * useful / (read > 0 ? read : 1));
    const char *first = count(c, "first_batch_chunks");
    row("first batch", "%s chunk%s, %s decoded", first, strcmp(first, "1") ? "s" : "",
        bytes(c, "first_batch_bytes"));
}

static const char *mode_words(const char *mode)
{
    return !strcmp(mode, "keep")   ? "all chunks stay decoded over epochs"
           : !strcmp(mode, "push") ? "chunks go straight into open batches"
                                   : "chunks are held decoded while they are needed";
}

static void print_memory(const struct value *p)
{
    const struct value *m = value_get(p, "memory");
    if (value_number(m, "comfortable", 0) > 0)
        row("memory", "budget %s; at least %s, from %s on each chunk is read once",
            bytes(m, "budget"), bytes(m, "minimum"), bytes(m, "comfortable"));
    else
        row("memory", "budget %s; at least %s, with any chunks are read again", bytes(m, "budget"),
            bytes(m, "minimum"));
    row("", "a batch %s, largest job %s, tables %s; up to %s batch%s open; %s", bytes(m, "batch"),
        bytes(m, "lane"), bytes(m, "tables"), count(m, "max_open"),
        value_number(m, "max_open", 0) == 1 ? "" : "es", mode_words(value_text(m, "mode", "hold")));
}

static void print_quality(const struct value *p)
{
    const struct value *q = value_get(p, "quality");
    if (!strcmp(value_text(p, "shuffle", "none"), "none") || !value_get(q, "variance"))
        return;
    row("shuffle",
        "variance of batch means %.2g × independent draws (below 1 is better), worst batch %.2g σ",
        value_number(q, "variance", 0), value_number(q, "worst", 0));
    row("", "%.3g different block%s in a batch", value_number(q, "distinct_blocks", 0),
        plural(q, "distinct_blocks"));
}

static void print_list(const struct value *p, const char *key, const char *label)
{
    const struct value *list = value_get(p, key);
    for (const struct value *v = list ? list->first : NULL; v; v = v->next)
        row(label, "%s", v->text);
}

#define CHOICE_CELLS 6

/* One line of the table of choices: v NULL, its head. */
static void choice_cells(const struct value *v, const char *cells[CHOICE_CELLS])
{
    static const char *const head[CHOICE_CELLS] = {"block",    "spread", "memory",
                                                   "at least", "reads",  ""};
    if (!v) {
        memcpy(cells, head, sizeof head);
        return;
    }
    char *reads = cli_keep(32);
    snprintf(reads, 32, "%.3g ×", value_number(v, "amplification", 1));
    cells[0] = count(v, "block");
    cells[1] = count(v, "spread");
    cells[2] = value_number(v, "memory", 0) > 0 ? bytes(v, "memory") : "-";
    cells[3] = bytes(v, "minimum");
    cells[4] = reads;
    cells[5] = !strcmp(value_text(v, "current", ""), "true") ? "now" : "";
}

/* What other blocks and spreads would cost; `memory` is from where on nothing is read again. */
static void print_choices(const struct value *p)
{
    const struct value *list = value_get(p, "choices"), *first = list ? list->first : NULL;
    int width[CHOICE_CELLS] = {0};
    const char *cells[CHOICE_CELLS];
    for (const struct value *v = NULL; first; v = v ? v->next : first) {
        choice_cells(v, cells);
        for (int i = 0; i < CHOICE_CELLS; i++) {
            int w = cli_width(cells[i], strlen(cells[i]));
            width[i] = w > width[i] ? w : width[i];
        }
        if (v && !v->next)
            break;
    }
    for (const struct value *v = NULL; first; v = v ? v->next : first) {
        char line[256] = "";
        size_t k = 0;
        choice_cells(v, cells);
        for (int i = 0; i < CHOICE_CELLS && k < sizeof line; i++)
            k += (size_t)snprintf(line + k, sizeof line - k, "%s%s%*s", i ? "  " : "", cells[i],
                                  width[i] - cli_width(cells[i], strlen(cells[i])), "");
        for (k = strlen(line); k && line[k - 1] == ' '; k--)
            line[k - 1] = 0;
        printf("%-12s%s\n", v ? "" : "choices", line);
        if (v && !v->next)
            break;
    }
}

/* "time × member"; ids are said of one axis only. */
static const char *axes_of(const struct value *samples, bool *plain)
{
    static char out[256];
    const struct value *axes = value_get(samples, "axes");
    size_t k = 0;
    out[0] = 0;
    *plain = true;
    for (const struct value *v = axes ? axes->first : NULL; v && k < sizeof out; v = v->next) {
        *plain &= v == axes->first && !strcmp(value_text(v, "kind", ""), "steps");
        k += (size_t)snprintf(out + k, sizeof out - k, "%s%s", k ? " × " : "",
                              value_text(v, "name", ""));
    }
    return out;
}

static void print_plan(const struct value *samples, const struct value *p)
{
    bool plain;
    const char *along = axes_of(samples, &plain);
    const char *first = value_text(samples, "first_id", ""),
               *last = value_text(samples, "last_id", "");
    if (!plain)
        row("samples", "%s along %s", count(p, "samples"), along);
    else if (!strcmp(first, last))
        row("samples", "%s along %s, id %s", count(p, "samples"), along, first);
    else
        row("samples", "%s along %s, ids %s … %s", count(p, "samples"), along, first, last);
    row("steps", "%s an epoch, of %s row%s; remainder %s", count(p, "steps"), count(p, "rows"),
        plural(p, "rows"), value_text(p, "remainder", ""));
    print_views(samples, p);
    print_order(p);
    print_cost(p);
    print_memory(p);
    print_quality(p);
    print_choices(p);
    print_list(p, "warnings", "warning");
    print_list(p, "advice", "advice");
}

int command_plan(int argc, char **argv)
{
    struct request r;
    struct opened o;
    struct hr_error e;
    char *samples = NULL, *plan = NULL;
    int rc = request_read(argc, argv, usage, false, &r);
    if (rc)
        return rc < 0 ? EXIT_OK : rc;
    if ((rc = request_open(&r, &o)))
        return rc;
    if (hr_samples_json(o.samples, &samples, &e) < 0 ||
        hr_loader_plan_json(o.loader, &plan, &e) < 0)
        rc = cli_fail(&e);
    else if (r.json)
        puts(plan);
    else
        print_plan(json_read(samples), json_read(plan));
    hr_free(samples);
    hr_free(plan);
    request_close(&o);
    return rc ? rc : cli_finish();
}
