/* The hierarchy reader: a queue of small tasks, each knowing the next document it needs.
 *
 * A round (the root, a wanted path, a walk) pushes tasks; reader_step shows what the first one needs and reader_feed moves
 * it on, or to the end of the queue where it needs more, so the reader does no I/O, never recurses, and costs what it
 * pushes: a walk is bounded in nodes and depth. Those behind the first do not wait for its answer: reader_ahead shows what
 * they need, so that the documents of one level can be fetched together. Each
 * node is sought in both versions, for hierarchies mix them: the root as v3 first, for where both stand side by side v3 is
 * the newer, and what lies below it in the version of the root first.
 *
 * Trust: the documents come from anywhere. Paths are checked before they become keys, documents are capped, a broken
 * document is the problem of its node; only the root's own document is an error of opening. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "format/scdl_round.h"

#define MAX_ROOT_PROBES 100

static const char *const documents[] = {
    [SEEK_V3] = "zarr.json",  [SEEK_CONSOLIDATED] = ".zmetadata", [SEEK_ARRAY] = ".zarray",
    [SEEK_GROUP] = ".zgroup", [SEEK_ARRAY_ATTRS] = ".zattrs",     [SEEK_GROUP_ATTRS] = ".zattrs"};

struct reader *reader_new(struct hr_error *e)
{
    struct reader *r = mem_zalloc(sizeof *r);
    if (!r || mem_grow((void **)&r->queue, &r->cap, 16, sizeof *r->queue) < 0) {
        mem_free(r);
        error_nomem(e, sizeof *r, "a reader");
        return NULL;
    }
    nodes_init(&r->nodes);
    buf_init(&r->key);
    r->queue[r->n++] = (struct task){.phase = SEEK_V3, .path = ""};
    return r;
}

void reader_free(struct reader *r)
{
    if (!r)
        return;
    nodes_dispose(&r->nodes);
    buf_dispose(&r->key);
    mem_free(r->guesses);
    mem_free(r->queue);
    mem_free(r);
}

enum phase reader_first_phase(const struct reader *r)
{
    return r->root_format == 2 ? SEEK_ARRAY : SEEK_V3;
}

int reader_append(struct reader *r, const struct task *t, struct hr_error *e)
{
    if (r->head && r->head == r->n)
        r->head = r->n = 0;
    if (r->head > r->n / 2) {
        r->n -= r->head;
        memmove(r->queue, r->queue + r->head, r->n * sizeof *r->queue);
        r->head = 0;
    }
    if (mem_grow((void **)&r->queue, &r->cap, r->n + 1, sizeof *r->queue) < 0)
        return error_nomem(e, (r->n + 1) * sizeof *r->queue, "the hierarchy");
    r->queue[r->n++] = *t;
    return 0;
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
    return reader_append(
        r, &(struct task){.phase = phase, .path = path, .depth = depth, .walk = walk}, e);
}

void reader_forget_round(struct reader *r)
{
    r->n = r->head = 0;
    r->sought = 0;
    r->n_guesses = 0;
    r->walking = false;
    r->want = (struct want){0};
}

bool reader_closed(const struct reader *r)
{
    return r->consolidated || r->scdl;
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
    if (r->scdl)
        return scdl_walk(r, e);
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
    return strcmp(*x, *y);
}

/* The folders among the names of a listing, sorted. mem_free *out. */
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
    if (t->phase == LIST_ROOT) {
        r->below = n;
        r->looked = n < most ? n : most;
    }
    for (size_t i = 0; i < n && i < most && rc >= 0; i++)
        rc = push_child(r, t->path, names[i], strlen(names[i]) - 1, t->depth + 1, t->walk, e);
    mem_free(names);
    return rc;
}

/* ---- answers --------------------------------------------------------------------------------------------------- */

/* The task being fed is off the queue; it is appended where it needs more. */
static int go_on(struct reader *r, struct task *t, enum phase phase, struct hr_error *e)
{
    t->phase = phase;
    return reader_append(r, t, e);
}

/* A group has been read: into its children, or done. */
static int after_group(struct reader *r, struct task *t, struct hr_error *e)
{
    return t->walk ? go_on(r, t, LIST_CHILDREN, e) : 0;
}

/* An array has been read: done, but where nothing can be listed it names others. */
static int after_array(struct reader *r, const struct task *t, struct hr_error *e)
{
    const struct array *x = nodes_array(&r->nodes, t->path);
    return t->walk && r->cannot_list && x ? probe_companions(r, x, t->depth - 1, e) : 0;
}

static int after_node(struct reader *r, struct task *t, struct hr_error *e)
{
    return nodes_group(&r->nodes, t->path) ? after_group(r, t, e) : after_array(r, t, e);
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
        return go_on(r, t, t->phase == SEEK_ARRAY ? SEEK_ARRAY_ATTRS : SEEK_GROUP_ATTRS, e);
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
    return next_phase(r, t) ? go_on(r, t, t->phase, e) : 0;
}

