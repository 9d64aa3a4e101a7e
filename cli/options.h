/* Command lines: options that are wrong, with the nearest right one; and what `cat` and `inspect` are given, a place in an
 * archive. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H
#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The name nearest to a wanted one: at most a third of it, or one character, has to change. */
struct cli_near {
    const char *wanted;
    const char *name; /* NULL: none is near */
    size_t distance;
};
void cli_near_init(struct cli_near *x, const char *wanted);
void cli_near_offer(struct cli_near *x, const char *name); /* must live as long as *x */

/* getopt_long (opterr = 0, optstring ":…") said c, '?' or ':'. Says what is wrong: EXIT_USAGE. */
int cli_bad_option(const char *command, int c, char **argv, const struct option *options);

/* An option with a value, of those that are no lists, is given once: which of two was meant nobody knows. `given`: the bits of
 * those that were. EXIT_OK or EXIT_USAGE. */
int cli_given_once(const char *command, const struct option *option, uint64_t bit, uint64_t *given);

/* ARCHIVE [ARRAY], and how to get at it. */
struct place {
    const char *url, *array, *storage; /* array and storage may be NULL */
};
/* An option of one command: with a value, or one that is set. The last has no name. */
struct place_option {
    const char *name;
    const char **value;
    bool *set;
};
/* EXIT_OK; -1: help was asked for and given; otherwise the exit status. */
int place_read(int argc, char **argv, const char *usage, const struct place_option *own,
               struct place *p);

#endif
