/* See secret_file.h. */
#include "store/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX (1u << 20)

void secret_wipe(struct buf *b)
{
    if (b->data)
        explicit_bzero(b->data, b->cap);
    buf_dispose(b);
}

static int read_all(int fd, struct buf *out)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    /* All at once: a buffer that grows leaves copies of the secret behind. */
    if (buf_reserve(out, st.st_size > 0 && st.st_size < FILE_MAX ? (size_t)st.st_size + 1 : 65536))
        return -ENOMEM;
    for (;;) {
        char piece[4096];
        ssize_t n = read(fd, piece, sizeof piece);
        if (n < 0 && errno == EINTR)
            continue;
        int rc = n < 0                                         ? -errno
                 : out->size + (size_t)n > FILE_MAX            ? -EFBIG
                 : n > 0 && buf_add(out, piece, (size_t)n) < 0 ? -ENOMEM
                                                               : 0;
        explicit_bzero(piece, sizeof piece);
        if (rc < 0 || n == 0)
            return rc;
    }
}

int secret_read(const char *path, struct buf *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return -errno;
    int rc = read_all(fd, out);
    close(fd);
    return rc;
}

static int write_all(int fd, const char *data, size_t n)
{
    while (n) {
        ssize_t done = write(fd, data, n);
        if (done < 0 && errno != EINTR)
            return -errno;
        data += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
    return fsync(fd) < 0 ? -errno : 0;
}

/* Others see the old file or the new one: it is written beside and renamed. */
int secret_write(const char *path, const struct buf *text)
{
    struct buf beside;
    buf_init(&beside);
    buf_printf(&beside, "%s.XXXXXX", path);
    int fd = beside.failed ? -1 : mkostemp(beside.data, O_CLOEXEC); /* mode 0600 */
    int rc = beside.failed ? -ENOMEM : fd < 0 ? -errno : write_all(fd, text->data, text->size);
    if (fd >= 0 && close(fd) < 0 && rc == 0)
        rc = -errno;
    if (rc == 0 && rename(beside.data, path) < 0)
        rc = -errno;
    if (rc < 0 && fd >= 0)
        unlink(beside.data);
    buf_dispose(&beside);
    return rc;
}
