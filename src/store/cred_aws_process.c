/* credential_process: a program that prints credentials as JSON.
 *
 * Run without a shell, its words divided as a shell would; in the environment as it was when the
 * store was opened, and in a process group of its own, which is killed as a whole after a minute
 * or when the store is closed. What it prints to standard error is for people: the last line is
 * in the error. PATH is searched here, since posix_spawnp would call getenv. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "store/cred_aws_in.h"

#define LIMIT_S    60
#define SLICE_MS   50 /* how often it is seen that the store was closed */
#define OUTPUT_MAX (256u << 10)

struct process {
    struct aws *aws;
    const char *program; /* as the user wrote it, for errors */
    pid_t pid;
    bool ended;
    int status;   /* as of waitpid */
    int out, err; /* -1: at its end */
    struct buf output, complaint;
    struct arena arena;
};

/* ---- starting -------------------------------------------------------------------------------- */

static const char *find_program(struct process *p)
{
    const char *path = aws_env(&p->aws->user, "PATH");
    if (strchr(p->program, '/'))
        return p->program;
    for (const char *at = path ? path : "/usr/bin:/bin"; at;) {
        size_t n = strcspn(at, ":");
        const char *full = n ? arena_printf(&p->arena, "%.*s/%s", (int)n, at, p->program) : NULL;
        if (full && access(full, X_OK) == 0)
            return full;
        at = at[n] ? at + n + 1 : NULL;
    }
    return NULL;
}

static int spawn(struct process *p, const char *path, char **argv, int out, int err)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none, usual;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&how);
    sigemptyset(&none); /* this thread blocks nearly all */
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setsigdefault(&how, &usual);
    posix_spawnattr_setpgroup(&how, 0);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                       POSIX_SPAWN_SETPGROUP);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out, 1);
    posix_spawn_file_actions_adddup2(&files, err, 2);
    int rc = posix_spawn(&p->pid, path, &files, &how, argv, p->aws->user.environment);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    return rc;
}

static int start(struct process *p, char **argv, struct hr_error *e)
{
    int out[2], err[2];
    const char *path = find_program(p);
    if (!path)
        return error_set(e, HR_EINVAL, "credential_process: no program \"%s\" in PATH", p->program);
    if (pipe2(out, O_CLOEXEC) < 0)
        return error_set(e, HR_ESTORE, "credential_process: %s", strerror(errno));
    if (pipe2(err, O_CLOEXEC) < 0) {
        close(out[0]);
        close(out[1]);
        return error_set(e, HR_ESTORE, "credential_process: %s", strerror(EMFILE));
    }
    int rc = spawn(p, path, argv, out[1], err[1]);
    close(out[1]);
    close(err[1]);
    p->out = out[0];
    p->err = err[0];
    return rc ? error_set(e, HR_ESTORE, "credential_process: %s: %s", path, strerror(rc)) : 0;
}

/* ---- while it runs --------------------------------------------------------------------------- */

static void read_some(int *fd, short events, struct buf *into)
{
    char piece[4096];
    if (!events)
        return;
    ssize_t n = read(*fd, piece, sizeof piece);
    if (n < 0 && errno == EINTR)
        return;
    if (n > 0 && into->size + (size_t)n <= OUTPUT_MAX)
        buf_add(into, piece, (size_t)n);
    explicit_bzero(piece, sizeof piece);
    if (n > 0)
        return;
    close(*fd);
    *fd = -1;
}

/* Where the host program ignores its children, how one ended is not to be known: well, then. */
static bool reap(struct process *p, int options)
{
    pid_t rc;
    do
        rc = waitpid(p->pid, &p->status, options);
    while (rc < 0 && errno == EINTR);
    if (rc < 0)
        p->status = 0;
    return p->ended = rc != 0;
}

/* NULL when it has ended and all that it printed is there; or why it was not waited for. Children
 * that it leaves behind may keep its output open: they are not waited for. */
