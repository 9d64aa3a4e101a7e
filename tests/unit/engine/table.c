/* The table of chunks and the lists through it, against plain models. */
#include "engine/table.h"

#include "base/keyed.h"
#include "base/mem.h"
#include "t.h"

#define CAP 500

struct model { /* what should be in the table */
    uint32_t array;
    uint64_t chunk;
    uint32_t entry; /* NONE: absent */
};

static struct model models[2000];

/* Chunk numbers as they come in practice: neighbours, strides, several arrays, now and then enormous. */
static void models_make(void)
{
    for (uint32_t i = 0; i < 2000; i++) {
        uint64_t chunk = i < 700 ? i : i < 1400 ? (uint64_t)(i - 699) * 4096 : UINT64_MAX - i;
        models[i] = (struct model){.array = i % 7 == 3 ? 1 : 0, .chunk = chunk, .entry = NONE};
    }
}

static void finds_what_was_added_and_nothing_else(void)
{
    struct table t;
    uint32_t used = 0;
    models_make();
    check_eq(table_init(&t, CAP), 0);
    for (uint64_t i = 0; i < 200000; i++) {
        struct model *m = &models[keyed_word(1, i) % 2000];
        if (table_find(&t, m->array, m->chunk) != m->entry) {
            check(false);
            break;
        }
        if (m->entry != NONE && keyed_word(2, i) % 3) {
            table_remove(&t, m->entry);
            m->entry = NONE;
            used--;
        } else if (m->entry == NONE) {
            m->entry = table_add(&t, m->array, m->chunk);
            if (!check((m->entry == NONE) == (used == CAP)))
                break;
            used += m->entry != NONE;
        }
    }
    check_eq(t.used, used);
    for (uint32_t i = 0; i < 2000; i++)
        check_eq(table_find(&t, models[i].array, models[i].chunk), models[i].entry);
    table_dispose(&t);
    check_eq(mem_live(), 0);
}

static void a_full_table_takes_no_more(void)
{
    struct table t;
    check_eq(table_init(&t, 3), 0);
    check(table_add(&t, 0, 1) != NONE && table_add(&t, 0, 2) != NONE &&
          table_add(&t, 1, 1) != NONE);
    check_eq(table_add(&t, 0, 3), NONE);
    table_remove(&t, table_find(&t, 0, 2));
    check(table_add(&t, 0, 3) != NONE);
    check_eq(table_find(&t, 0, 2), NONE);
    check(table_find(&t, 0, 1) != table_find(&t, 1, 1));
    table_dispose(&t);
}

static void a_new_entry_is_fresh(void)
{
    struct table t;
    check_eq(table_init(&t, 1), 0);
    struct entry *e = table_entry(&t, table_add(&t, 2, 9));
    e->count = 5;
    e->hold = 7;
    e->seen = e->due = e->failed = true;
    e->stored = 1000;
    table_remove(&t, 0);
    check_eq(table_add(&t, 3, 8), 0);
    check(e->chunk == 8 && e->array == 3 && e->state == CHUNK_WANTED && e->list == LIST_NONE);
    check(e->head == NONE && e->tail == NONE && e->saved == NONE && e->hold == NONE);
    check(!e->count && !e->seen && !e->due && !e->failed && !e->stored);
    table_dispose(&t);
}

static void entries_fill_one_cache_line(void)
{
    check_eq(sizeof(struct entry), 64);
}

static void lists_keep_their_order(void)
{
    struct table t;
    struct list l = {NONE, NONE};
    uint32_t order[] = {4, 0, 2, 9, 7}, left[] = {0, 2, 7}, n = 0;
    check_eq(table_init(&t, 10), 0);
    for (uint32_t i = 0; i < 10; i++)
        table_add(&t, 0, i);
    for (int i = 0; i < 5; i++)
        list_append(&t, &l, order[i]);
    list_remove(&t, &l, 4);
    list_remove(&t, &l, 9);
    for (uint32_t at = l.head; at != NONE; at = table_entry(&t, at)->next)
        check(n < 3 && at == left[n++]);
    check_eq(n, 3);
    for (uint32_t at = l.tail; at != NONE; at = table_entry(&t, at)->prev)
        check(n > 0 && at == left[--n]);
    list_remove(&t, &l, 7);
    list_remove(&t, &l, 0);
    list_remove(&t, &l, 2);
    check(l.head == NONE && l.tail == NONE);
    table_dispose(&t);
}

int main(void)
{
    RUN(finds_what_was_added_and_nothing_else);
    RUN(a_full_table_takes_no_more);
    RUN(a_new_entry_is_fresh);
    RUN(entries_fill_one_cache_line);
    RUN(lists_keep_their_order);
    return t_done();
}
