/* See request.h. The options of `plan` and `bench` are those of Samples.batches in Python, by the same names. */
#include "request.h"
#include "options.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char common[] =
    "Samples\n"
    "  --along DIM          the sample axis; DIM,DIM: each combination; may be repeated\n"
    "  --along DIM=patch:SIZE[/STRIDE][:EDGE]   patches; EDGE is valid, clip, pad or reflect\n"
    "  --along DIM=crop:SIZE[/PARTS]            random crops; NAME=draws:N: so many of each\n"
    "  --view VIEW          one tensor; may be repeated (see below)\n"
    "  --sel DIM=LABEL      keep the samples whose coordinate fits; A:B is a range, both ends "
    "included\n"
    "  --isel DIM=A:B       keep the samples whose position lies in a slice, by Python's rules\n"
    "  --concat DIM         the archives (several) are one behind the other along DIM\n"
    "  --combine NAME=ARCHIVE   instead of ARCHIVE, twice or more: side by side, arrays are "
    "NAME/ARRAY\n"
    "  --options JSON       storage options, such as '{\"headers\": {\"Authorization\": \"…\"}}'\n"
    "Loader\n"
    "  --batch N            rows a batch on this rank, or …\n"
    "  --global-batch N     … over all ranks: one of the two\n"
    "  --shuffle[=global]   the spread order; or an exact permutation, for what fits the budget\n"
    "  --seed N             of the order (0)\n"
    "  --memory SIZE        budget, such as 512MiB or 4GB (a quarter of what may be used, at most "
    "4 GiB)\n"
    "  --spread N           blocks open at any moment (16)\n"
    "  --block N            anchor chunk cells a block (from geometry)\n"
    "  --streams N          canonical sequences of an epoch (the world size)\n"
    "  --rank N --world N   this process among all (0 of 1)\n"
    "  --remainder HOW      drop, pad, short or wrap\n"
    "  --weights NAME       how often each sample appears in an epoch: an array of numbers; or\n"
    "  --weights NAME=balanced      every value of NAME as often; NAME=VALUE:W,VALUE:W…: as given\n"
    "  --stratify NAME[,NAME…]      batches hold the values of NAME in their shares; with "
    "--shuffle\n"
    "                       NAME: an array along a sample axis, or month, hour, season, time.day, "
    "…\n"
    "  --dtype TYPE         of tensors whose view names none: f4, float16, bfloat16, …\n"
    "  --missing HOW        what stands for chunks that do not exist: fill, nan or error\n"
    "  --on-error HOW       raise, or mask: rows of a chunk that cannot be read stay, marked\n"
    "  --workers N          threads that decode (the cores this process may use)\n"
    "  --json               as JSON\n"
    "What may be repeated adds up; all others are given once.\n";

static const char language[] =
    "\n"
    "A view is NAME=ARRAY[,ARRAY…][;PART]…: the tensor NAME, out of one array or several stacked.\n"
    "  time=6               on the sample axis: the step 6 after the sample; the dimension is "
    "dropped\n"
    "  time=-6,0            the steps -6 … 0                    time=window:7   the same, 7 steps\n"
    "  time=lag:6h          the step 6 hours before the sample, by coordinate (-6h: after)\n"
    "  time=lag:6h,30min    or the nearest within 30 minutes\n"
    "  time=-6,0:gaps=drop  no samples whose steps run over a gap; gaps=6h: neighbours farther "
    "apart\n"
    "  time=-12,0,6         every sixth of them\n"
    "  level=850            elsewhere, by label; a single one drops the dimension\n"
    "  level=500:1000       a range, both ends included; lat=60:-60:2 takes every second\n"
    "  level=500|850        a list\n"
    "  lat@=3               by index: one, a range lat@=3:10 or lat@=::2, or a list lat@=0|4|7\n"
    "  dtype=f4             the tensor's type                   decode=no  packed numbers as "
    "stored\n"
    "  stack=DIM            the dimension that several arrays are stacked on (channel)\n"
    "  constant=yes         no sample axis: the same for all samples\n"
    "  join=inner           an array of another archive, by the values of its coordinate; left: "
    "NaN\n"
    "                       where there is none     tolerance=3h  the nearest one so far off\n"
    "  on=DIM[:AXIS]        which dimension is joined, and on which sample axis\n"
    "Double quotes protect ; : | in a label: --sel 'time=\"2020-01-01T06:00\":2021'.\n"
    "\n"
    "  --view 'x=t2m,u10;time=-6,0' --view 'y=t2m;time=6'\n"
    "  --combine era5=a.zarr --combine sst=b.zarr --view x=era5/t2m --view 'y=sst/sst;join=left'\n";

