/* Keys: '/'-separated names below a store's root. Archive metadata decides them, so they are not
 * trusted. */
#ifndef STORE_KEY_H
#define STORE_KEY_H
#include <stdbool.h>

#include "base/error.h"

/* Refuse keys with "." and ".." segments: file systems and web servers resolve them, so that
 * another object than the named one would answer. With `plain` also empty segments (a leading,
 * trailing or doubled '/'), which file systems drop. */
int key_check(const char *key, bool plain, const char *store, struct hr_error *e);

#endif
