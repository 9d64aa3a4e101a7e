/* Tensors out of memory: labels of cells and whatever else the caller has at hand, row by row beside what is read. */
#include <string.h>

#include "api/core.h"
#include "base/mem.h"

static int check(const struct core *c, const char *name, enum hr_dtype t, const void *data,
                 int64_t n, int64_t items, struct hr_error *e)
{
    if (!name || !*name)
        return error_set(e, HR_EINVAL, "a table needs a name");
    for (size_t i = 0; i < c->n_views; i++)
        if (!strcmp(c->views[i]->name, name))
            return error_set(e, HR_EINVAL, "there is a view named %s already", name);
    for (size_t i = 0; i < c->n_tables; i++)
        if (!strcmp(c->tables[i].name, name))
            return error_set(e, HR_EINVAL, "there are two tables named %s", name);
    if (!data || n < 1 || items < 1 || !hr_dtype_size(t) || t == HR_DATETIME64 ||
        t == HR_TIMEDELTA64)
        return error_set(e, HR_EINVAL, "table %s: numbers for at least one position are needed",
                         name);
    return 0;
}

static int add(struct core *c, const char *name, enum hr_dtype t, const void *data, int64_t n,
               int64_t items, struct hr_error *e)
{
    uint64_t bytes = hr_dtype_size(t);
    TRY(check(c, name, t, data, n, items, e));
    if (!mul_u64(bytes, (uint64_t)n, &bytes) || !mul_u64(bytes, (uint64_t)items, &bytes) ||
        mem_grow((void **)&c->tables, &c->cap_tables, c->n_tables + 1, sizeof *c->tables))
        return error_nomem(e, bytes, "a table");
    struct table_spec *x = &c->tables[c->n_tables];
    *x = (struct table_spec){.name = arena_strdup(&c->arena, name),
                             .dtype = t,
                             .data = mem_alloc(bytes),
                             .n = n,
                             .items = items};
    if (!x->name || !x->data) {
        mem_free(x->data);
        return error_nomem(e, bytes, "a table");
    }
    memcpy(x->data, data, bytes);
    c->n_tables++;
    return 0;
}

int hr_samples_table(struct hr_samples *s, const char *name, enum hr_dtype t, const void *data,
                     int64_t n, int64_t items, struct hr_error *e)
{
    pthread_mutex_lock(&s->core->lock);
    int rc = core_building(s, e);
    if (!rc)
        rc = add(s->core, name, t, data, n, items, e);
    pthread_mutex_unlock(&s->core->lock);
    return rc;
}
