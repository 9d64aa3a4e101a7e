/* headrace inspect: an archive as a tree, one line per array, or one array in full.
 *
 * The report of the library (hr_archive_json) comes sorted by path, so the tree is built by looking at the last child only.
 * Columns are as wide as their widest entry, up to a limit: a single long name must not push everything off the screen. */
#include "atlas.h"
#include "cli.h"
#include "json.h"
#include "options.h"
#include <langinfo.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: headrace inspect [OPTION…] ARCHIVE [ARRAY]\n\n"
    "Shows what an archive holds: arrays with their dimensions, types, chunks and codecs.\n"
    "With ARRAY, that array or group in full, with its attributes. Reads metadata only.\n\n"
    "  --json          as JSON\n"
    "  --options JSON  storage options of a URL, such as '{\"connect_timeout\": 3}'\n";

enum { LABEL, SHAPE, DTYPE, SIZE, CHUNKS, CODECS, N_COLUMNS };
enum { CHUNKS_SHOWN = 2 };
#define WIDEST 44

struct text {
    char *data;
    size_t size, cap;
};
struct branch {
    const char *name;
    const struct value *node; /* NULL: a group nobody wrote a document for */
    struct branch *first, *last, *next;
};
struct row {
    char *cell[N_COLUMNS]; /* NULL: empty */
    const char *error;
    struct row *next;
};
struct table {
    struct row *first, **tail;
    int width[N_COLUMNS];
    bool ascii;
};

/* ---- small things ------------------------------------------------------------------------------------------------ */

static void add(struct text *t, const char *s)
{
    size_t n = strlen(s);
    if (t->size + n + 1 > t->cap) {
        char *larger = cli_keep(t->cap = (t->size + n + 1) * 2);
        if (t->size)
            memcpy(larger, t->data, t->size);
        t->data = larger;
    }
    memcpy(t->data + t->size, s, n + 1);
    t->size += n;
}

static double product(const struct value *list)
{
    double p = 1;
    for (const struct value *v = list ? list->first : NULL; v; v = v->next)
        p *= strtod(v->text, NULL);
    return p;
}

/* Bytes of one item, from the array's own. 0 when the array is empty or its items vary in size. */
static double item_size(const struct value *array)
{
    double items = product(value_get(array, "shape"));
    return items > 0 ? value_number(array, "bytes", 0) / items : 0;
}

/* ---- what a cell says -------------------------------------------------------------------------------------------- */

static char *shape_text(const struct value *array)
{
    const struct value *shape = value_get(array, "shape"), *dims = value_get(array, "dims");
    const struct value *name = dims ? dims->first : NULL;
    struct text t = {0};
    if (!shape)
        return NULL;
    add(&t, "(");
    for (const struct value *n = shape->first; n; n = n->next) {
        if (name && name->type == VALUE_STRING) {
            add(&t, name->text);
            add(&t, ": ");
        }
        add(&t, n->text);
        add(&t, n->next ? ", " : "");
        name = name ? name->next : NULL;
    }
    add(&t, ")");
    return t.data;
}

static void add_extent(struct text *t, const struct value *list, const char *times)
{
    for (const struct value *n = list->first; n; n = n->next) {
        add(t, n->text);
        add(t, n->next ? times : "");
    }
}

/* "3×4×5 (120 B)", "3×4×5 (120 B) in shards of 6×8×10" */
static char *chunks_text(const struct value *array, bool ascii)
{
    const struct value *chunks = value_get(array, "chunks"), *shards = value_get(array, "shards");
    const char *times = ascii ? "x" : "×", *most = ascii ? "<= " : "≤ ";
    const struct value *odd = value_get(array, "rectilinear");
    struct text t = {0};
    char bytes[24];
    if (!chunks || !chunks->first)
        return NULL;
    add(&t, odd && !strcmp(odd->text, "true") ? most : "");
    add_extent(&t, chunks, times);
    if (item_size(array) > 0) {
        add(&t, " (");
        add(&t, cli_bytes(bytes, product(chunks) * item_size(array)));
        add(&t, ")");
    }
    if (shards) {
        add(&t, " in shards of ");
        add_extent(&t, shards, times);
    }
    return t.data;
}

