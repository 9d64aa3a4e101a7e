/* The hierarchy reader: a stack of small tasks, each knowing the next document it needs.
 *
 * A round (the root, a wanted path, a walk) pushes tasks; reader_step shows what the top one needs and reader_feed moves it
 * on, so the reader does no I/O, never recurses, and costs what it pushes: a walk is bounded in nodes and depth. Each
 * node is sought in both versions, for hierarchies mix them: the root as v3 first, for where both stand side by side v3 is
 * the newer, and what lies below it in the version of the root first.
 *
 * Trust: the documents come from anywhere. Paths are checked before they become keys, documents are capped, a broken
 * document is the problem of its node; only the root's own document is an error of opening. */
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "format/round.h"

#define MAX_ROOT_PROBES 100

static const char *const documents[] = {
    [SEEK_V3] = "zarr.json",  [SEEK_CONSOLIDATED] = ".zmetadata", [SEEK_ARRAY] = ".zarray",
    [SEEK_GROUP] = ".zgroup", [SEEK_ARRAY_ATTRS] = ".zattrs",     [SEEK_GROUP_ATTRS] = ".zattrs"};

struct reader *reader_new(struct hr_error *e)
{
    struct reader *r = mem_zalloc(sizeof *r);
    if (!r || mem_grow((void **)&r->stack, &r->cap, 16, sizeof *r->stack) < 0) {
        mem_free(r);
        error_nomem(e, sizeof *r, "a reader");
        return NULL;
    }
    nodes_init(&r->nodes);
    buf_init(&r->key);
    r->stack[r->n++] = (struct task){.phase = SEEK_V3, .path = ""};
    return r;
}

void reader_free(struct reader *r)
{
    if (!r)
        return;
    nodes_dispose(&r->nodes);
    buf_dispose(&r->key);
    mem_free(r->guesses);
    mem_free(r->stack);
    mem_free(r);
}

enum phase reader_first_phase(const struct reader *r)
{
    return r->root_format == 2 ? SEEK_ARRAY : SEEK_V3;
}

int reader_push(struct reader *r, enum phase phase, const char *path, int depth, bool walk,
                struct hr_error *e)
{
    if (r->sought++ >= MAX_NODES)
        return error_set(
            e, HR_EUNSUPPORTED,
            "more than %d groups and folders in the archive; open a group of it instead",
            MAX_NODES);
    if (depth > MAX_DEPTH)
        return error_set(e, HR_EUNSUPPORTED, "\"%.200s\": groups nested deeper than %d", path,
                         MAX_DEPTH);
    if (mem_grow((void **)&r->stack, &r->cap, r->n + 1, sizeof *r->stack) < 0)
        return error_nomem(e, (r->n + 1) * sizeof *r->stack, "the hierarchy");
    r->stack[r->n++] = (struct task){.phase = phase, .path = path, .depth = depth, .walk = walk};
    return 0;
}

void reader_forget_round(struct reader *r)
{
    r->n = 0;
    r->sought = 0;
    r->n_guesses = 0;
    r->walking = false;
    r->want = (struct want){0};
}

static int fail_round(struct reader *r, int rc)
{
    reader_forget_round(r);
    return rc;
}

/* ---- walking --------------------------------------------------------------------------------------------------- */

int reader_walk(struct reader *r, struct hr_error *e)
{
    reader_forget_round(r);
    if (!r->ready)
        return error_set(e, HR_EINTERNAL, "the root of the archive has not been read");
    if (r->consolidated || r->walked || nodes_array(&r->nodes, ""))
        return 0;
    r->walking = true;
    return reader_push(r, LIST_CHILDREN, "", 0, true, e);
}

static int push_child(struct reader *r, const char *path, const char *name, size_t n, int depth,
                      bool walk, struct hr_error *e)
{
    char *child = arena_printf(&r->nodes.arena, "%s%s%.*s", path, *path ? "/" : "", (int)n, name);
    if (!child)
        return error_nomem(e, n, "a path");
    return path_is_sound(child) ? reader_push(r, reader_first_phase(r), child, depth, walk, e) : 0;
}

static int compare_names(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*y, *x); /* descending: the last one pushed is the first one read */
}

