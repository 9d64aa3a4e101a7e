/* The ledger's parts and sums. */
#include "engine/ledger.h"

#include "t.h"

/* budget 1000 = tables 100 + delivered 100 + lane 150 + 3 slots of 100 + general 350, of which held at most 200. */
static struct ledger l;

static void make(void)
{
    check(ledger_init(&l, 1000, 100, 100, 150, 3, 200));
}

static void parts_that_exceed_the_budget_are_refused(void)
{
    struct ledger x;
    check(ledger_init(&x, 650, 100, 100, 150, 3, 0));
    check(!ledger_init(&x, 649, 100, 100, 150, 3, 0));
    check(!ledger_init(&x, 700, 100, 100, 150, 3, 51));
    check(!ledger_init(&x, UINT64_MAX, 0, UINT64_MAX / 2, 0, 3, 0));
    check(!ledger_init(&x, UINT64_MAX, UINT64_MAX, 1, 0, 0, 0));
}

static void a_fresh_ledger_has_only_tables(void)
{
    make();
    check_eq(ledger_reserved(&l), 100);
    check_eq(ledger_free(&l, POOL_GENERAL), 350);
    check_eq(ledger_free(&l, POOL_LANE), 150);
    check_eq(l.peak, 100);
}

static void no_more_batches_open_than_there_are_slots(void)
{
    make();
    check(ledger_open(&l) && ledger_open(&l) && ledger_open(&l));
    check(!ledger_open(&l));
    ledger_finish(&l);
    check(!ledger_open(&l)); /* finished, but not taken */
    ledger_take(&l);
    check(ledger_open(&l));
    check_eq(ledger_reserved(&l), 100 + 3 * 100 + 100);
}

static void delivered_batches_beyond_one_are_outside_the_budget(void)
{
    make();
    for (int i = 0; i < 3; i++)
        ledger_open(&l);
    for (int i = 0; i < 3; i++) {
        ledger_finish(&l);
        ledger_take(&l);
    }
    check_eq(ledger_reserved(&l), 200);
    check_eq(ledger_extra(&l), 2);
    ledger_release(&l);
    ledger_release(&l);
    check_eq(ledger_reserved(&l), 200);
    check_eq(ledger_extra(&l), 0);
    ledger_release(&l);
    check_eq(ledger_reserved(&l), 100);
}

static void tickets_and_held_chunks_share_what_is_left(void)
{
    make();
    check(ledger_reserve(&l, POOL_GENERAL, 200));
    ledger_hold(&l, 100);
    check_eq(ledger_free(&l, POOL_GENERAL), 50);
    check(!ledger_reserve(&l, POOL_GENERAL, 51));
    check_eq(ledger_reserved(&l), 400); /* a refusal takes nothing */
    check(ledger_reserve(&l, POOL_GENERAL, 50));
    ledger_return(&l, POOL_GENERAL, 250);
    ledger_unhold(&l, 100);
    check_eq(ledger_reserved(&l), 100);
    check_eq(l.peak, 450);
}

static void held_chunks_have_a_cap_of_their_own(void)
{
    make();
    check(ledger_hold_fits(&l, 200));
    check(!ledger_hold_fits(&l, 201));
    ledger_hold(&l, 150);
    check(ledger_hold_fits(&l, 50));
    check(!ledger_hold_fits(&l, 51));
}

static void the_lane_is_apart(void)
{
    make();
    check(ledger_reserve(&l, POOL_GENERAL, 350));
    check(ledger_reserve(&l, POOL_LANE, 150));
    check(!ledger_reserve(&l, POOL_LANE, 1));
    ledger_return(&l, POOL_LANE, 150);
    check_eq(ledger_free(&l, POOL_LANE), 150);
    check_eq(ledger_free(&l, POOL_GENERAL), 0);
}

static void everything_in_use_is_the_budget_and_no_more(void)
{
    make();
    check(ledger_open(&l));
    ledger_finish(&l);
    ledger_take(&l);
    check(ledger_open(&l) && ledger_open(&l) && ledger_open(&l));
    check(ledger_reserve(&l, POOL_LANE, 150) && ledger_reserve(&l, POOL_GENERAL, 150));
    ledger_hold(&l, 200);
    check_eq(ledger_reserved(&l), 1000);
    check_eq(l.peak, 1000);
    ledger_abandon(&l, 3);
    check_eq(ledger_reserved(&l), 700);
}

int main(void)
{
    RUN(parts_that_exceed_the_budget_are_refused);
    RUN(a_fresh_ledger_has_only_tables);
    RUN(no_more_batches_open_than_there_are_slots);
    RUN(delivered_batches_beyond_one_are_outside_the_budget);
    RUN(tickets_and_held_chunks_share_what_is_left);
    RUN(held_chunks_have_a_cap_of_their_own);
    RUN(the_lane_is_apart);
    RUN(everything_in_use_is_the_budget_and_no_more);
    return t_done();
}
