/* hr_archive_json: the whole archive as one JSON text, for trees, reports and other languages; hr_archive_array_json: one
 * array of it.
 *
 * Nodes are in order of path, so that a tree can be drawn in one pass. What a broken array does not know is null; its error
 * stands beside. Attributes and fill values are written as their documents have them, numbers digit for digit. */
#include <stdlib.h>
#include <string.h>
#include "api/archive.h"
#include "base/buf.h"
#include "base/mem.h"
#include "format/cf.h"

struct node {
    const char *path;
    const struct array *array; /* or … */
    const struct group *group;
};

static void put_text(struct buf *b, const char *s)
{
    if (s)
        buf_json_string(b, s, strlen(s));
    else
        buf_puts(b, "null");
}

static void put_json(struct buf *b, const struct json *v)
{
    if (v)
        json_write(v, b);
    else
        buf_puts(b, "null");
}

static void put_numbers(struct buf *b, const uint64_t *v, int n)
{
    if (!v) {
        buf_puts(b, "null");
        return;
    }
    buf_putc(b, '[');
    for (int i = 0; i < n; i++)
        buf_printf(b, "%s%llu", i ? ", " : "", (unsigned long long)v[i]);
    buf_putc(b, ']');
}

static void put_dims(struct buf *b, const struct array *x)
{
    if (!x->dims) {
        buf_puts(b, "null");
        return;
    }
    buf_putc(b, '[');
    for (int d = 0; d < x->ndim; d++) {
        buf_puts(b, d ? ", " : "");
        put_text(b, x->dims[d]);
    }
    buf_putc(b, ']');
}

static uint64_t decoded_bytes(const struct array *x)
{
    uint64_t n = x->type.item_size;
    for (int d = 0; d < x->ndim; d++)
        n *= x->shape[d]; /* checked when the array was read */
    return n;
}

/* What numpy calls the type: a text, or [[name, type, repeat], …] of a struct. Types that numpy lacks are bytes. */
static void put_numpy_type(struct buf *b, const struct dtype *t)
{
    if (t->n_fields) {
        buf_putc(b, '[');
        for (uint32_t i = 0; i < t->n_fields; i++) {
            buf_puts(b, i ? ", [" : "[");
            put_text(b, t->fields[i].name);
            buf_puts(b, ", ");
            put_numpy_type(b, t->fields[i].type);
            if (t->fields[i].repeat != 1)
                buf_printf(b, ", [%llu]", (unsigned long long)t->fields[i].repeat);
            buf_putc(b, ']');
        }
        buf_putc(b, ']');
    } else if (t->kind == HR_RAW && (!t->name || t->name[0] != 'S')) {
        buf_printf(b, "\"V%llu\"", (unsigned long long)t->item_size);
    } else {
        put_text(b, t->name);
    }
}

static void put_types(struct buf *b, const struct array *x)
{
    struct cf cf;
    bool known = !x->problem && cf_of_array(x, &cf, NULL) >= 0;
    buf_puts(b, ", \"numpy_dtype\": ");
    put_numpy_type(b, &x->type);
    buf_puts(b, ", \"decoded_dtype\": ");
    put_text(b, known && cf.result != x->type.kind ? hr_dtype_name(cf.result) : x->type.name);
}

static void put_array(struct buf *b, const struct array *x)
{
    bool known = !x->problem;
    buf_puts(b, ", \"shape\": ");
    put_numbers(b, x->shape, x->ndim);
    buf_puts(b, ", \"dims\": ");
    put_dims(b, x);
    buf_puts(b, ", \"dtype\": ");
    put_text(b, x->type.name);
    put_types(b, x);
    buf_puts(b, ", \"chunks\": ");
    put_numbers(b, x->chunk, x->ndim);
    buf_puts(b, ", \"shards\": ");
    put_numbers(b, x->shard, x->ndim);
    buf_printf(b, ", \"rectilinear\": %s", x->edges ? "true" : "false");
    buf_puts(b, ", \"codecs\": ");
    put_text(b, array_codecs(x));
    buf_puts(b, ", \"fill_value\": ");
    put_json(b, array_fill_json(x));
    buf_puts(b, ", \"bytes\": ");
    if (known && x->type.item_size)
        buf_printf(b, "%llu", (unsigned long long)decoded_bytes(x));
    else
        buf_puts(b, "null"); /* nobody knows before reading how long strings are */
    buf_puts(b, ", \"n_chunks\": ");
    if (known)
        buf_printf(b, "%llu", (unsigned long long)x->n_chunks);
    else
        buf_puts(b, "null");
    buf_puts(b, ", \"error\": ");
    put_text(b, x->problem);
}

