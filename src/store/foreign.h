/* Options of other libraries (s3fs, gcsfs, adlfs, object_store, botocore) that are no options here, but stand in the
 * notebooks that people have: which can be passed over, and why others cannot. */
#ifndef STORE_FOREIGN_H
#define STORE_FOREIGN_H
#include <stdbool.h>

#include "base/json.h"

enum foreign { FOREIGN_STORE, FOREIGN_CLIENT, FOREIGN_CONFIG, FOREIGN_OBSTORE };

/* Whatever its value, the same bytes come, by as safe a way: caches, pools, block sizes, patience. */
bool foreign_harmless(const char *name, enum foreign where);
/* NULL, or why an option cannot be passed over although its name may be known. */
const char *foreign_refusal(const char *name, const struct json *v, enum foreign where);

#endif
