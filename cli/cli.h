/* What the commands of the `headrace` program share. They use the library through headrace.h alone.
 *
 * Exit status: 0 success, 1 failure, 2 a command line that makes no sense. Results go to standard output, messages to
 * standard error as "headrace: …". */
#ifndef CLI_H
#define CLI_H
#include "headrace.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* One file each. argv[0] is the command's name. */
int command_bench(int argc, char **argv);
int command_cat(int argc, char **argv);
int command_inspect(int argc, char **argv);
int command_plan(int argc, char **argv);
int command_python(int argc, char **argv); /* of any name that Python knows */

/* "headrace: <text>": EXIT_FAILED. */
int cli_fail(const struct hr_error *e);
/* "headrace: <command>: <text>" and where help is: EXIT_USAGE. */
int cli_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Where help is: EXIT_USAGE. For after a message of one's own. */
int cli_unknown(const char *command);
/* After the last output: EXIT_FAILED when it could not be written. */
int cli_finish(void);
int cli_show_log(void *unused); /* warnings of the library, while it is waited for; 0 */
/* Zeroed memory that lives until the program ends, which happens here when there is none. */
void *cli_keep(size_t n);
char *cli_keep_text(const char *s, size_t n);
/* Columns that n bytes of UTF-8 take on a terminal. */
int cli_width(const char *s, size_t n);
/* "12,345", kept. */
const char *cli_count(double n);
/* "260.6 kB"; out ≥ 24 bytes. Returns out. */
const char *cli_bytes(char *out, double bytes);
/* "413 µs", "1.36 ms", "41.4 s": three digits; out ≥ 24 bytes. Returns out. */
const char *cli_seconds(char *out, double seconds);

#endif
