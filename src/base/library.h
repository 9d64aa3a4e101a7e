/* Libraries that are found at run time, whatever else lives in the process.
 *
 * Some programs show the symbols of libraries they contain to everybody (dlopen with RTLD_GLOBAL):
 * TensorFlow those of its BoringSSL and libcurl. A library loaded after that would call theirs in
 * place of its own dependencies', and crash. Where such a symbol is in sight the library is loaded
 * so that its own come first (RTLD_DEEPBIND); only there, for that does not go with everything
 * either (sanitizers; allocators that take malloc's place). */
#ifndef BASE_LIBRARY_H
#define BASE_LIBRARY_H
#include <stddef.h>

/* The first of the names that can be loaded, or NULL. It is never unmapped. */
void *library_open(const char *const *names, size_t n);

#endif
