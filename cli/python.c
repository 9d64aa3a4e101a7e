/* The commands that are made in Python, where the tables, pictures and progress bars are: this program becomes Python.
 *
 * The interpreter beside this program is the one the package was installed with; python3 on the PATH is the next guess.
 * Each is asked whether it knows the package before the process becomes it, so that what is missing can be named. */
#include "cli.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Whether `python` starts and has the package. */
static int has_package(const char *python)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        int nothing = open("/dev/null", O_RDWR);
        for (int fd = 0; nothing >= 0 && fd < 3; fd++)
            dup2(nothing, fd);
        execlp(python, python, "-c", "import headrace._cli", (char *)NULL);
        _exit(127);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* NAME in the folder of this program. */
static int beside(const char *name, char *out, size_t size)
{
    char program[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n < 0)
        return 0;
    program[n] = '\0';
    char *slash = strrchr(program, '/');
    return slash &&
           snprintf(out, size, "%.*s/%s", (int)(slash - program), program, name) < (int)size &&
           !access(out, X_OK);
}

static const char *find_python(char *path, size_t size)
{
    static const char *const names[] = {"python3", "python"};
    for (int i = 0; i < 2; i++)
        if (beside(names[i], path, size) && has_package(path))
            return path;
    return has_package("python3") ? "python3" : NULL;
}

int command_python(int argc, char **argv)
{
    char path[PATH_MAX];
    const char *python = find_python(path, sizeof path);
    char **args = calloc((size_t)argc + 4, sizeof *args);
    if (!python || !args) {
        fprintf(
            stderr,
            "headrace: %s runs in Python, and neither the python3 beside this program nor the one "
            "on the PATH has the package: pip install 'headrace[%s]'\n",
            argv[0], strcmp(argv[0], "demo") != 0 ? "cells" : "demo");
        free(args);
        return EXIT_FAILED;
    }
    args[0] = (char *)(uintptr_t)python;
    args[1] = (char *)(uintptr_t) "-m";
    args[2] = (char *)(uintptr_t) "headrace._cli";
    memcpy(args + 3, argv, (size_t)argc * sizeof *args);
    fflush(stdout);
    execvp(python, args);
    fprintf(stderr, "headrace: starting %s: %s\n", python, strerror(errno));
    free(args);
    return EXIT_FAILED;
}