static const char *listen_to(struct process *p)
{
    uint64_t until = clock_ns() + LIMIT_S * 1000000000ull;
    for (;;) {
        struct pollfd fds[2] = {{p->out, POLLIN, 0}, {p->err, POLLIN, 0}};
        bool open = p->out >= 0 || p->err >= 0; /* negative descriptors are passed over */
        bool news = poll(fds, 2, open && !p->ended ? SLICE_MS : p->ended ? 0 : 1) > 0;
        if (news) {
            read_some(&p->out, fds[0].revents, &p->output);
            read_some(&p->err, fds[1].revents, &p->complaint);
        }
        if (p->ended && !news)
            return NULL;
        if (!p->ended && !reap(p, WNOHANG) && clock_ns() > until)
            return "did not end within 60 s";
        if (atomic_load(&p->aws->stopped))
            return "the store was closed";
    }
}

static void last_line(struct buf *b)
{
    while (b->size && strchr(" \t\r\n", b->data[b->size - 1]))
        b->data[--b->size] = 0;
    char *nl = b->size ? strrchr(b->data, '\n') : NULL;
    if (nl)
        memmove(b->data, nl + 1, strlen(nl + 1) + 1);
    for (char *c = b->data; c && *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
}

/* ---- what it said ---------------------------------------------------------------------------- */

static int parse(struct process *p, struct cred_value *v, struct hr_error *e)
{
    static const struct aws_json_names names = {
        "AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration", false, false};
    struct json *o;
    int64_t version = 0;
    TRY(json_parse(&p->arena, p->output.size ? p->output.data : "", p->output.size,
                   "what credential_process printed", &o, e));
    if (!json_int64(json_get(o, "Version"), &version) || version != 1)
        return error_set(e, HR_ESTORE, "credential_process: %s: \"Version\" must be 1", p->program);
    return aws_json_value(o, &names, "credential_process", v, e);
}

static int run(struct process *p, char **argv, struct cred_value *v, struct hr_error *e)
{
    TRY(start(p, argv, e));
    const char *late = listen_to(p);
    if (!p->ended) {
        kill(-p->pid, SIGKILL);
        reap(p, 0);
    }
    if (p->out >= 0)
        close(p->out);
    if (p->err >= 0)
        close(p->err);
    if (late)
        return error_set(e, atomic_load(&p->aws->stopped) ? HR_ECLOSED : HR_ESTORE,
                         "credential_process: %s: %s", p->program, late);
    last_line(&p->complaint);
    const char *said = p->complaint.size ? p->complaint.data : "";
    if (WIFSIGNALED(p->status))
        return error_set(e, HR_ESTORE, "credential_process: %s ended by signal %d: %.160s",
                         p->program, WTERMSIG(p->status), said);
    if (p->status)
        return error_set(e, HR_ESTORE, "credential_process: %s ended with status %d: %.160s",
                         p->program, WEXITSTATUS(p->status), said);
    return parse(p, v, e);
}

int aws_process(struct aws *a, const struct aws_files *f, const char *profile, struct cred_value *v,
                struct hr_error *e)
{
    const char *line = aws_profile_get(f, profile, "credential_process");
    struct process p = {.aws = a, .out = -1, .err = -1};
    char **argv;
    size_t n;
    if (!line)
        return 0;
    arena_init(&p.arena);
    int rc = ini_words(line, &p.arena, &argv, &n, e);
    if (rc < 0)
        error_context(e, rc, "credential_process of profile \"%s\"", profile);
    else if (!n)
        rc = error_set(e, HR_EINVAL, "credential_process of profile \"%s\" is empty", profile);
    else
        p.program = argv[0];
    if (rc == 0)
        rc = run(&p, argv, v, e);
    secret_wipe(&p.output);
    secret_wipe(&p.complaint);
    arena_dispose(&p.arena);
    return rc;
}
