/* Local directories.
 *
 * Keys are opened relative to one kept descriptor of the root: a little cheaper than absolute
 * paths, and an archive that is replaced by renaming stays the one that was opened. Descriptors
 * of the directories below would save another 0.1 µs per open and are not kept.
 *
 * "No such file" is a fill value in the end, so it is believed only when nothing else explains
 * it: the root must still be there (an unmounted disk or a deleted archive answers ENOENT for
 * everything), and no link on the way may dangle (data sets managed by annexes are full of links
 * to content that was not fetched). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/mem.h"
#include "store/key.h"
#include "store/ops.h"
#include "store/options.h"

#ifndef O_PATH
#define O_PATH 0
#endif

struct file_store {
    struct store base;
    int root;
    char *path; /* absolute */
    struct store_counts counts;
};

static struct file_store *files(struct store *s)
{
    return (struct file_store *)s;
}

static int fail_errno(const struct file_store *f, const char *key, const char *what, int error,
                      struct hr_error *e)
{
    const char *why = strerror(error); /* thread-safe for known errors */
    if (error == EMFILE || error == ENFILE || error == ESTALE || error == EIO || error == EINTR)
        return error_set_retryable(e, HR_ESTORE, "%s/%s: %s: %s", f->path, key, what, why);
    return error_set(e, HR_ESTORE, "%s/%s: %s: %s", f->path, key, what, why);
}

/* ---- is it really missing? ------------------------------------------------------------------- */

static int check_root(const struct file_store *f, struct hr_error *e)
{
    struct stat by_fd, by_path;
    if (fstat(f->root, &by_fd) == 0 && by_fd.st_nlink > 0 && stat(f->path, &by_path) == 0 &&
        S_ISDIR(by_path.st_mode))
        return 0;
    return error_set(
        e, HR_ESTORE,
        "%s: the directory of the archive has disappeared; open it again when it is back", f->path);
}

