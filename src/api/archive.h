/* The opened archive as the rest of api/ sees it. Thread-safe: looking up an array may fetch metadata and takes the
 * archive's lock; what is returned lives as long as the archive. */
#ifndef API_ARCHIVE_H
#define API_ARCHIVE_H
#include <stdbool.h>
#include "format/reader.h"
#include "store/store.h"

/* The array at `path`, readable (its problem, if any, is the error). HR_ENOENT names near matches. */
int archive_array(struct hr_archive *a, const char *path, const struct array **out,
                  struct hr_error *e);
/* The same, whether readable or not. */
int archive_look_up(struct hr_archive *a, const char *path, const struct array **out,
                    struct hr_error *e);
/* As archive_array, but NULL in *out when there is no such array (for coordinates, which may be absent). */
int archive_find(struct hr_archive *a, const char *path, const struct array **out,
                 struct hr_error *e);
/* As archive_find, readable or not. */
int archive_seek(struct hr_archive *a, const char *path, const struct array **out,
                 struct hr_error *e);
/* 1: it is an SCDL archive, and *out says of which shape; 0: it is not. */
struct scdl_shape;
int archive_scdl(struct hr_archive *a, struct scdl_shape *out);
bool archive_joined(const struct hr_archive *a);         /* made of other archives */
struct store *archive_store(const struct hr_archive *a); /* not a new reference */
const char *archive_url(const struct hr_archive *a);     /* for people: no secrets */
/* Read the whole hierarchy and report on it under the archive's lock. */
struct archive_contents {
    const struct array *const *arrays;
    const struct group *groups;
    int n_arrays, n_groups;
    const char *format;
    bool consolidated, complete;
};
int archive_walk(struct hr_archive *a,
                 int (*report)(const struct archive_contents *c, void *arg, struct hr_error *e),
                 void *arg, struct hr_error *e);
/* All of an array as it is stored, each member of a joined one as its own attributes mean it; hr_free it. */
int archive_read_stored(struct hr_archive *a, const char *array, void **data, size_t *n,
                        struct hr_error *e);
/* HR_EFORK in a forked child. */
int archive_check(const struct hr_archive *a, struct hr_error *e);

#endif