static void put_node(struct buf *b, const struct node *n)
{
    buf_puts(b, "{\"path\": ");
    put_text(b, n->path);
    buf_printf(b, ", \"kind\": \"%s\", \"attributes\": ", n->array ? "array" : "group");
    put_json(b, n->array ? n->array->attributes : n->group->attributes);
    if (n->array) {
        put_array(b, n->array);
    } else {
        buf_puts(b, ", \"error\": ");
        put_text(b, n->group->problem);
    }
    buf_putc(b, '}');
}

/* '/' sorts before every other character, so that "a/b" follows "a" and comes before "a.c". */
static int compare_nodes(const void *a, const void *b)
{
    const unsigned char *x = (const unsigned char *)((const struct node *)a)->path;
    const unsigned char *y = (const unsigned char *)((const struct node *)b)->path;
    while (*x && *x == *y) {
        x++;
        y++;
    }
    int l = *x == '/' ? 1 : *x ? *x + 1 : 0, r = *y == '/' ? 1 : *y ? *y + 1 : 0;
    return l - r;
}

static struct node *list_nodes(const struct archive_contents *c, size_t *count)
{
    struct node *nodes = mem_array((size_t)(c->n_arrays + c->n_groups), sizeof *nodes);
    size_t n = 0;
    for (int i = 0; nodes && i < c->n_groups; i++)
        nodes[n++] = (struct node){.path = c->groups[i].path, .group = &c->groups[i]};
    for (int i = 0; nodes && i < c->n_arrays; i++)
        if (!c->arrays[i]->field_stride)
            nodes[n++] = (struct node){.path = c->arrays[i]->path, .array = c->arrays[i]};
    if (n)
        qsort(nodes, n, sizeof *nodes, compare_nodes);
    *count = n;
    return nodes;
}

struct report {
    const char *url;
    struct buf text;
};

static int report(const struct archive_contents *c, void *arg, struct hr_error *e)
{
    struct report *x = arg;
    struct buf *b = &x->text;
    size_t n;
    struct node *nodes = list_nodes(c, &n);
    if (!nodes)
        return error_nomem(e, n, "the list of nodes");
    buf_puts(b, "{\"url\": ");
    put_text(b, x->url);
    buf_puts(b, ", \"format\": ");
    put_text(b, c->format);
    buf_puts(b, ", \"attributes\": ");
    const struct node *root = n && !*nodes[0].path ? &nodes[0] : NULL;
    put_json(b, !root ? NULL : root->array ? root->array->attributes : root->group->attributes);
    buf_printf(b, ", \"consolidated\": %s, \"complete\": %s, \"nodes\": [",
               c->consolidated ? "true" : "false", c->complete ? "true" : "false");
    for (size_t i = 0; i < n; i++) {
        buf_puts(b, i ? ", " : "");
        put_node(b, &nodes[i]);
    }
    buf_puts(b, "]}");
    mem_free(nodes);
    return b->failed ? error_nomem(e, b->size, "the report") : 0;
}

int hr_archive_json(struct hr_archive *a, char **json, struct hr_error *e)
{
    if (!a || !json)
        return error_set(e, HR_EINVAL, "hr_archive_json: no archive, or no place for the text");
    struct report x = {.url = archive_url(a)};
    buf_init(&x.text);
    int rc = archive_walk(a, report, &x, e);
    if (rc >= 0 && !(*json = buf_take(&x.text)))
        rc = error_nomem(e, x.text.size, "the report");
    buf_dispose(&x.text);
    return rc;
}

int hr_archive_array_json(struct hr_archive *a, const char *array, char **json, struct hr_error *e)
{
    const struct array *x;
    struct buf b;
    int rc = 0;
    if (!a || !array || !json)
        return error_set(e, HR_EINVAL,
                         "hr_archive_array_json: no archive, no array, or no place for the text");
    TRY(archive_look_up(a, array, &x, e));
    buf_init(&b);
    put_node(&b, &(struct node){.path = x->path, .array = x});
    if (!(*json = buf_take(&b)))
        rc = error_nomem(e, b.size, "the report");
    buf_dispose(&b);
    return rc;
}