static char *copy(const char *s)
{
    return s ? cli_keep_text(s, strlen(s)) : NULL;
}

/* "bytes → zstd(3)" */
static char *codecs_text(const struct value *array, bool ascii)
{
    const char *s = value_text(array, "codecs", NULL), *arrow;
    struct text t = {0};
    if (!s || !ascii)
        return copy(s);
    for (; (arrow = strstr(s, "→")); s = arrow + strlen("→")) {
        add(&t, cli_keep_text(s, (size_t)(arrow - s)));
        add(&t, "->");
    }
    add(&t, s);
    return t.data;
}

static char *size_text(const struct value *array)
{
    char bytes[24];
    if (!value_get(array, "bytes") ||
        (item_size(array) == 0 && product(value_get(array, "shape")) > 0))
        return NULL;
    return copy(cli_bytes(bytes, value_number(array, "bytes", 0)));
}

/* ---- the tree ---------------------------------------------------------------------------------------------------- */

static struct branch *child_of(struct branch *b, const char *name, size_t n)
{
    if (b->last && !strncmp(b->last->name, name, n) && !b->last->name[n])
        return b->last;
    struct branch *c = cli_keep(sizeof *c);
    c->name = cli_keep_text(name, n);
    *(b->last ? &b->last->next : &b->first) = c;
    b->last = c;
    return c;
}

/* Chunks of an SCDL look alike, and may be a thousand: how many of them are not shown. */
static long alike(const struct value *archive)
{
    const struct value *attributes = value_get(archive, "attributes");
    long chunks = attributes ? (long)value_number(attributes, "n_chunks", 0) : 0;
    return !strcmp(value_text(archive, "format", ""), "SCDL chunked") && chunks > CHUNKS_SHOWN + 1
               ? chunks - CHUNKS_SHOWN
               : 0;
}

static void plant(struct branch *root, const struct value *nodes, bool few)
{
    for (const struct value *v = nodes ? nodes->first : NULL; v; v = v->next) {
        struct branch *b = root;
        const char *path = value_text(v, "path", "");
        if (few && !strncmp(path, "chunk_", 6) && strtol(path + 6, NULL, 10) >= CHUNKS_SHOWN)
            continue;
        for (const char *p = path; *p;) {
            size_t n = strcspn(p, "/");
            b = child_of(b, p, n);
            p += n + (p[n] == '/');
        }
        b->node = v;
    }
}

static bool is_array(const struct branch *b)
{
    return b->node && !strcmp(value_text(b->node, "kind", ""), "array");
}

static void add_row(struct table *t, const struct branch *b, const char *lead, const char *turn)
{
    struct row *r = cli_keep(sizeof *r);
    struct text label = {0};
    add(&label, lead);
    add(&label, turn);
    add(&label, b->name);
    add(&label, is_array(b) ? "" : "/");
    r->cell[LABEL] = label.data;
    r->error = value_text(b->node, "error", NULL);
    if (is_array(b)) {
        r->cell[SHAPE] = shape_text(b->node);
        r->cell[DTYPE] = copy(value_text(b->node, "dtype", NULL));
    }
    if (is_array(b) && !r->error) {
        r->cell[SIZE] = size_text(b->node);
        r->cell[CHUNKS] = chunks_text(b->node, t->ascii);
        r->cell[CODECS] = codecs_text(b->node, t->ascii);
    }
    for (int c = 0; c < N_COLUMNS; c++) {
        int width = r->cell[c] && (is_array(b) || c == LABEL)
                        ? cli_width(r->cell[c], strlen(r->cell[c]))
                        : 0;
        if (width > t->width[c])
            t->width[c] = width < WIDEST ? width : WIDEST;
    }
    *t->tail = r;
    t->tail = &r->next;
}

