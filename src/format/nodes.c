/* See nodes.h. The table is keyed by path; arrays and groups share it, for a path is one or the other. */
#include "format/nodes.h"
#include <string.h>
#include "base/hash.h"
#include "base/mem.h"

#define FIRST_SLOTS 64

void nodes_init(struct nodes *n)
{
    *n = (struct nodes){0};
    arena_init(&n->arena);
}

void nodes_dispose(struct nodes *n)
{
    mem_free(n->arrays);
    mem_free(n->groups);
    mem_free(n->slots);
    arena_dispose(&n->arena);
}

static struct node_slot *find_slot(const struct nodes *n, const char *path)
{
    if (!n->n_slots)
        return NULL;
    size_t i = hash_bytes(path, strlen(path), 0) & (n->n_slots - 1);
    while (n->slots[i].path && strcmp(n->slots[i].path, path))
        i = (i + 1) & (n->n_slots - 1);
    return &n->slots[i];
}

bool nodes_knows(const struct nodes *n, const char *path)
{
    const struct node_slot *s = find_slot(n, path);
    return s && s->path;
}

const struct array *nodes_array(const struct nodes *n, const char *path)
{
    const struct node_slot *s = find_slot(n, path);
    return s && s->path && s->number >= 0 ? n->arrays[s->number] : NULL;
}

const struct group *nodes_group(const struct nodes *n, const char *path)
{
    const struct node_slot *s = find_slot(n, path);
    return s && s->path && s->number < 0 ? &n->groups[-1 - s->number] : NULL;
}

/* Room for one node more: slots at most half full, and both lists. */
static int reserve(struct nodes *n, struct hr_error *e)
{
    size_t used = n->n_arrays + n->n_groups;
    if (mem_grow((void **)&n->arrays, &n->arrays_cap, n->n_arrays + 1, sizeof *n->arrays) < 0 ||
        mem_grow((void **)&n->groups, &n->groups_cap, n->n_groups + 1, sizeof *n->groups) < 0)
        return error_nomem(e, used * sizeof *n->groups, "the list of nodes");
    if ((used + 1) * 2 <= n->n_slots)
        return 0;
    struct nodes bigger = {.n_slots = n->n_slots ? n->n_slots * 4 : FIRST_SLOTS};
    bigger.slots = mem_array(bigger.n_slots, sizeof *bigger.slots);
    if (!bigger.slots)
        return error_nomem(e, bigger.n_slots * sizeof *bigger.slots, "the table of nodes");
    for (size_t i = 0; i < n->n_slots; i++)
        if (n->slots[i].path)
            *find_slot(&bigger, n->slots[i].path) = n->slots[i];
    mem_free(n->slots);
    n->slots = bigger.slots;
    n->n_slots = bigger.n_slots;
    return 0;
}

static void put_array(struct nodes *n, struct array *x)
{
    x->number = (int)n->n_arrays;
    *find_slot(n, x->path) = (struct node_slot){x->path, x->number};
    n->arrays[n->n_arrays++] = x;
}

static void put_group(struct nodes *n, const struct group *g)
{
    *find_slot(n, g->path) = (struct node_slot){g->path, -1 - (int)n->n_groups};
    n->groups[n->n_groups++] = *g;
}

/* A new, empty array with its number taken. */
static int begin_array(struct nodes *n, const char *path, struct array **out, struct hr_error *e)
{
    TRY(reserve(n, e));
    struct array *x = arena_alloc(&n->arena, sizeof *x);
    if (!x)
        return error_nomem(e, sizeof *x, "an array");
    x->path = path;
    x->number = (int)n->n_arrays;
    x->fill_text = "";
    *out = x;
    return 0;
}

/* Keep x, readable or with its problem. */
static int finish_array(struct nodes *n, struct array *x, int rc, const struct hr_error *why,
                        struct hr_error *e)
{
    if (rc == HR_ENOMEM)
        return error_set(e, rc, "%s", why->text);
    if (rc < 0) {
        x->problem = arena_strdup(&n->arena, why->text);
        x->problem_code = rc;
        if (!x->problem)
            return error_nomem(e, sizeof why->text, "an array");
    }
    put_array(n, x);
    return 0;
}

int nodes_add_broken(struct nodes *n, const char *path, int rc, const struct hr_error *why,
                     struct hr_error *e)
{
    struct array *x = NULL;
    if (nodes_knows(n, path))
        return 0;
    TRY(begin_array(n, path, &x, e));
    return finish_array(n, x, rc, why, e);
}

int nodes_add_array(struct nodes *n, struct array *x, struct hr_error *e)
{
    TRY(reserve(n, e));
    put_array(n, x);
    return 0;
}

int nodes_add_v3(struct nodes *n, const char *path, const struct json *doc, const char *where,
                 const struct json **consolidated, struct hr_error *e)
{
    struct hr_error why;
    struct array *x = NULL;
    const struct json *inline_nodes = NULL;
    bool is_array;
    int rc;
    if (consolidated)
        *consolidated = NULL;
    if (nodes_knows(n, path))
        return 0;
    if ((rc = node_kind_v3(doc, where, &is_array, &why)) < 0)
        return nodes_add_broken(n, path, rc, &why, e);
    if (is_array) {
        TRY(begin_array(n, path, &x, e));
        x->document = n->consolidated ? n->consolidated : where;
        rc = array_from_v3(&n->arena, doc, where, x, &why);
        return finish_array(n, x, rc, &why, e);
    }
    TRY(reserve(n, e));
    struct group g = {.path = path};
    rc = group_from_v3(doc, where, &inline_nodes, &why);
    if (rc >= 0)
        rc = node_attributes(json_get(doc, "attributes"), where, &g.attributes, &why);
    if (rc < 0 && !(g.problem = arena_strdup(&n->arena, why.text)))
        return error_nomem(e, sizeof why.text, "a group");
    put_group(n, &g);
    if (consolidated && !g.problem)
        *consolidated = inline_nodes;
    return 0;
}

int nodes_add_array_v2(struct nodes *n, const char *path, const struct json *zarray,
                       const struct json *zattrs, const char *where, struct hr_error *e)
{
    struct hr_error why;
    struct array *x = NULL;
    if (nodes_knows(n, path))
        return 0;
    TRY(begin_array(n, path, &x, e));
    x->document = n->consolidated ? n->consolidated : where;
    int rc = array_from_v2(&n->arena, zarray, zattrs, where, x, &why);
    return finish_array(n, x, rc, &why, e);
}

int nodes_add_group_v2(struct nodes *n, const char *path, const struct json *zgroup,
                       const struct json *zattrs, const char *where, struct hr_error *e)
{
    struct hr_error why;
    if (nodes_knows(n, path))
        return 0;
    TRY(reserve(n, e));
    struct group g = {.path = path};
    int rc = zgroup ? group_from_v2(zgroup, where, &why) : 0;
    if (rc >= 0)
        rc = node_attributes(zattrs, where, &g.attributes, &why);
    if (rc < 0 && !(g.problem = arena_strdup(&n->arena, why.text)))
        return error_nomem(e, sizeof why.text, "a group");
    put_group(n, &g);
    return 0;
}
