/* Small files and texts that hold secrets: read whole, wiped when they are no longer needed. */
#ifndef STORE_SECRET_FILE_H
#define STORE_SECRET_FILE_H
#include "base/buf.h"

/* At most 1 MiB. 0 or -errno. The caller wipes *out. */
int secret_read(const char *path, struct buf *out);
/* In the place of what is there, at once and for the owner alone. 0 or -errno. */
int secret_write(const char *path, const struct buf *text);
void secret_wipe(struct buf *b); /* and free */

#endif
