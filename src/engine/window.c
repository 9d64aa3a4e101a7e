/* Planning is the engine's share of the per-chunk cost, and it is all here: for each row and part the planner names the
 * chunks, one look-up finds or makes the entry, one 16-byte need is appended. Rows of a batch that follow each other in a
 * chunk find the entry again without a look-up.
 *
 * Lists change only where something changes: a new need beyond the open batches moves a ready entry to late, the opening
 * of a chunk's last batch moves it from late to ready. The hints (ready_from, copy_from, copy_far) keep walks over batches
 * short; they may be too wide, never too narrow. */
#include "engine/window.h"

#include <string.h>

#include "base/mem.h"

uint64_t window_bytes(const struct plan *p, uint32_t cap, uint32_t per_batch, uint32_t entries)
{
    uint64_t row = plan_has_crops(p) ? 17 : 9, rows = plan_facts(p)->rows;
    row += plan_members(p) * sizeof(int64_t);
    return table_bytes(entries) + (uint64_t)cap * (sizeof(struct planned) + rows * row) +
           (uint64_t)cap * per_batch * sizeof(struct need);
}

int window_init(struct window *w, struct plan *p, uint32_t cap, uint32_t per_batch,
                uint32_t entries, struct hr_error *e)
{
    uint64_t rows = plan_facts(p)->rows, longest = 1;
    bool crops = plan_has_crops(p);
    for (int i = 0; i < plan_config(p)->n_parts; i++) {
        uint64_t n = plan_part_chunks_max(p, i);
        longest = n > longest ? n : longest;
    }
    *w = (struct window){.plan = plan_ref(p),
                         .cap = cap,
                         .per_batch = per_batch,
                         .chunks_cap = longest,
                         .exhausted = true,
                         .idle = {NONE, NONE}};
    TRY(plan_cursor_open(p, &w->cursor, e));
    w->batches = mem_array(cap, sizeof *w->batches);
    w->needs = mem_alloc((size_t)cap * per_batch * sizeof *w->needs);
    w->chunks = mem_array(longest, sizeof *w->chunks);
    w->ids = mem_array(cap, rows * sizeof *w->ids * (crops ? 2 : 1));
    w->valid = mem_array(cap, rows);
    uint64_t members = rows * plan_members(p);
    w->members = mem_array((size_t)cap * members + 1, sizeof *w->members);
    if (!w->members || !w->batches || !w->needs || !w->chunks || !w->ids || !w->valid ||
        table_init(&w->table, entries))
        return error_nomem(e, window_bytes(p, cap, per_batch, entries),
                           "the table of needed chunks");
    for (uint32_t i = 0; i < cap; i++) {
        w->batches[i].ids = w->ids + i * rows;
        w->batches[i].places = w->batches[i].ids + (crops ? cap * rows : 0);
        w->batches[i].members = w->members + i * members;
        w->batches[i].valid = w->valid + i * rows;
    }
    return 0;
}

void window_dispose(struct window *w)
{
    mem_free(w->ids);
    mem_free(w->valid);
    mem_free(w->members);
    mem_free(w->batches);
    mem_free(w->needs);
    mem_free(w->chunks);
    table_dispose(&w->table);
    plan_cursor_free(w->cursor);
    plan_unref(w->plan);
    *w = (struct window){0};
}

int window_seek(struct window *w, uint64_t epoch, uint64_t step, struct hr_error *e)
{
    TRY(plan_cursor_seek(w->cursor, epoch, step, e));
    w->at = 0;
    w->epoch = epoch;
    w->front = w->open_end = w->end = (uint32_t)step;
    w->ready_from = w->copy_from = w->copy_far = (uint32_t)step;
    w->steps = (uint32_t)plan_steps(w->plan, epoch);
    w->exhausted = w->end >= w->steps;
    return 0;
}

void window_clear(struct window *w)
{
    for (uint32_t i = 0; i < w->table.touched; i++) {
        struct entry *n = table_entry(&w->table, i);
        if (n->state == CHUNK_UNUSED)
            continue;
        n->list = LIST_NONE;
        n->head = n->tail = n->saved = NONE;
        n->count = 0;
        n->seen = false;
    }
    w->open_end = w->end = w->front;
    w->exhausted = true;
    w->idle = (struct list){NONE, NONE};
    w->idle_count = 0;
}

static struct list *list_of(struct window *w, const struct entry *n)
{
    if (n->list == LIST_IDLE)
        return &w->idle;
    struct planned *b = window_batch(w, n->first);
    return n->list == LIST_READY ? &b->ready : n->list == LIST_LATE ? &b->late : &b->copy;
}

void window_place(struct window *w, uint32_t entry)
{
    struct entry *n = table_entry(&w->table, entry);
    if (n->state == CHUNK_HELD && !n->count) {
        n->list = LIST_IDLE;
        w->idle_count++;
    } else if (n->state == CHUNK_HELD) {
        n->list = LIST_COPY;
        w->copy_from = n->first < w->copy_from ? n->first : w->copy_from;
        w->copy_far = n->first > w->copy_far ? n->first : w->copy_far;
    } else if (n->last < w->open_end) {
        n->list = LIST_READY;
        w->ready_from = n->first < w->ready_from ? n->first : w->ready_from;
    } else {
        n->list = LIST_LATE;
    }
    list_append(&w->table, list_of(w, n), entry);
}