enum {
    O_ALONG = 256,
    O_VIEW,
    O_SEL,
    O_ISEL,
    O_CONCAT,
    O_COMBINE,
    O_WEIGHTS,
    O_STRATIFY,
    O_OPTIONS,
    O_BATCH,
    O_GLOBAL,
    O_SHUFFLE,
    O_SEED,
    O_MEMORY,
    O_SPREAD,
    O_BLOCK,
    O_STREAMS,
    O_RANK,
    O_WORLD,
    O_REMAINDER,
    O_DTYPE,
    O_MISSING,
    O_ON_ERROR,
    O_WORKERS,
    O_JSON,
    O_EPOCHS,
    O_STEPS,
    O_STEP_TIME
};
static const struct option options[] = {
    {"epochs", required_argument, NULL, O_EPOCHS}, /* the first three: bench alone */
    {"steps", required_argument, NULL, O_STEPS},
    {"step-time", required_argument, NULL, O_STEP_TIME},
    {"along", required_argument, NULL, O_ALONG},
    {"view", required_argument, NULL, O_VIEW},
    {"sel", required_argument, NULL, O_SEL},
    {"isel", required_argument, NULL, O_ISEL},
    {"concat", required_argument, NULL, O_CONCAT},
    {"combine", required_argument, NULL, O_COMBINE},
    {"weights", required_argument, NULL, O_WEIGHTS},
    {"stratify", required_argument, NULL, O_STRATIFY},
    {"options", required_argument, NULL, O_OPTIONS},
    {"batch", required_argument, NULL, O_BATCH},
    {"global-batch", required_argument, NULL, O_GLOBAL},
    {"shuffle", optional_argument, NULL, O_SHUFFLE},
    {"seed", required_argument, NULL, O_SEED},
    {"memory", required_argument, NULL, O_MEMORY},
    {"spread", required_argument, NULL, O_SPREAD},
    {"block", required_argument, NULL, O_BLOCK},
    {"streams", required_argument, NULL, O_STREAMS},
    {"rank", required_argument, NULL, O_RANK},
    {"world", required_argument, NULL, O_WORLD},
    {"remainder", required_argument, NULL, O_REMAINDER},
    {"dtype", required_argument, NULL, O_DTYPE},
    {"missing", required_argument, NULL, O_MISSING},
    {"on-error", required_argument, NULL, O_ON_ERROR},
    {"workers", required_argument, NULL, O_WORKERS},
    {"json", no_argument, NULL, O_JSON},
    {"help", no_argument, NULL, 'h'},
    {0}};
#define ONLY_BENCH 3

/* ---- values ------------------------------------------------------------------------------------------------------ */

static int read_count(const struct request *r, const char *option, const char *text, int64_t least,
                      int64_t *out)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (errno || end == text || *end || v < least)
        return cli_usage(r->command, "--%s %s: an integer of at least %lld is expected", option,
                         text, (long long)least);
    *out = v;
    return EXIT_OK;
}

static int read_seed(const struct request *r, const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    if (errno || end == text || *end || strchr(text, '-'))
        return cli_usage(r->command, "--seed %s: an integer from 0 to 2⁶⁴ - 1 is expected", text);
    return EXIT_OK;
}

/* "512MiB", "4 GB", "1e9" */
static int read_size(const struct request *r, const char *text, uint64_t *out)
{
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"", 1},
                 {"b", 1},
                 {"k", 1e3},
                 {"kb", 1e3},
                 {"m", 1e6},
                 {"mb", 1e6},
                 {"g", 1e9},
                 {"gb", 1e9},
                 {"t", 1e12},
                 {"tb", 1e12},
                 {"ki", 1024},
                 {"kib", 1024},
                 {"mi", 1048576},
                 {"mib", 1048576},
                 {"gi", 1073741824.},
                 {"gib", 1073741824.},
                 {"ti", 1099511627776.},
                 {"tib", 1099511627776.}};
    char *unit;
    double v = strtod(text, &unit);
    unit += strspn(unit, " ");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (unit != text && !strcasecmp(unit, units[i].name) && v > 0 && v * units[i].bytes >= 1 &&
            v * units[i].bytes < 9e18) {
            *out = (uint64_t)(v * units[i].bytes);
            return EXIT_OK;
        }
    return cli_usage(r->command, "--memory %s: a size such as 512MiB or 4GB is expected", text);
}

