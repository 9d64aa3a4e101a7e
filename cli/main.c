/* The `headrace` program: a table of commands. A command is a file of its own and a line here. */
#include "cli.h"
#include "options.h"
#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
};

static const struct command commands[] = {
    {"inspect", command_inspect,
     "what an archive holds: arrays, dimensions, chunks, codecs, sizes"},
    {"cat", command_cat, "the values of an array as raw bytes"},
    {"plan", command_plan, "what an epoch will read, hold and shuffle, before a chunk is fetched"},
    {"bench", command_bench, "how fast batches come"},
    {"verify", command_python, "reads all of an archive and says what is broken in it"},
    {"cells", command_python, "atlases of single cells: cut into chunks, inspected, timed"},
    {"demo", command_python,
     "streams real data, is killed and resumes, leaves a page with pictures"},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static void help(FILE *to)
{
    fputs("usage: headrace COMMAND [OPTION…] ARGUMENT…\n\n"
          "Streams ready-to-train batches straight from scientific archives where they lie.\n\n",
          to);
    for (int i = 0; i < N_COMMANDS; i++)
        fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fputs("\n"
          "  headrace COMMAND --help   how a command is used\n"
          "  headrace --version        the version\n\n"
          "Archives are Zarr v2 and v3 hierarchies: directories; http://, https://, s3://,\n"
          "gs:// and az:// URLs.\n"
          "Exit status: 0 success, 1 failure, 2 wrong usage.\n",
          to);
}

int cli_fail(const struct hr_error *e)
{
    fflush(stdout);
    fprintf(stderr, "headrace: %s\n", e->text);
    return EXIT_FAILED;
}

int cli_unknown(const char *command)
{
    fprintf(stderr, "headrace: 'headrace %s --help' shows how it is used\n", command);
    return EXIT_USAGE;
}

int cli_usage(const char *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "headrace: %s: ", command);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return cli_unknown(command);
}

int cli_finish(void)
{
    if (!fflush(stdout) && !ferror(stdout))
        return EXIT_OK;
    fprintf(stderr, "headrace: writing the output: %s\n", strerror(errno));
    return EXIT_FAILED;
}

void *cli_keep(size_t n)
{
    static struct kept {
        struct kept *before;
        max_align_t data[];
    } * last; /* a chain that a leak checker can follow */
    struct kept *x = n < SIZE_MAX / 2 ? calloc(1, sizeof *x + n) : NULL;
    if (!x) {
        fputs("headrace: out of memory\n", stderr);
        exit(EXIT_FAILED);
    }
    x->before = last;
    last = x;
    return x->data;
}

char *cli_keep_text(const char *s, size_t n)
{
    return memcpy(cli_keep(n + 1), s, n);
}

int cli_width(const char *s, size_t n)
{
    int width = 0;
    for (size_t i = 0; i < n; i++)
        width += ((unsigned char)s[i] & 0xC0) != 0x80;
    return width;
}

const char *cli_count(double n)
{
    char digits[32];
    int size = snprintf(digits, sizeof digits, "%.0f", n);
    char *out = cli_keep((size_t)size * 2), *p = out;
    for (int i = 0; i < size; i++) {
        if (i && (size - i) % 3 == 0)
            *p++ = ',';
        *p++ = digits[i];
    }
    return out;
}

const char *cli_bytes(char *out, double bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    int u = 0;
    for (; bytes >= 999.95 && u < 6; u++)
        bytes /= 1000;
    snprintf(out, 24, u ? "%.1f %s" : "%.0f %s", bytes, units[u]);
    return out;
}

const char *cli_seconds(char *out, double seconds)
{
    static const char *const units[] = {"s", "ms", "µs"};
    int u = 0;
    for (; seconds > 0 && seconds < 0.9995 && u < 2; u++)
        seconds *= 1000;
    int digits = seconds <= 0 ? 0 : seconds < 9.995 ? 2 : seconds < 99.95 ? 1 : 0;
    snprintf(out, 24, "%.*f %s", digits, seconds, units[u]);
    return out;
}

int cli_show_log(void *unused)
{
    int level;
    char text[1024];
    (void)unused;
    while (hr_log_next(&level, text, sizeof text))
        if (level >= 30 && !getenv("HEADRACE_LOG")) /* by which it prints them itself */
            fprintf(stderr, "headrace: %s\n", text);
    return 0;
}

static int run(int argc, char **argv, int (*command)(int argc, char **argv))
{
    hr_on_wait(cli_show_log, NULL);
    int rc = command(argc, argv);
    cli_show_log(NULL);
    return rc;
}

int main(int argc, char **argv)
{
    setlocale(LC_CTYPE, "");
    if (argc < 2) {
        help(stderr);
        return EXIT_USAGE;
    }
    const char *name = argv[1];
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        help(stdout);
        return cli_finish();
    }
    if (!strcmp(name, "--version")) {
        printf("headrace %s\n", hr_version());
        return cli_finish();
    }
    for (int i = 0; i < N_COMMANDS; i++)
        if (!strcmp(name, commands[i].name))
            return run(argc - 1, argv + 1, commands[i].run);
    struct cli_near near;
    cli_near_init(&near, name);
    for (int i = 0; i < N_COMMANDS; i++)
        cli_near_offer(&near, commands[i].name);
    if (near.name)
        fprintf(stderr, "headrace: there is no command '%s'; did you mean '%s'?\n", name,
                near.name);
    else
        fprintf(stderr, "headrace: there is no command '%s'; 'headrace --help' lists them\n", name);
    return EXIT_USAGE;
}