/* After ENOENT or ENOTDIR: STORE_MISSING, or the error that explains it better. */
static int explain_absence(const struct file_store *f, const char *key, struct hr_error *e)
{
    char part[PATH_MAX];
    struct stat st;
    TRY(check_root(f, e));
    size_t n = strlen(key);
    for (size_t i = 1; i <= n; i++) {
        if (key[i] != '/' && key[i])
            continue;
        memcpy(part, key, i); /* key_open has checked that it fits */
        part[i] = 0;
        if (fstatat(f->root, part, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return errno == ENOENT || errno == ENOTDIR ? STORE_MISSING
                                                       : fail_errno(f, part, "stat", errno, e);
        if (!S_ISLNK(st.st_mode) || fstatat(f->root, part, &st, 0) == 0)
            continue;
        return error_set(
            e, HR_ESTORE,
            "%s/%s: a link whose target is not there; fetch the content of this data set first",
            f->path, part);
    }
    return error_set_retryable(e, HR_ESTORE, "%s/%s: appeared while it was being opened", f->path,
                               key);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* A file that is written anew is another one, and so is one that took its place. */
static uint64_t version_of(const struct stat *st)
{
    struct hash h;
    hash_init(&h, 0);
    hash_u64(&h, (uint64_t)st->st_ino);
    hash_u64(&h, (uint64_t)st->st_size);
    hash_u64(&h, (uint64_t)st->st_mtim.tv_sec);
    hash_u64(&h, (uint64_t)st->st_mtim.tv_nsec);
    return hash_value(&h);
}

/* 0, STORE_MISSING or a code. O_NONBLOCK: a FIFO in an archive must not hang the open. */
static int key_open(struct file_store *f, const char *key, int *fd, uint64_t *size,
                    uint64_t *version, struct hr_error *e)
{
    struct stat st;
    *fd = -1;
    TRY(key_check(key, true, f->path, e));
    if (strlen(key) >= PATH_MAX)
        return error_set(e, HR_EINVAL, "%s: a key of %zu bytes is no file name", f->path,
                         strlen(key));
    int file = openat(f->root, key, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return errno == ENOENT || errno == ENOTDIR ? explain_absence(f, key, e)
                                                   : fail_errno(f, key, "open", errno, e);
    int rc = 0;
    if (fstat(file, &st) < 0)
        rc = fail_errno(f, key, "stat", errno, e);
    else if (S_ISDIR(st.st_mode))
        rc = error_set(e, HR_ESTORE, "%s/%s: a directory where a file of the archive should be",
                       f->path, key);
    else if (!S_ISREG(st.st_mode))
        rc = error_set(e, HR_ESTORE, "%s/%s: not a regular file", f->path, key);
    if (rc < 0) {
        close(file);
        return rc;
    }
    *fd = file;
    *size = (uint64_t)st.st_size;
    *version = version_of(&st);
    return 0;
}

static int read_bytes(const struct file_store *f, const char *key, int fd, char *to, uint64_t first,
                      uint64_t length, struct hr_error *e)
{
    uint64_t got = 0;
    while (got < length) {
        uint64_t more = length - got < SSIZE_MAX ? length - got : SSIZE_MAX;
        ssize_t n = pread(fd, to + got, more, (off_t)(first + got));
        if (n < 0 && errno != EINTR)
            return fail_errno(f, key, "read", errno, e);
        if (n == 0)
            return error_set(e, HR_EDATA, "%s/%s: cut to %" PRIu64 " bytes while it was being read",
                             f->path, key, first + got);
        got += n > 0 ? (uint64_t)n : 0;
    }
    return 0;
}

static void file_read(struct store *s, const char *key, struct store_range range,
                      const struct store_sink *sink, struct store_result *r)
{
    struct file_store *f = files(s);
    struct hr_error *e = &r->error;
    uint64_t first, length;
    int fd;
    r->rc = key_open(f, key, &fd, &r->object_size, &r->version, e);
    if (r->rc != 0)
        goto out;
    r->rc = store_clip(range, r->object_size, &first, &length, e);
    if (r->rc < 0) {
        error_context(e, r->rc, "%s/%s", f->path, key);
        goto out;
    }
    char *to = store_room(sink, length, r);
    if (r->rc == 0 && length)
        r->rc = read_bytes(f, key, fd, to, first, length, e);
    if (r->rc == 0)
        r->size = length;
out:
    if (fd >= 0)
        close(fd);
    store_count(&f->counts, r);
}

static int file_open_file(struct store *s, const char *key, int *fd, uint64_t *size,
                          struct hr_error *e)
{
    struct file_store *f = files(s);
    uint64_t version;
    struct store_result r = {.rc = key_open(f, key, fd, size, &version, e)};
    store_count(&f->counts, &r);
    return r.rc;
}

/* ---- listing --------------------------------------------------------------------------------- */

static bool is_folder(int dir, const struct dirent *d)
{
    struct stat st;
    if (d->d_type != DT_UNKNOWN && d->d_type != DT_LNK)
        return d->d_type == DT_DIR;
    return fstatat(dir, d->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names in `found`, NUL-separated, into sorted order. */
static int sort_names(const struct buf *found, size_t count, char **names, size_t *size,
                      struct hr_error *e)
{
    const char **index = found->failed ? NULL : mem_array(count + 1, sizeof *index);
    if (!index)
        return error_nomem(e, found->size, "a list of names");
    struct buf sorted;
    buf_init(&sorted);
    size_t i = 0;
    for (const char *p = found->data; i < count; p += strlen(p) + 1)
        index[i++] = p;
    qsort(index, count, sizeof *index, by_name);
    for (i = 0; i < count; i++)
        buf_add(&sorted, index[i], strlen(index[i]) + 1);
    mem_free(index);
    *size = sorted.size;
    *names = count ? buf_take(&sorted) : mem_zalloc(1);
    buf_dispose(&sorted);
    return *names ? 0 : error_nomem(e, found->size, "a list of names");
}

static int file_list(struct store *s, const char *prefix, char **names, size_t *size,
                     struct hr_error *e)
{
    struct file_store *f = files(s);
    if (*prefix)
        TRY(key_check(prefix, true, f->path, e));
    int fd = openat(f->root, *prefix ? prefix : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = 0;
    if (fd < 0) {
        rc = errno == ENOENT || errno == ENOTDIR ? explain_absence(f, *prefix ? prefix : ".", e)
                                                 : fail_errno(f, prefix, "list", errno, e);
        if (rc < 0)
            return rc;
    }
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (fd >= 0 && !dir) {
        close(fd);
        return error_nomem(e, 0, "a directory stream");
    }
    struct buf found;
    buf_init(&found);
    size_t count = 0;
    const struct dirent *d;
    errno = 0;
    for (; dir && (d = readdir(dir)); errno = 0) {
        if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
            continue;
        buf_puts(&found, d->d_name);
        if (is_folder(dirfd(dir), d))
            buf_putc(&found, '/');
        buf_putc(&found, 0);
        count++;
    }
    rc = errno ? fail_errno(f, prefix, "list", errno, e) : check_root(f, e);
    if (dir)
        closedir(dir);
    if (rc == 0)
        rc = sort_names(&found, count, names, size, e);
    buf_dispose(&found);
    return rc;
}

/* ---- opening and closing --------------------------------------------------------------------- */

static void file_close(struct store *s)
{
    struct file_store *f = files(s);
    if (f->root >= 0)
        close(f->root);
    mem_free(f->path);
    mem_free(f);
}

static void file_stats(struct store *s, struct buf *out)
{
    store_counts_json(&files(s)->counts, out);
}

static const struct store_ops file_ops = {
    .blocking = true,
    .local = true,
    .close = file_close,
    .read = file_read,
    .list = file_list,
    .open_file = file_open_file,
    .stats = file_stats,
};

/* What a path that does not exist may have been meant as. */
static const char *meant(const char *path)
{
    size_t host = strcspn(path, "/:");
    if (*path == ' ' || *path == '\t' || *path == '\n')
        return "; it begins with a space";
    if (*path == '~')
        return "; ~ is not expanded here: write the directory out (os.path.expanduser)";
    if (!strncmp(path, "http//", 6) || !strncmp(path, "https//", 7) || !strncmp(path, "s3//", 4))
        return "; a URL has :// behind its scheme";
    if (host && path[host] == ':' && path[host + 1] >= '0' && path[host + 1] <= '9')
        return "; a server's URL begins with http:// or https://";
    return "";
}

/* Archives are directories; some files are close to it. */
static int a_file(const char *absolute, const char *path, struct hr_error *e)
{
    static const char hdf5[8] = "\x89HDF\r\n\x1a\n";
    char head[8] = "";
    int fd = open(absolute, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, head, sizeof head) : 0;
    if (fd >= 0)
        close(fd);
    if (n == sizeof head && !memcmp(head, hdf5, sizeof hdf5))
        return error_set(
            e, HR_EUNSUPPORTED,
            "%s: an HDF5 file, which is not read in place; of an atlas of cells (.h5ad) "
            "`headrace cells chunk %s OUT.zarr` makes an archive that is",
            path, path);
    return error_set(e, HR_EUNSUPPORTED,
                     "%s: a file; archives are directories (zip stores are not read)", path);
}

static int open_root(struct file_store *f, const char *path, struct hr_error *e)
{
    struct stat st;
    char absolute[PATH_MAX];
    if (!realpath(path, absolute)) {
        int error = errno;
        if (error == ENOENT)
            return error_set(e, HR_ENOENT, "%s: no such directory%s", path, meant(path));
        return error_set(e, HR_ESTORE, "%s: cannot be opened: %s", path, strerror(error));
    }
    f->path = mem_strdup(absolute);
    if (!f->path)
        return error_nomem(e, strlen(absolute), "a path");
    f->root = open(f->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (f->root >= 0)
        return 0;
    int error = errno;
    if (error == ENOTDIR && stat(f->path, &st) == 0)
        return a_file(f->path, path, e);
    return error_set(e, HR_ESTORE, "%s: cannot be opened: %s", path, strerror(error));
}

int file_store_open(const char *path, const char *options, struct store **out, struct hr_error *e)
{
    struct arena a;
    arena_init(&a);
    int rc = options_parse(options, path, NULL, 0, NULL, &a, e);
    arena_dispose(&a);
    TRY(rc);
    struct file_store *f = mem_zalloc(sizeof *f);
    if (!f)
        return error_nomem(e, sizeof *f, "a store");
    f->root = -1;
    rc = open_root(f, path, e);
    store_init(&f->base, &file_ops, f->path);
    if (rc < 0) {
        file_close(&f->base);
        return rc;
    }
    *out = &f->base;
    return 0;
}