void window_unlist(struct window *w, uint32_t entry)
{
    struct entry *n = table_entry(&w->table, entry);
    list_remove(&w->table, list_of(w, n), entry);
    w->idle_count -= n->list == LIST_IDLE;
    n->list = LIST_NONE;
}

void window_set_head(struct window *w, struct entry *n, uint32_t head, uint32_t count)
{
    n->head = head;
    n->count = count;
    if (head != NONE)
        n->first = window_need_batch(w, head)->step;
}

/* Append one need to its chunk. */
static void need_add(struct window *w, struct planned *b, uint32_t entry, uint32_t row,
                     uint32_t part)
{
    uint32_t at = (uint32_t)(b - w->batches), i = at * w->per_batch + b->needs++;
    w->needs[i] = (struct need){
        .entry = entry, .next = NONE, .row = row, .part = (uint16_t)part, .batch = (uint16_t)at};
    struct entry *n = table_entry(&w->table, entry);
    if (n->tail != NONE)
        w->needs[n->tail].next = i;
    if (n->list == LIST_IDLE) {
        window_unlist(w, entry);
        w->kept_hits++;
    }
    n->tail = i;
    n->last = b->step;
    n->count++;
    if (n->head == NONE) {
        n->head = i;
        n->first = b->step;
        if (n->state == CHUNK_WANTED || n->state == CHUNK_HELD)
            window_place(w, entry);
    } else if (n->list == LIST_READY) { /* b is not open yet */
        window_unlist(w, entry);
        window_place(w, entry);
    }
}

int64_t window_place_of(const struct window *w, const struct planned *b, const struct need *n)
{
    uint64_t first, members = plan_part_members(w->plan, n->part, &first);
    if (!plan_config(w->plan)->parts[n->part].members)
        return b->places[n->row];
    return b->members[n->row / members * plan_members(w->plan) + first + n->row % members];
}

static void place_plan(struct window *w, struct planned *b, uint32_t row, int64_t place, int part,
                       uint32_t *recent)
{
    uint32_t array = (uint32_t)plan_config(w->plan)->parts[part].array;
    uint64_t count = plan_part_chunks(w->plan, part, place, w->chunks, w->chunks_cap);
    for (uint64_t i = 0; i < count; i++) {
        struct entry *n = *recent == NONE ? NULL : table_entry(&w->table, *recent);
        if (!n || n->array != array || n->chunk != w->chunks[i]) {
            *recent = table_find(&w->table, array, w->chunks[i]);
            if (*recent == NONE)
                *recent = table_add(&w->table, array, w->chunks[i]);
        }
        need_add(w, b, *recent, row, (uint32_t)part);
    }
}

static void part_plan(struct window *w, struct planned *b, uint32_t row, int part, uint32_t *recent)
{
    uint64_t first, n = plan_part_members(w->plan, part, &first);
    if (!plan_config(w->plan)->parts[part].members) {
        place_plan(w, b, row, b->places[row], part, recent);
        return;
    }
    const int64_t *rows = b->members + row * plan_members(w->plan) + first;
    for (uint64_t i = 0; i < n; i++)
        place_plan(w, b, (uint32_t)(row * n + i), rows[i], part, recent);
}

bool window_plan(struct window *w)
{
    if (w->exhausted || w->end - w->front == w->cap)
        return false;
    struct planned *b = window_batch(w, w->end);
    int64_t rows = plan_cursor_next(w->cursor, b->ids, b->valid);
    if (rows <= 0) {
        w->exhausted = true;
        return false;
    }
    if (b->places != b->ids)
        for (int64_t i = 0; i < rows; i++)
            b->places[i] = plan_place(w->plan, w->epoch, b->ids[i]);
    for (int64_t i = 0, n = (int64_t)plan_members(w->plan); n && i < rows; i++)
        plan_members_rows(w->plan, w->epoch, b->ids[i], b->members + i * n);
    *b = (struct planned){.ids = b->ids,
                          .places = b->places,
                          .members = b->members,
                          .valid = b->valid,
                          .step = w->end,
                          .rows = (uint32_t)rows,
                          .slot = NONE,
                          .ready = {NONE, NONE},
                          .late = {NONE, NONE},
                          .copy = {NONE, NONE}};
    w->end++;
    int parts = plan_config(w->plan)->n_parts;
    uint32_t recent = NONE;
    for (uint32_t row = 0; row < b->rows; row++)
        for (int part = 0; part < parts; part++)
            part_plan(w, b, row, part, &recent);
    b->pending = b->needs;
    w->exhausted = w->end >= w->steps;
    return true;
}

void window_open(struct window *w, uint32_t slot)
{
    struct planned *b = window_batch(w, w->open_end++);
    b->slot = slot;
    uint32_t from = (uint32_t)(b - w->batches) * w->per_batch;
    for (uint32_t i = from; i < from + b->needs; i++) {
        uint32_t entry = w->needs[i].entry;
        struct entry *n = table_entry(&w->table, entry);
        if (n->list == LIST_LATE && n->last < w->open_end) {
            window_unlist(w, entry);
            window_place(w, entry);
        }
    }
}

void window_advance(struct window *w)
{
    w->front++;
    if (++w->at == w->cap)
        w->at = 0;
}
