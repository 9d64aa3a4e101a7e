/* Private to joined.c and joined_coords.c. */
#ifndef API_JOINED_IN_H
#define API_JOINED_IN_H
#include <pthread.h>

#include "api/joined.h"
#include "base/arena.h"
#include "format/members.h"

struct joined {
    struct hr_archive **members;
    const char **names; /* under which they stand, or their URLs */
    int n;
    const char *along; /* NULL: combined */
    struct store *store;
    struct arena arena;
    int owners; /* shard indexes that have one: layout.h */
    struct array **arrays;
    struct group *groups;
    int n_arrays, n_groups;
    size_t arrays_cap, groups_cap;
    pthread_mutex_t lock; /* of `checked`: paths of coordinates known to fit */
    const char **checked;
    size_t n_checked, checked_cap;
};

#endif