/* The folders among the names of a listing, sorted so that a stack gives them in ascending order. mem_free *out. */
static int folders_of(const struct answer *answer, const char ***out, size_t *n, struct hr_error *e)
{
    const char *p = answer->data, *end = p + answer->size;
    size_t cap = 0;
    *out = NULL;
    *n = 0;
    while (p < end) {
        size_t size = strnlen(p, (size_t)(end - p));
        if (p + size == end)
            break; /* an unterminated name: not ours to guess */
        if (size > 1 && p[size - 1] == '/') {
            if (mem_grow((void **)out, &cap, *n + 1, sizeof **out) < 0)
                return error_nomem(e, (*n + 1) * sizeof **out, "a listing");
            (*out)[(*n)++] = p;
        }
        p += size + 1;
    }
    if (*n)
        qsort(*out, *n, sizeof **out, compare_names);
    return 0;
}

static int push_folders(struct reader *r, const struct task *t, const struct answer *answer,
                        size_t most, struct hr_error *e)
{
    const char **names;
    size_t n;
    int rc = folders_of(answer, &names, &n, e);
    for (size_t i = n > most ? n - most : 0; i < n && rc >= 0; i++)
        rc = push_child(r, t->path, names[i], strlen(names[i]) - 1, t->depth + 1, t->walk, e);
    mem_free(names);
    return rc;
}

/* ---- answers --------------------------------------------------------------------------------------------------- */

static void pop(struct reader *r)
{
    r->n--;
}

/* A group has been read: into its children, or done. */
static void after_group(struct reader *r, struct task *t)
{
    if (t->walk)
        t->phase = LIST_CHILDREN;
    else
        pop(r);
}

/* An array has been read: done, but where nothing can be listed it names others. */
static int after_array(struct reader *r, const struct task *t, struct hr_error *e)
{
    const struct array *x = nodes_array(&r->nodes, t->path);
    bool names = t->walk && r->cannot_list && x;
    int depth = t->depth;
    pop(r);
    return names ? probe_companions(r, x, depth - 1, e) : 0;
}

static int after_node(struct reader *r, struct task *t, struct hr_error *e)
{
    if (!nodes_group(&r->nodes, t->path))
        return after_array(r, t, e);
    after_group(r, t);
    return 0;
}

static int set_root(struct reader *r, const struct task *t, int format, struct hr_error *e)
{
    const struct group *g = nodes_group(&r->nodes, "");
    if (*t->path || r->ready)
        return 0;
    r->root_format = format;
    return g && g->problem ? error_set(e, HR_EFORMAT, "%s", g->problem) : 0;
}

static int feed_v3(struct reader *r, struct task *t, const struct json *doc, const char *where,
                   struct hr_error *e)
{
    const struct json *inline_nodes;
    bool is_array;
    bool root = !*t->path && !r->ready;
    if (root)
        TRY(node_kind_v3(doc, where, &is_array, e));
    TRY(nodes_add_v3(&r->nodes, t->path, doc, where, &inline_nodes, e));
    TRY(set_root(r, t, 3, e));
    if (root && inline_nodes) {
        r->consolidated = true;
        TRY(nodes_consolidated_v3(&r->nodes, inline_nodes, e));
    }
    return after_node(r, t, e);
}

static int feed_consolidated(struct reader *r, struct task *t, const struct json *doc,
                             const char *where, struct hr_error *e)
{
    TRY(nodes_consolidated_v2(&r->nodes, doc, where, e));
    TRY(set_root(r, t, 2, e));
    r->consolidated = true;
    pop(r);
    return 0;
}

static int feed_v2(struct reader *r, struct task *t, const struct json *zattrs, const char *where,
                   struct hr_error *e)
{
    bool is_array = t->phase == SEEK_ARRAY_ATTRS;
    const char *own = arena_printf(&r->nodes.arena, "%s%s%s", t->path, *t->path ? "/" : "",
                                   is_array ? ".zarray" : ".zgroup");
    if (!own)
        return error_nomem(e, strlen(t->path), "a path");
    if (zattrs && !json_is(zattrs, JSON_OBJECT) && !json_is(zattrs, JSON_NULL)) {
        struct hr_error why;
        int rc = error_set(&why, HR_EFORMAT, "%s is %s, an object is expected", where,
                           json_type_name(zattrs));
        TRY(nodes_add_broken(&r->nodes, t->path, rc, &why, e));
    }
    TRY((is_array ? nodes_add_array_v2 : nodes_add_group_v2)(&r->nodes, t->path, t->doc, zattrs,
                                                             own, e));
    TRY(set_root(r, t, 2, e));
    return after_node(r, t, e);
}

