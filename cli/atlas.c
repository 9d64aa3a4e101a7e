/* An atlas is a group that says it is AnnData's and has a matrix X, an annbatch collection of such groups, or SCDL, whose
 * header says how many cells and values there are. The numbers of a collection are sums. */
#include "atlas.h"
#include "cli.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sum {
    double cells, genes, nnz; /* nnz of dense matrices: -1 */
    const char *form, *dtype;
    int sets;
};

static const struct value *node_at(const struct value *archive, const char *lead, const char *name)
{
    const struct value *nodes = value_get(archive, "nodes");
    size_t n = strlen(lead);
    for (const struct value *v = nodes ? nodes->first : NULL; v; v = v->next) {
        const char *path = value_text(v, "path", "");
        if (!strncmp(path, lead, n) && !strcmp(path + n, name))
            return v;
    }
    return NULL;
}

static double item(const struct value *list, int i)
{
    const struct value *v = list ? list->first : NULL;
    for (; v && i; i--)
        v = v->next;
    return v ? strtod(v->text, NULL) : 0;
}

static const char *encoding(const struct value *of)
{
    return value_text(value_get(of, "attributes"), "encoding-type", "");
}

static void add(struct sum *s, double cells, double genes, double nnz, const char *form,
                const struct value *values)
{
    s->cells += cells;
    s->genes = genes > s->genes ? genes : s->genes;
    s->nnz = nnz < 0 || s->nnz < 0 ? -1 : s->nnz + nnz;
    s->form = form;
    s->dtype = value_text(values, "dtype", "?");
    s->sets++;
}

/* The AnnData whose members' paths begin with `lead`. */
static void add_anndata(struct sum *s, const struct value *archive, const char *lead)
{
    const struct value *x = node_at(archive, lead, "X"), *data = node_at(archive, lead, "X/data");
    if (!x)
        return;
    const struct value *attributes = value_get(x, "attributes");
    const struct value *shape = value_get(attributes, "shape");
    bool by_genes = !strcmp(encoding(x), "csc_matrix");
    if (data && shape)
        add(s, item(shape, 0), item(shape, 1), item(value_get(data, "shape"), 0),
            by_genes ? "CSC" : "CSR", data);
    else if (!strcmp(value_text(x, "kind", ""), "array"))
        add(s, item(value_get(x, "shape"), 0), item(value_get(x, "shape"), 1), -1, "dense", x);
}

static void add_collection(struct sum *s, const struct value *archive)
{
    const struct value *nodes = value_get(archive, "nodes");
    for (const struct value *v = nodes ? nodes->first : NULL; v; v = v->next) {
        const char *path = value_text(v, "path", "");
        if (strncmp(path, "dataset_", 8) != 0 || strchr(path, '/'))
            continue;
        char *lead = cli_keep(strlen(path) + 2);
        sprintf(lead, "%s/", path);
        add_anndata(s, archive, lead);
    }
}

static void add_scdl(struct sum *s, const struct value *archive)
{
    const struct value *attributes = value_get(archive, "attributes");
    const struct value *values = node_at(archive, "", "X/data");
    values = values ? values : node_at(archive, "", "chunk_00000/data");
    add(s, value_number(attributes, "n_obs", 0), 0, value_number(attributes, "nnz", 0), "CSR",
        values);
}

/* 12,345; from ten million on 1.23e7. */
static const char *counted(double n)
{
    if (n < 1e7)
        return cli_count(n);
    int exponent = 0;
    for (; n >= 9.995; exponent++)
        n /= 10;
    char *out = cli_keep(16);
    snprintf(out, 16, "%.2fe%d", n, exponent);
    return out;
}

const char *atlas_line(const struct value *archive, bool ascii)
{
    struct sum s = {0};
    const char *kind = encoding(archive);
    if (!strncmp(value_text(archive, "format", ""), "SCDL", 4))
        add_scdl(&s, archive);
    else if (!strcmp(kind, "anndata"))
        add_anndata(&s, archive, "");
    else if (!strcmp(kind, "annbatch-preshuffled"))
        add_collection(&s, archive);
    if (!s.sets)
        return NULL;
    char *line = cli_keep(256), *p = line, *end = line + 256;
    p += snprintf(p, (size_t)(end - p), "%s cells", cli_count(s.cells));
    if (s.genes > 0)
        p += snprintf(p, (size_t)(end - p), " %s %s genes", ascii ? "x" : "×", cli_count(s.genes));
    p += snprintf(p, (size_t)(end - p), ", %s %.20s", s.form, s.dtype);
    if (s.nnz >= 0)
        p += snprintf(p, (size_t)(end - p), ", %s non-zeros", counted(s.nnz));
    if (s.sets > 1)
        snprintf(p, (size_t)(end - p), ", in %d data sets", s.sets);
    return line;
}
