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

static char *copy_of(const void *data, uint64_t bytes)
{
    char *own = mem_alloc(bytes);
    if (own)
        memcpy(own, data, bytes);
    return own;
}

static int add(struct core *c, struct table_spec given, const struct hr_lent *lent,
               struct hr_error *e)
{
    uint64_t bytes = hr_dtype_size(given.dtype);
    TRY(check(c, given.name, given.dtype, given.data, given.n, given.items, e));
    if (!mul_u64(bytes, (uint64_t)given.n, &bytes) ||
        !mul_u64(bytes, (uint64_t)given.items, &bytes) ||
        mem_grow((void **)&c->tables, &c->cap_tables, c->n_tables + 1, sizeof *c->tables))
        return error_nomem(e, bytes, "a table");
    if (!(given.name = arena_strdup(&c->arena, given.name)) ||
        (!lent && !(given.data = copy_of(given.data, bytes))))
        return error_nomem(e, bytes, "a table");
    given.lent = lent ? *lent : (struct hr_lent){NULL, NULL};
    c->tables[c->n_tables++] = given;
    return 0;
}

static int table(struct hr_samples *s, struct table_spec given, const struct hr_lent *lent,
                 struct hr_error *e)
{
    pthread_mutex_lock(&s->core->lock);
    int rc = core_building(s, e);
    if (!rc)
        rc = add(s->core, given, lent, e);
    pthread_mutex_unlock(&s->core->lock);
    return rc;
}

int hr_samples_table(struct hr_samples *s, const char *name, enum hr_dtype t, const void *data,
                     int64_t n, int64_t items, struct hr_error *e)
{
    return table(s, (struct table_spec){name, t, data, .n = n, .items = items}, NULL, e);
}

int hr_samples_table_lent(struct hr_samples *s, const char *name, enum hr_dtype t, const void *data,
                          int64_t n, int64_t items, const struct hr_lent *lent, struct hr_error *e)
{
    if (data && hr_dtype_size(t) && (uintptr_t)data % hr_dtype_size(t))
        return error_set(e, HR_EINVAL, "table %s: lent numbers lie at a multiple of their size",
                         name ? name : "");
    return table(s, (struct table_spec){name, t, data, .n = n, .items = items}, lent, e);
}