/* The place of `text` in a list that ends with NULL, plus `first`. */
static int read_choice(const struct request *r, const char *option, const char *text,
                       const char *const *names, int first, int *out)
{
    for (int i = 0; names[i]; i++)
        if (!strcmp(names[i], text)) {
            *out = first + i;
            return EXIT_OK;
        }
    fprintf(stderr, "headrace: %s: --%s %s: one of", r->command, option, text);
    for (int i = 0; names[i]; i++)
        fprintf(stderr, "%s %s", i ? "," : "", names[i]);
    fputc('\n', stderr);
    return cli_unknown(r->command);
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static int take_number(struct request *r, int c, const char *name, const char *text)
{
    struct hr_loader_options *o = &r->loader;
    int64_t *places[] = {
        [O_BATCH - O_BATCH] = &o->n,         [O_GLOBAL - O_BATCH] = &o->global_batch,
        [O_SPREAD - O_BATCH] = &o->spread,   [O_BLOCK - O_BATCH] = &o->block,
        [O_STREAMS - O_BATCH] = &o->streams, [O_RANK - O_BATCH] = &o->rank,
        [O_WORLD - O_BATCH] = &o->world,     [O_EPOCHS - O_BATCH] = &r->epochs,
        [O_STEPS - O_BATCH] = &r->steps};
    return read_count(r, name, text, c != O_RANK, places[c - O_BATCH]);
}

static int take_choice(struct request *r, int c, const char *name, const char *text)
{
    static const char *const remainders[] = {"drop", "pad", "short", "wrap", NULL};
    static const char *const fills[] = {"fill", "nan", "error", NULL};
    static const char *const errors[] = {"raise", "mask", NULL};
    if (c == O_REMAINDER)
        return read_choice(r, name, text, remainders, HR_DROP, &r->loader.remainder);
    if (c == O_MISSING)
        return read_choice(r, name, text, fills, HR_MISSING_FILL, &r->loader.missing);
    return read_choice(r, name, text, errors, HR_ON_ERROR_RAISE, &r->loader.on_error);
}

static int take_shuffle(struct request *r, const char *text)
{
    static const char *const kinds[] = {"spread", "global", NULL};
    if (!text)
        text = "spread";
    return read_choice(r, "shuffle", text, kinds, HR_SHUFFLE_SPREAD, &r->loader.shuffle);
}

static int take_other(struct request *r, int c, const char *text)
{
    char *end;
    int64_t workers = 0;
    struct hr_error e;
    int rc;
    switch (c) {
    case O_SEED:
        return read_seed(r, text, &r->loader.seed);
    case O_MEMORY:
        return read_size(r, text, &r->loader.memory);
    case O_DTYPE:
        r->loader.dtype = (int)hr_dtype_parse(text);
        return r->loader.dtype
                   ? EXIT_OK
                   : cli_usage(r->command, "--dtype %s: no data type has that name", text);
    case O_WORKERS:
        if ((rc = read_count(r, "workers", text, 1, &workers)))
            return rc;
        return hr_configure(workers > 4096 ? 4096 : (int)workers, 0, 0, &e) < 0 ? cli_fail(&e)
                                                                                : EXIT_OK;
    default: /* O_STEP_TIME */
        r->step_seconds = strtod(text, &end) / 1e3;
        if (end == text || *end || !(r->step_seconds >= 0) || r->step_seconds > 3600)
            return cli_usage(r->command, "--step-time %s: a number of milliseconds is expected",
                             text);
        return EXIT_OK;
    }
}

static int take_archive(struct request *r, const char *name, const char *url)
{
    if (r->n_urls == REQUEST_MOST_ARCHIVES)
        return cli_usage(r->command, "at most %d archives are taken here", REQUEST_MOST_ARCHIVES);
    r->names[r->n_urls] = name;
    r->urls[r->n_urls++] = url;
    return EXIT_OK;
}

static int take_combine(struct request *r, const char *text)
{
    size_t n = strcspn(text, "=");
    if (!n || !text[n] || !text[n + 1])
        return cli_usage(r->command, "--combine %s: NAME=ARCHIVE is expected", text);
    return take_archive(r, cli_keep_text(text, n), text + n + 1);
}

static int take(struct request *r, int c, const char *name, const char *text)
{
    switch (c) {
    case O_CONCAT:
        r->concat = text;
        return EXIT_OK;
    case O_COMBINE:
        return take_combine(r, text);
    case O_WEIGHTS:
        r->weights = text;
        return EXIT_OK;
    case O_STRATIFY:
        r->stratify = text;
        return EXIT_OK;
    case O_ALONG:
        return along_take(r, text);
    case O_VIEW:
        if (r->n_views == REQUEST_MOST_VIEWS)
            return cli_usage(r->command, "at most %d views are taken here", REQUEST_MOST_VIEWS);
        r->views[r->n_views++] = text;
        return EXIT_OK;
    case O_SEL:
        r->sel = text;
        return EXIT_OK;
    case O_ISEL:
        r->isel = text;
        return EXIT_OK;
    case O_OPTIONS:
        r->storage = text;
        return EXIT_OK;
    case O_JSON:
        r->json = true;
        return EXIT_OK;
    case O_SHUFFLE:
        return take_shuffle(r, text);
    case O_REMAINDER:
    case O_MISSING:
    case O_ON_ERROR:
        return take_choice(r, c, name, text);
    case O_SEED:
    case O_MEMORY:
    case O_DTYPE:
    case O_WORKERS:
    case O_STEP_TIME:
        return take_other(r, c, text);
    default:
        return take_number(r, c, name, text);
    }
}

/* Those that add to what was said before. */
static bool is_list(int c)
{
    return c == O_ALONG || c == O_VIEW || c == O_COMBINE;
}

static int complete(const struct request *r)
{
    if (!r->along)
        return cli_usage(r->command,
                         "--along says which dimension samples run over, such as --along time; of "
                         "single cells: headrace cells bench");
    if (!r->n_views)
        return cli_usage(r->command, "--view says what a sample takes, such as --view x=t2m");
    if ((r->loader.n != 0) == (r->loader.global_batch != 0))
        return cli_usage(r->command,
                         "give the batch size: exactly one of --batch and --global-batch");
    if (r->loader.world && r->loader.rank >= r->loader.world)
        return cli_usage(r->command, "--rank %lld: ranks of a world of %lld count from 0 to %lld",
                         (long long)r->loader.rank, (long long)r->loader.world,
                         (long long)r->loader.world - 1);
    if (r->loader.rank && !r->loader.world)
        return cli_usage(r->command, "--rank needs --world");
    return EXIT_OK;
}

int request_read(int argc, char **argv, const char *usage, bool bench, struct request *r)
{
    const struct option *known = options + (bench ? 0 : ONLY_BENCH);
    uint64_t given = 0;
    int c, index, rc;
    opterr = 0;
    *r = (struct request){.command = argv[0], .loader = HR_LOADER_OPTIONS, .epochs = 1};
    while ((c = getopt_long(argc, argv, ":h", known, &index)) != -1) {
        if (c == 'h') {
            printf("%s\n%s%s", usage, common, language);
            rc = cli_finish();
            return rc ? rc : -1;
        }
        if (c == '?' || c == ':')
            return cli_bad_option(r->command, c, argv, known);
        if (!is_list(c) &&
            (rc = cli_given_once(r->command, &known[index], UINT64_C(1) << index, &given)))
            return rc;
        if ((rc = take(r, c, known[index].name, optarg)))
            return rc;
    }
    bool combined = r->n_urls > 0;
    if (combined ? argc > optind : r->concat ? argc - optind < 2 : argc - optind != 1)
        return cli_usage(r->command, "%s",
                         combined    ? "with --combine each archive has its name: NAME=ARCHIVE"
                         : r->concat ? "--concat: several archives are expected"
                                     : "one archive is expected, a path or a URL");
    for (; optind < argc; optind++)
        if ((rc = take_archive(r, NULL, argv[optind])))
            return rc;
    if (combined && r->concat)
        return cli_usage(r->command, "give --concat or --combine");
    return complete(r);
}
