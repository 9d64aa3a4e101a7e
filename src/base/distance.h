/* How far two names are apart: what "did you mean …" is made of. Pure. */
#ifndef BASE_DISTANCE_H
#define BASE_DISTANCE_H
#include <limits.h>

#define DISTANCE_LONGEST 64       /* bytes of a name that is compared */
#define DISTANCE_FAR     UINT_MAX /* one of the names is longer: they are not compared */

/* Bytes to insert, delete, replace, or exchange with their neighbour to make one name of the other. */
unsigned distance(const char *a, const char *b);

#endif
