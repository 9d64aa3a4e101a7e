/* Objects in memory under memory://name: for tests of everything that reads stores. Any thread. */
#ifndef STORE_MEMORY_H
#define STORE_MEMORY_H
#include <stddef.h>

#include "base/error.h"

/* Put (or replace) an object; the first put makes the store. The bytes are copied. */
int memory_put(const char *name, const char *key, const void *data, size_t n, struct hr_error *e);
/* An object of that name no longer exists. */
void memory_delete(const char *name, const char *key);
/* Forget the whole store. Open ones see an empty store. */
void memory_drop(const char *name);

#endif