static int feed_document(struct reader *r, struct task *t, const struct json *doc,
                         const char *where, struct hr_error *e)
{
    switch (t->phase) {
    case SEEK_V3:
        return feed_v3(r, t, doc, where, e);
    case SEEK_CONSOLIDATED:
        return feed_consolidated(r, t, doc, where, e);
    case SEEK_ARRAY:
    case SEEK_GROUP:
        t->doc = doc;
        t->phase = t->phase == SEEK_ARRAY ? SEEK_ARRAY_ATTRS : SEEK_GROUP_ATTRS;
        return 0;
    default:
        return feed_v2(r, t, doc, where, e);
    }
}

/* What is sought after a document that does not exist. False: nothing is left to try. */
static bool next_phase(struct reader *r, struct task *t)
{
    bool root = !*t->path && !r->ready;
    if (t->guess)
        return false;
    switch (t->phase) {
    case SEEK_V3:
        t->phase = root ? SEEK_CONSOLIDATED : SEEK_ARRAY;
        return root || r->root_format != 2;
    case SEEK_CONSOLIDATED:
        t->phase = SEEK_ARRAY;
        return true;
    case SEEK_ARRAY:
        t->phase = SEEK_GROUP;
        return true;
    default:
        r->rootless |= root;
        t->phase = root ? LIST_ROOT : SEEK_V3;
        return root || r->root_format == 2;
    }
}

static int feed_missing(struct reader *r, struct task *t, struct hr_error *e)
{
    if (t->phase == SEEK_ARRAY_ATTRS || t->phase == SEEK_GROUP_ATTRS)
        return feed_v2(r, t, NULL, r->key.data, e);
    if (!next_phase(r, t))
        pop(r);
    return 0;
}

static int feed_list(struct reader *r, const struct answer *answer, struct hr_error *e)
{
    struct task t = r->stack[r->n - 1];
    const char **names;
    size_t n;
    pop(r);
    r->cannot_list |= answer->kind == ANSWER_UNSUPPORTED;
    if (t.phase == LIST_CHILDREN && answer->kind == ANSWER_UNSUPPORTED)
        return probe_children(r, &t, e);
    if (answer->kind != ANSWER_BYTES)
        return 0;
    if (t.phase != LIST_NAMES)
        return push_folders(r, &t, answer, t.phase == LIST_ROOT ? MAX_ROOT_PROBES : MAX_NODES, e);
    int rc = folders_of(answer, &names, &n, e);
    for (size_t i = 0; i < n && rc >= 0; i++) {
        const char *path = arena_printf(&r->nodes.arena, "%s%s%.*s", t.path, *t.path ? "/" : "",
                                        (int)strlen(names[i]) - 1, names[i]);
        if (path)
            near_offer(&r->want.near, path);
        else
            rc = error_nomem(e, strlen(names[i]), "a path");
    }
    mem_free(names);
    return rc;
}

/* A document that is no JSON: of the root, an error; else the problem of its node. */
static int feed_broken(struct reader *r, struct task *t, int rc, const struct hr_error *why,
                       struct hr_error *e)
{
    if (rc == HR_ENOMEM || (!r->ready && !*t->path))
        return error_set(e, rc, "%s", why->text);
    TRY(nodes_add_broken(&r->nodes, t->path, rc, why, e));
    pop(r);
    return 0;
}

/* Web servers answer with pages, of all statuses. */
static bool is_markup(const struct answer *answer)
{
    const char *p = answer->data, *end = p + answer->size;
    while (p < end && strchr(" \t\r\n\xef\xbb\xbf", *p) && *p)
        p++;
    return p < end && *p == '<';
}

static int feed_bytes(struct reader *r, const struct answer *answer, struct hr_error *e)
{
    struct task *t = &r->stack[r->n - 1];
    const char *where = arena_strdup(&r->nodes.arena, r->key.data);
    struct hr_error why;
    struct json *doc;
    int rc;
    if (!where)
        return error_nomem(e, r->key.size, "a path");
    if (answer->size > READER_MAX_DOCUMENT) {
        char have[24], most[24];
        rc = error_set(&why, HR_EUNSUPPORTED, "%s: a metadata document of %s; at most %s are read",
                       where, error_bytes(have, sizeof have, answer->size),
                       error_bytes(most, sizeof most, READER_MAX_DOCUMENT));
    } else {
        rc = json_parse(&r->nodes.arena, answer->data, answer->size, where, &doc, &why);
        if (rc == HR_EFORMAT && is_markup(answer))
            rc = error_set(&why, rc,
                           "%s: a page of HTML or XML instead of metadata: a sign-in page, a "
                           "proxy's answer, or not "
                           "the address of an archive",
                           where);
    }
    return rc < 0 ? feed_broken(r, t, rc, &why, e) : feed_document(r, t, doc, where, e);
}