static void add_rows(struct table *t, const struct branch *b, const char *lead)
{
    for (const struct branch *c = b->first; c; c = c->next) {
        struct text below = {0};
        const char *turn = t->ascii ? (c->next ? "|- " : "`- ") : c->next ? "├─ " : "└─ ";
        add_row(t, c, lead, turn);
        add(&below, lead);
        add(&below, !c->next ? "   " : t->ascii ? "|  " : "│  ");
        add_rows(t, c, below.data);
    }
}

static void print_row(const struct table *t, const struct row *r)
{
    int last = r->error ? N_COLUMNS : LABEL;
    for (int c = 0; c < N_COLUMNS && !r->error; c++)
        last = r->cell[c] ? c : last;
    for (int c = 0; c < N_COLUMNS && c <= last; c++) {
        const char *s = r->cell[c] ? r->cell[c] : "";
        int space = t->width[c] - cli_width(s, strlen(s));
        if (r->error && !*s && c > DTYPE)
            break;
        if (c == SIZE)
            printf("%*s%s", space > 0 ? space : 0, "", s);
        else
            fputs(s, stdout);
        if (c < last)
            printf("%*s", (c != SIZE && space > 0 ? space : 0) + 2, "");
    }
    if (r->error)
        printf("cannot be read: %s", r->error);
    putchar('\n');
}

static bool is_complete(const struct value *archive)
{
    return strcmp(value_text(archive, "complete", "true"), "false") != 0;
}

/* "URL  zarr v3, consolidated, 6 arrays, 58.1 kB decoded" */
static void print_headline(const struct value *archive, int arrays, double total)
{
    char bytes[24];
    bool consolidated = !strcmp(value_text(archive, "consolidated", "false"), "true");
    printf("%s  %s%s, ", value_text(archive, "url", ""), value_text(archive, "format", ""),
           consolidated ? ", consolidated" : "");
    if (!arrays && !is_complete(archive))
        puts("arrays unknown");
    else
        printf("%s array%s%s, %s decoded\n", cli_count(arrays), arrays == 1 ? "" : "s",
               is_complete(archive) ? "" : " known", cli_bytes(bytes, total));
}

static void print_tree(const struct value *archive)
{
    const struct value *nodes = value_get(archive, "nodes");
    const char *codeset = nl_langinfo(CODESET);
    struct branch root = {.name = value_text(archive, "url", "")};
    struct table t = {.ascii = strcmp(codeset, "UTF-8") != 0};
    double total = 0;
    int arrays = 0;
    t.tail = &t.first;
    long more = alike(archive);
    plant(&root, nodes, more > 0);
    for (const struct value *v = nodes ? nodes->first : NULL; v; v = v->next)
        if (!strcmp(value_text(v, "kind", ""), "array")) {
            arrays++;
            total += value_number(v, "bytes", 0);
        }
    print_headline(archive, arrays, total);
    const char *atlas = atlas_line(archive, t.ascii);
    if (atlas)
        puts(atlas);
    if (is_array(&root)) {
        root.name = ".";
        add_row(&t, &root, "", "");
    }
    add_rows(&t, &root, "");
    for (const struct row *r = t.first; r; r = r->next)
        print_row(&t, r);
    if (more)
        printf("%s and %s more chunks like these\n", t.ascii ? "..." : "…", cli_count(more));
    if (!is_complete(archive))
        printf("The store cannot list and the metadata is not consolidated: arrays are read by "
               "name, as in\n  headrace inspect %s NAME\n",
               value_text(archive, "url", ""));
}

/* ---- one node in full -------------------------------------------------------------------------------------------- */

static void print_field(const char *name, const char *value)
{
    if (value)
        printf("  %-11s %s\n", name, value);
}

