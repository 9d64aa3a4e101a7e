/* One metadata document → one array or group. Private to the format room.
 *
 * A document that cannot be used must not spoil its siblings: these functions fill in what they understand in the order
 * shape, names, type, chunks, codecs, and the caller turns their error into the array's `problem`, so that reports can
 * still show the rest. */
#ifndef FORMAT_NODE_H
#define FORMAT_NODE_H
#include "format/layout.h"

/* v2: `zarray` is the .zarray document, `zattrs` the .zattrs or NULL. x: zeroed but for path and number. */
int array_from_v2(struct arena *a, const struct json *zarray, const struct json *zattrs,
                  const char *where, struct array *x, struct hr_error *e);
/* v3: a zarr.json with node_type "array". */
int array_from_v3(struct arena *a, const struct json *doc, const char *where, struct array *x,
                  struct hr_error *e);
/* v3: zarr_format and node_type; the only check that concerns both kinds. */
int node_kind_v3(const struct json *doc, const char *where, bool *is_array, struct hr_error *e);
/* v3: members of a group document. *consolidated: its inline nodes, or NULL. */
int group_from_v3(const struct json *doc, const char *where, const struct json **consolidated,
                  struct hr_error *e);
/* v2: a .zgroup. */
int group_from_v2(const struct json *doc, const char *where, struct hr_error *e);

/* Shared pieces. */

/* A member that must be there. */
int node_member(const struct json *doc, const char *key, const char *where, const struct json **out,
                struct hr_error *e);
/* A list of `ndim` (< 0: any number up to HR_MAX_DIMS) lengths ≥ 0. */
int node_lengths(struct arena *a, const struct json *v, const char *key, const char *where,
                 int *ndim, uint64_t **out, struct hr_error *e);
/* Attributes: an object, or NULL for null and absent. */
int node_attributes(const struct json *v, const char *where, const struct json **out,
                    struct hr_error *e);
/* `_ARRAY_DIMENSIONS` of xarray, where it fits the array's rank; else leaves x->dims alone. */
int node_array_dimensions(struct arena *a, struct array *x, struct hr_error *e);
/* dtype's fill value, through dtype_fill_v2 or _v3 as x->zarr_format says. */
int node_fill(struct arena *a, const struct json *v, const char *where, struct array *x,
              struct array_layout *l, struct hr_error *e);
/* v3 `chunk_grid` → l->object, x->edges and x->grid. */
int grid_from_v3(struct arena *a, const struct json *v, const char *where, struct array *x,
                 struct array_layout *l, struct hr_error *e);

/* An extension point of v3: {"name", "configuration"} or a bare name. configuration: an object or NULL. */
int node_extension(const struct json *v, const char *key, const char *where, const char **name,
                   const struct json **configuration, struct hr_error *e);

/* Paths that may be joined to keys: no empty, "." or ".." segments. "" is the root. */
bool path_is_sound(const char *path);

/* The array that a field of a struct array is. `rest`: the field's name, dots or slashes between nested ones. NULL in *out
 * when there is no such field. */
int field_array(struct arena *a, const struct array *whole, const char *path, const char *rest,
                struct array **out, struct hr_error *e);

#endif
