/* SHA-1, for the names of files that other programs have named by it. No protection against
 * anybody: it is no part of any signature. */
#ifndef STORE_SHA1_H
#define STORE_SHA1_H
#include <stddef.h>

#define SHA1_HEX 41
void sha1_hex(const void *data, size_t n, char out[SHA1_HEX]); /* lower case, ended by a NUL */

#endif