static void print_node(const struct value *node, const char *path)
{
    const struct value *attributes = value_get(node, "attributes"),
                       *fill = value_get(node, "fill_value");
    bool ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
    printf("%s  %s\n", *path ? path : ".", value_text(node, "kind", ""));
    print_field("error", value_text(node, "error", NULL));
    print_field("shape", shape_text(node));
    print_field("dtype", value_text(node, "dtype", NULL));
    print_field("size", size_text(node));
    if (chunks_text(node, ascii))
        printf("  %-11s %s; %s in all\n", "chunks", chunks_text(node, ascii),
               cli_count(value_number(node, "n_chunks", 0)));
    print_field("codecs", codecs_text(node, ascii));
    if (fill) {
        printf("  %-11s ", "fill value");
        value_print(fill, stdout);
        putchar('\n');
    }
    if (!value_count(attributes))
        return;
    puts("  attributes");
    for (const struct value *v = attributes->first; v; v = v->next) {
        printf("    %s: ", v->key);
        value_print(v, stdout);
        putchar('\n');
    }
}

static int show_node(const struct value *node, const char *path, bool as_json)
{
    if (as_json) {
        value_print(node, stdout);
        putchar('\n');
    } else {
        print_node(node, path);
    }
    return cli_finish();
}

static int show_archive(const char *json, bool as_json)
{
    if (as_json)
        puts(json);
    else
        print_tree(json_read(json));
    return cli_finish();
}

static const struct value *find_node(const struct value *archive, const char *path)
{
    const struct value *nodes = value_get(archive, "nodes");
    const struct value *v = nodes ? nodes->first : NULL;
    while (v && strcmp(value_text(v, "path", ""), path))
        v = v->next;
    return v;
}

/* "/a/b/" is "a/b". */
static const char *bare(const char *path)
{
    while (*path == '/')
        path++;
    size_t n = strlen(path);
    while (n && path[n - 1] == '/')
        n--;
    return cli_keep_text(path, n);
}

/* Of all that the archive holds, groups too; arrays alone are what the library's own words name. */
static int fail_near(const struct value *archive, const char *path, const struct hr_error *e)
{
    const struct value *nodes = archive ? value_get(archive, "nodes") : NULL;
    struct hr_error said = *e;
    struct cli_near near;
    cli_near_init(&near, path);
    for (const struct value *v = nodes ? nodes->first : NULL; v; v = v->next)
        cli_near_offer(&near, value_text(v, "path", ""));
    size_t n = strlen(said.text);
    if (near.name && !strstr(said.text, "did you mean"))
        snprintf(said.text + n, sizeof said.text - n, "; did you mean '%s'?", near.name);
    return cli_fail(&said);
}

/* An array is looked up by its name, which needs no list and no walk; what else has a path is a group. */
static int show_path(struct hr_archive *a, const char *path, bool as_json)
{
    char *json = NULL, *all = NULL;
    struct hr_error e, unlisted;
    const struct value *group = NULL, *archive = NULL;
    int rc = hr_archive_array_json(a, path, &json, &e);
    if (rc == HR_ENOENT && hr_archive_json(a, &all, &unlisted) >= 0)
        archive = json_read(all);
    if (archive)
        group = find_node(archive, path);
    if (rc >= 0 || group)
        rc = show_node(group ? group : json_read(json), path, as_json);
    else
        rc = fail_near(archive, path, &e);
    hr_free(json);
    hr_free(all);
    return rc;
}

int command_inspect(int argc, char **argv)
{
    bool as_json = false;
    const struct place_option own[] = {{"json", NULL, &as_json}, {NULL, NULL, NULL}};
    struct place p;
    struct hr_archive *a;
    struct hr_error e;
    char *json = NULL;
    int rc = place_read(argc, argv, usage, own, &p);
    if (rc)
        return rc < 0 ? EXIT_OK : rc;
    if (hr_open(p.url, p.storage, &a, &e) < 0)
        return cli_fail(&e);
    if (p.array)
        rc = show_path(a, bare(p.array), as_json);
    else
        rc = hr_archive_json(a, &json, &e) < 0 ? cli_fail(&e) : show_archive(json, as_json);
    hr_free(json);
    hr_archive_unref(a);
    return rc;
}