static int feed_list(struct reader *r, const struct task *t, const struct answer *answer,
                     struct hr_error *e)
{
    const char **names;
    size_t n;
    r->cannot_list |= answer->kind == ANSWER_UNSUPPORTED;
    if (t->phase == LIST_CHILDREN && answer->kind == ANSWER_UNSUPPORTED)
        return probe_children(r, t, e);
    if (t->phase == LIST_ROOT) {
        bool begun = false;
        TRY(scdl_begin(r, answer->kind == ANSWER_UNSUPPORTED ? NULL : answer, &begun, e));
        if (begun)
            return 0;
    }
    if (answer->kind != ANSWER_BYTES)
        return 0;
    if (t->phase != LIST_NAMES)
        return push_folders(r, t, answer, t->phase == LIST_ROOT ? MAX_ROOT_PROBES : MAX_NODES, e);
    int rc = folders_of(answer, &names, &n, e);
    for (size_t i = 0; i < n && rc >= 0; i++) {
        const char *path = arena_printf(&r->nodes.arena, "%s%s%.*s", t->path, *t->path ? "/" : "",
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
    return nodes_add_broken(&r->nodes, t->path, rc, why, e);
}

/* Web servers answer with pages, of all statuses. */
static bool is_markup(const struct answer *answer)
{
    const char *p = answer->data, *end = p + answer->size;
    while (p < end && strchr(" \t\r\n\xef\xbb\xbf", *p) && *p)
        p++;
    return p < end && *p == '<';
}

static int feed_bytes(struct reader *r, struct task *t, const struct answer *answer,
                      struct hr_error *e)
{
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
    if (r->head == r->n)
        return error_set(e, HR_EINTERNAL, "nothing was asked for");
    struct task t = r->queue[r->head++];
    if (t.phase >= SCDL_HEADER)
        rc = scdl_feed(r, &t, answer, e);
    else if (t.phase >= LIST_CHILDREN)
        rc = feed_list(r, &t, answer, e);
    else if (answer->kind == ANSWER_BYTES)
        rc = feed_bytes(r, &t, answer, e);
    else
        rc = feed_missing(r, &t, e);
    return rc < 0 ? fail_round(r, rc) : 0;
}

/* ---- steps ----------------------------------------------------------------------------------------------------- */

static int show_need(const struct task *t, struct buf *key, struct need *need, struct hr_error *e)
{
    bool other = t->phase >= SCDL_HEADER, list = t->phase >= LIST_CHILDREN && !other;
    buf_clear(key);
    buf_puts(key, t->path);
    if (!list && !other)
        buf_printf(key, "%s%s", *t->path ? "/" : "", documents[t->phase]);
    if (key->failed)
        return error_nomem(e, strlen(t->path), "a key");
    *need = (struct need){.kind = list ? NEED_LIST : NEED_OBJECT,
                          .key = key->data ? key->data : "",
                          .alternative = !list && t->phase != SEEK_ARRAY_ATTRS};
    if (other)
        scdl_need(t, need);
    return READER_NEED;
}

/* A node that is known already is not read again; a walk goes on below it. */
static bool is_known(const struct reader *r, const struct task *t)
{
    return t->phase < LIST_CHILDREN && nodes_knows(&r->nodes, t->path);
}

/* A root that is not of version 3 is sought under one name after another, which would cost a round trip each. */
static const struct task root_names[] = {{.phase = SEEK_ARRAY, .path = ""},
                                         {.phase = SEEK_GROUP, .path = ""},
                                         {.phase = SCDL_HEADER, .path = "header.sch"}};

int reader_ahead(const struct reader *r, size_t i, struct buf *key, struct need *need,
                 struct hr_error *e)
{
    size_t n = r->n - r->head;
    bool root = n == 1 && r->queue[r->head].phase == SEEK_CONSOLIDATED;
    if (root && i > 0 && i <= sizeof root_names / sizeof *root_names)
        return show_need(&root_names[i - 1], key, need, e);
    if (i >= n)
        return READER_READY;
    const struct task *t = &r->queue[r->head + i];
    TRY(show_need(t, key, need, e));
    if (is_known(r, t))
        need->key = NULL;
    return READER_NEED;
}

static int skip_known(struct reader *r, struct hr_error *e)
{
    while (r->head < r->n && is_known(r, &r->queue[r->head])) {
        struct task t = r->queue[r->head++];
        if (nodes_group(&r->nodes, t.path))
            TRY(after_group(r, &t, e));
    }
    return 0;
}

/* `looked` into some of the folders below only: what lies in the others is not known. */
static int no_archive(const struct reader *r, struct hr_error *e)
{
    char more[128] = "";
    if (r->cannot_list)
        snprintf(
            more, sizeof more,
            "; what may lie below cannot be listed: give the path of an archive, a group or an "
            "array");
    else if (r->looked < r->below)
        snprintf(more, sizeof more,
                 "; looked into %zu of the %zu directories below: give the path of an archive",
                 r->looked, r->below);
    return error_set(
        e, HR_ENOENT,
        "no Zarr archive here (nor AnnData's, nor SCDL): neither zarr.json, .zmetadata, "
        ".zarray, .zgroup nor header.sch exists%s",
        more);
}

static int finish_round(struct reader *r, struct hr_error *e)
{
    if (r->rootless && !r->nodes.n_arrays && !r->nodes.n_groups)
        return no_archive(r, e);
    r->ready = true;
    r->walked |= r->walking;
    return READER_READY;
}

static int step(struct reader *r, struct need *need, struct hr_error *e)
{
    for (;;) {
        TRY(skip_known(r, e));
        if (r->head < r->n)
            return show_need(&r->queue[r->head], &r->key, need, e);
        if (r->want.stage == WANT_NOTHING)
            return finish_round(r, e);
        int rc = want_next(r, e);
        if (rc < 0)
            return rc;
        if (rc)
            r->want.stage = WANT_NOTHING;
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
    return reader_closed(r) || nodes_array(&r->nodes, "") || (r->walked && !r->cannot_list);
}

const char *reader_format(const struct reader *r)
{
    if (r->scdl)
        return scdl_format(r);
    return r->root_format == 2 ? "zarr v2" : r->root_format == 3 ? "zarr v3" : "zarr";
}
