/* How many chunks the first batch after a start wants: requests beyond them take bandwidth from it,
 * and over a distance their loss of packets is its loss, too. */
#include "run/first.h"

#include "base/mem.h"

#define LEAST 4u

struct chunks { /* that were met; few, so they are searched one by one */
    uint32_t n, most;
    uint64_t list[FIRST_FETCHES];
};

static void meet(struct chunks *c, uint64_t chunk)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->list[i] == chunk)
            return;
    if (c->n < FIRST_FETCHES)
        c->list[c->n++] = chunk;
}

static void meet_place(struct chunks *c, const struct plan *p, int part, int64_t place)
{
    uint64_t met[FIRST_FETCHES], n = plan_part_chunks(p, part, place, met, FIRST_FETCHES);
    for (uint64_t at = 0; at < n && at < FIRST_FETCHES; at++)
        meet(c, met[at] << 8 ^ (uint64_t)plan_config(p)->parts[part].array);
}

static void meet_sample(struct chunks *c, const struct plan *p, uint64_t epoch, int part,
                        int64_t id)
{
    uint64_t first, n = plan_part_members(p, part, &first);
    if (!plan_config(p)->parts[part].members) {
        meet_place(c, p, part, plan_place(p, epoch, id));
        return;
    }
    int64_t *rows = mem_array((size_t)plan_members(p), sizeof *rows);
    if (rows)
        plan_members_rows(p, epoch, id, rows);
    for (uint64_t i = 0; rows && i < n; i++)
        meet_place(c, p, part, rows[first + i]);
    mem_free(rows);
}

static void meet_part(struct chunks *c, const struct plan *p, uint64_t epoch, int part,
                      const int64_t *ids, const uint8_t *valid, int64_t n)
{
    for (int64_t i = 0; i < n && c->n < FIRST_FETCHES; i++)
        if (valid[i])
            meet_sample(c, p, epoch, part, ids[i]);
}

static int64_t first_batch(struct plan *p, uint64_t epoch, uint64_t step, int64_t *ids,
                           uint8_t *valid)
{
    struct plan_cursor *cursor = NULL;
    int64_t n = plan_cursor_open(p, &cursor, NULL);
    if (n >= 0)
        n = plan_cursor_seek(cursor, epoch, step, NULL);
    if (n >= 0)
        n = plan_cursor_next(cursor, ids, valid);
    plan_cursor_free(cursor);
    return n;
}

uint32_t first_fetches(struct plan *p, uint64_t epoch, uint64_t step)
{
    struct chunks c = {0};
    size_t rows = (size_t)plan_facts(p)->rows;
    int64_t *ids = mem_array(rows, sizeof *ids);
    uint8_t *valid = mem_array(rows, sizeof *valid);
    int64_t n = ids && valid ? first_batch(p, epoch, step, ids, valid) : 0;
    for (int part = 0; part < plan_config(p)->n_parts && n > 0; part++)
        meet_part(&c, p, epoch, part, ids, valid, n);
    mem_free(ids);
    mem_free(valid);
    return n <= 0 ? FIRST_FETCHES : c.n < LEAST ? LEAST : c.n;
}