int reader_feed(struct reader *r, const struct answer *answer, struct hr_error *e)
{
    int rc;
    if (!r->n)
        return error_set(e, HR_EINTERNAL, "nothing was asked for");
    struct task *t = &r->stack[r->n - 1];
    if (t->phase >= LIST_CHILDREN)
        rc = feed_list(r, answer, e);
    else if (answer->kind == ANSWER_BYTES)
        rc = feed_bytes(r, answer, e);
    else
        rc = feed_missing(r, t, e);
    return rc < 0 ? fail_round(r, rc) : 0;
}

/* ---- steps ----------------------------------------------------------------------------------------------------- */

static int show_need(struct reader *r, const struct task *t, struct need *need, struct hr_error *e)
{
    bool list = t->phase >= LIST_CHILDREN;
    buf_clear(&r->key);
    buf_puts(&r->key, t->path);
    if (!list)
        buf_printf(&r->key, "%s%s", *t->path ? "/" : "", documents[t->phase]);
    if (r->key.failed)
        return error_nomem(e, strlen(t->path), "a key");
    *need = (struct need){.kind = list ? NEED_LIST : NEED_OBJECT,
                          .key = r->key.data ? r->key.data : "",
                          .alternative = !list && t->phase != SEEK_ARRAY_ATTRS};
    return READER_NEED;
}

/* A node that is known already is not read again; a walk goes on below it. */
static bool skip_known(struct reader *r)
{
    struct task *t = &r->stack[r->n - 1];
    if (t->phase != reader_first_phase(r) || !nodes_knows(&r->nodes, t->path))
        return false;
    if (nodes_group(&r->nodes, t->path))
        after_group(r, t);
    else
        pop(r);
    return true;
}

static int finish_round(struct reader *r, struct hr_error *e)
{
    if (r->rootless && !r->nodes.n_arrays && !r->nodes.n_groups)
        return error_set(
            e, HR_ENOENT,
            "no Zarr archive here: neither zarr.json, .zmetadata, .zarray nor .zgroup exists%s",
            r->cannot_list ? "; what may lie below cannot be listed: give the path of an archive, "
                             "a group or an array"
                           : "");
    r->ready = true;
    r->walked |= r->walking;
    return READER_READY;
}

static int step(struct reader *r, struct need *need, struct hr_error *e)
{
    for (;;) {
        if (r->n) {
            if (!skip_known(r))
                return show_need(r, &r->stack[r->n - 1], need, e);
        } else if (r->want.stage != WANT_NOTHING) {
            int rc = want_next(r, e);
            if (rc < 0)
                return rc;
            if (rc)
                r->want.stage = WANT_NOTHING;
        } else {
            return finish_round(r, e);
        }
    }
}

int reader_step(struct reader *r, struct need *need, struct hr_error *e)
{
    int rc = step(r, need, e);
    return rc < 0 ? fail_round(r, rc) : rc;
}

/* ---- what is known --------------------------------------------------------------------------------------------- */

int reader_arrays(const struct reader *r, const struct array *const **arrays)
{
    *arrays = (const struct array *const *)r->nodes.arrays;
    return (int)r->nodes.n_arrays;
}

int reader_groups(const struct reader *r, const struct group **groups)
{
    *groups = r->nodes.groups;
    return (int)r->nodes.n_groups;
}

const struct array *reader_find(const struct reader *r, const char *path)
{
    return nodes_array(&r->nodes, path);
}

const struct array *reader_wanted(const struct reader *r)
{
    return r->want.path ? nodes_array(&r->nodes, r->want.path) : NULL;
}

bool reader_consolidated(const struct reader *r)
{
    return r->consolidated;
}

bool reader_complete(const struct reader *r)
{
    return r->consolidated || nodes_array(&r->nodes, "") || (r->walked && !r->cannot_list);
}

const char *reader_format(const struct reader *r)
{
    return r->root_format == 2 ? "zarr v2" : r->root_format == 3 ? "zarr v3" : "zarr";
}
