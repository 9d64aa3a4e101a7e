/* Samples of several rows in a plan: what look-ups go by. Whatever decides the order (anchor, tiles, blocks, split) sees
 * such a sample at one row, that of its table; chunks and pieces are found row by row. */
#include "base/mem.h"
#include "plan/impl.h"

/* The number of a set, which is added if it is new. */
static int set_number(struct plan *p, struct members *m, struct hr_error *e)
{
    for (int i = 0; i < p->n_sets; i++)
        if (p->sets[i] == m)
            return i;
    if (p->n_sets == PLAN_MAX_SETS || m->samples != p->space.axis[0].n || p->space.n != 1)
        return error_set(e, HR_EINVAL, "samples of several rows: %llu of them on an axis of %llu",
                         (unsigned long long)m->samples, (unsigned long long)p->space.axis[0].n);
    p->sets[p->n_sets] = members_ref(m);
    p->members += m->n;
    return p->n_sets++;
}

uint64_t plan_members_first(const struct plan *p, const struct members *m)
{
    uint64_t first = 0;
    for (int i = 0; i < p->n_sets && p->sets[i] != m; i++)
        first += p->sets[i]->n;
    return first;
}

int config_members(struct plan *p, struct hr_error *e)
{
    size_t n = (size_t)p->config.n_parts;
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any |= p->config.parts[i].members != NULL;
    p->look = any ? mem_array(n, sizeof *p->look) : p->parts;
    p->part_members = any ? mem_array(n, sizeof *p->part_members) : NULL;
    if (any && (!p->look || !p->part_members))
        return error_nomem(e, n * sizeof *p->look, "the plan");
    for (size_t i = 0; i < n && any; i++) {
        struct members *m = p->config.parts[i].members;
        p->look[i] = p->parts[i];
        if (!m)
            continue;
        part_by_row(&p->parts[i], &p->look[i]);
        TRY(set_number(p, m, e));
        p->part_members[i] = plan_members_first(p, m);
    }
    return 0;
}

uint64_t plan_members_bytes(const struct plan *p)
{
    return p->look == p->parts
               ? 0
               : (uint64_t)p->config.n_parts * (sizeof *p->look + sizeof *p->part_members);
}

void members_dispose(struct plan *p)
{
    for (int i = 0; i < p->n_sets; i++)
        members_unref(p->sets[i]);
    if (p->look != p->parts)
        mem_free(p->look);
    mem_free(p->part_members);
}

uint64_t plan_members(const struct plan *p)
{
    return p->members;
}

void plan_members_rows(const struct plan *p, uint64_t epoch, int64_t id, int64_t *rows)
{
    for (int i = 0; i < p->n_sets; i++) {
        members_rows(p->sets[i], epoch, (uint64_t)id, rows);
        rows += p->sets[i]->n;
    }
}

uint64_t plan_part_members(const struct plan *p, int part, uint64_t *first)
{
    const struct members *m = p->config.parts[part].members;
    *first = p->part_members ? p->part_members[part] : 0;
    return m ? m->n : 1;
}
