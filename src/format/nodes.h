/* The arrays and groups known so far, by path. Private to the format room.
 *
 * Nodes live in the arena and never move; the lists of them grow. The first document of a path wins. A document that
 * cannot be used becomes an array with a problem, for nobody can say what else it was meant to be; only running out of
 * memory is an error of the call itself. */
#ifndef FORMAT_NODES_H
#define FORMAT_NODES_H
#include "format/node.h"

struct node_slot {
    const char *path; /* NULL: free */
    int number;       /* in arrays, or -1 - number in groups */
};
struct nodes {
    struct arena arena;
    const char
        *consolidated; /* key of the consolidated metadata whose nodes are being added, or NULL */
    struct array **arrays;
    struct group *groups;
    size_t n_arrays, arrays_cap, n_groups, groups_cap;
    struct node_slot *slots; /* open addressing, a power of two */
    size_t n_slots;
};

void nodes_init(struct nodes *n);
void nodes_dispose(struct nodes *n);

const struct array *nodes_array(const struct nodes *n, const char *path);
const struct group *nodes_group(const struct nodes *n, const char *path);
bool nodes_knows(const struct nodes *n, const char *path);

/* `path` and `where` are arena strings. `consolidated` (NULL allowed): inline nodes of a group. */
int nodes_add_v3(struct nodes *n, const char *path, const struct json *doc, const char *where,
                 const struct json **consolidated, struct hr_error *e);
int nodes_add_array_v2(struct nodes *n, const char *path, const struct json *zarray,
                       const struct json *zattrs, const char *where, struct hr_error *e);
int nodes_add_group_v2(struct nodes *n, const char *path, const struct json *zgroup,
                       const struct json *zattrs, const char *where, struct hr_error *e);
/* `why` is what is wrong with the documents of `path`; returned as it is when it is not about them (no memory). */
int nodes_add_broken(struct nodes *n, const char *path, int rc, const struct hr_error *why,
                     struct hr_error *e);
/* An array that was made elsewhere: a field of another, or of a format without documents. It is given its number. */
int nodes_add_array(struct nodes *n, struct array *x, struct hr_error *e);

/* All nodes of consolidated metadata: v3's inline `metadata` object, a v2 .zmetadata document. */
int nodes_consolidated_v3(struct nodes *n, const struct json *metadata, struct hr_error *e);
int nodes_consolidated_v2(struct nodes *n, const struct json *doc, const char *where,
                          struct hr_error *e);

#endif
