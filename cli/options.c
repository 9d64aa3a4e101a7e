/* Options that are wrong, and those that `cat` and `inspect` share.
 *
 * getopt_long says '?' for an option it does not know, one that is cut too short to tell, and one that was given a value it
 * does not take; ':' for one without its value. The word itself is all that tells them apart. */
#include "cli.h"
#include "options.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- near names -------------------------------------------------------------------------------------------------- */

#define LONGEST 64

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Insertions, deletions, changes and swaps of neighbours that make a of b. As base/distance.h, which is the library's own:
 * programs use nothing of it but headrace.h. */
static size_t distance(const char *a, const char *b)
{
    size_t rows[3][LONGEST + 1], n = strlen(a), m = strlen(b);
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    if (n > LONGEST || m > LONGEST)
        return LONGEST;
    for (size_t j = 0; j <= m; j++)
        last[j] = j;
    for (size_t i = 1; i <= n; i++) {
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
        size_t *spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[m];
}

void cli_near_init(struct cli_near *x, const char *wanted)
{
    *x = (struct cli_near){.wanted = wanted, .distance = LONGEST};
}

void cli_near_offer(struct cli_near *x, const char *name)
{
    size_t d = distance(x->wanted, name), allowed = strlen(x->wanted) / 3;
    if (d < x->distance && d <= (allowed > 1 ? allowed : 1)) {
        x->name = name;
        x->distance = d;
    }
}

/* ---- options that are wrong -------------------------------------------------------------------------------------- */

/* "--shuf, --seed": how many options begin with `word`, of n characters; the first two in *a and *b. */
static int beginning(const struct option *options, const char *word, size_t n, const char **a,
                     const char **b)
{
    int found = 0;
    for (const struct option *o = options; o->name; o++)
        if (!strncmp(o->name, word, n)) {
            if (!o->name[n]) {
                *a = o->name;
                return 1;
            }
            if (found < 2)
                *(found ? b : a) = o->name;
            found++;
        }
    return found;
}

int cli_bad_option(const char *command, int c, char **argv, const struct option *options)
{
    const char *word = argv[optind - 1], *a = "", *b = "";
    if (strncmp(word, "--", 2) || !word[2])
        return cli_usage(command, "option '-%c' is not known: options are words, such as --%s",
                         optopt, options->name);
    size_t n = strcspn(word + 2, "=");
    int found = beginning(options, word + 2, n, &a, &b);
    if (c == ':')
        return cli_usage(command, "--%s lacks its value", a);
    if (found > 1)
        return cli_usage(command, "option '%s' may be --%s or --%s%s", word, a, b,
                         found > 2 ? ", or others" : "");
    if (found == 1)
        return cli_usage(command, "--%s takes no value", a);
    struct cli_near near;
    cli_near_init(&near, cli_keep_text(word + 2, n));
    for (const struct option *o = options; o->name; o++)
        cli_near_offer(&near, o->name);
    if (near.name)
        return cli_usage(command, "option '--%.*s' is not known; did you mean --%s?", (int)n,
                         word + 2, near.name);
    return cli_usage(command, "option '--%.*s' is not known", (int)n, word + 2);
}

int cli_given_once(const char *command, const struct option *option, uint64_t bit, uint64_t *given)
{
    if (option->has_arg != no_argument && (*given & bit))
        return cli_usage(command, "--%s is given twice: one value is expected", option->name);
    *given |= bit;
    return EXIT_OK;
}

/* ---- an archive and an array --------------------------------------------------------------------------------------- */

enum { O_HELP = 256, O_STORAGE, O_OWN };
#define MOST_OWN 8

int place_read(int argc, char **argv, const char *usage, const struct place_option *own,
               struct place *p)
{
    struct option options[MOST_OWN + 3] = {{"options", required_argument, NULL, O_STORAGE},
                                           {"help", no_argument, NULL, O_HELP}};
    uint64_t given = 0;
    int c, index, rc;
    for (int i = 0; i < MOST_OWN && own[i].name; i++)
        options[i + 2] = (struct option){
            own[i].name, own[i].value ? required_argument : no_argument, NULL, O_OWN + i};
    *p = (struct place){0};
    opterr = 0;
    while ((c = getopt_long(argc, argv, ":h", options, &index)) != -1) {
        if (c == 'h' || c == O_HELP) {
            fputs(usage, stdout);
            rc = cli_finish();
            return rc ? rc : -1;
        }
        if (c == '?' || c == ':')
            return cli_bad_option(argv[0], c, argv, options);
        if ((rc = cli_given_once(argv[0], &options[index], UINT64_C(1) << index, &given)))
            return rc;
        if (c == O_STORAGE)
            p->storage = optarg;
        else if (own[c - O_OWN].value)
            *own[c - O_OWN].value = optarg;
        else
            *own[c - O_OWN].set = true;
    }
    if (argc - optind < 1 || argc - optind > 2)
        return cli_usage(argv[0], "an archive and at most one array are expected");
    p->url = argv[optind];
    p->array = argc - optind > 1 ? argv[optind + 1] : NULL;
    return EXIT_OK;
}
