/* What an archive that is made of archives is made of: hr_archive_concat (arrays one behind the other along a dimension),
 * hr_archive_combine (each under a name of its own). Used by archive.c under the archive's lock.
 *
 * Arrays are made at the first look-up, out of copies of the members' own (format/members.h), and stay as long as the
 * archive. Bytes come from one store that leads to the members' (store/members.h). */
#ifndef API_JOINED_H
#define API_JOINED_H
#include "api/archive.h"

struct joined;
/* One behind the other along `along`, or (along NULL) under `names`. Members are referenced, texts copied. */
int joined_new(struct hr_archive *const *members, const char *const *names, int n,
               const char *along, struct joined **out, struct hr_error *e);
void joined_free(struct joined *j);
struct store *joined_store(const struct joined *j); /* not a new reference */

/* The array at `path`, readable or not; NULL in *out where there is none and it need not be there. */
int joined_find(struct joined *j, const char *path, bool must, const struct array **out,
                struct hr_error *e);
int joined_walk(struct joined *j, struct archive_contents *out, struct hr_error *e);

/* Without the lock. Do the members' coordinates of the dimensions of array x fit together: one behind the other along the
 * joined dimension, equal along others? Each dimension is asked about once. `a`: the archive that j is of. */
int joined_check(struct joined *j, struct hr_archive *a, const struct array *x, struct hr_error *e);

/* Without the lock. An error where no array of the first member that can be listed has the joined dimension: there is nothing
 * to join, and what was meant is called otherwise. Where none can be listed all pass. */
int joined_check_along(const struct joined *j, struct hr_error *e);

#endif
