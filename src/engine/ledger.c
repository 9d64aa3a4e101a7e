/* Every change of the ledger goes through one of these few calls, and every call that takes bytes notes the peak: what
 * stats() reports as the peak is what the budget was really asked for. Callers ask before they take; a call that takes
 * what is not there answers false and changes nothing. */
#include "engine/ledger.h"

#include "base/mem.h"

bool ledger_init(struct ledger *l, uint64_t budget, uint64_t tables, uint64_t batch, uint64_t lane,
                 uint32_t slots, uint64_t hold_cap)
{
    uint64_t sum;
    if (!mul_u64(batch, (uint64_t)slots + 1, &sum) || !add_u64(sum, tables, &sum) ||
        !add_u64(sum, lane, &sum) || sum > budget || hold_cap > budget - sum)
        return false;
    *l = (struct ledger){.budget = budget,
                         .tables = tables,
                         .batch = batch,
                         .lane = lane,
                         .hold_cap = hold_cap,
                         .general = budget - sum,
                         .slots = slots,
                         .peak = tables};
    return true;
}

uint64_t ledger_reserved(const struct ledger *l)
{
    uint64_t batches = (uint64_t)l->open + l->finished + (l->delivered ? 1 : 0);
    return l->tables + batches * l->batch + l->tickets + l->lane_used + l->held;
}

uint64_t ledger_extra(const struct ledger *l)
{
    return l->delivered > 1 ? l->delivered - 1 : 0;
}

static void peak_note(struct ledger *l)
{
    uint64_t now = ledger_reserved(l);
    if (now > l->peak)
        l->peak = now;
}

bool ledger_open(struct ledger *l)
{
    if (l->open + l->finished >= l->slots)
        return false;
    l->open++;
    if (l->open + l->finished + l->delivered > l->most_batches)
        l->most_batches = l->open + l->finished + l->delivered;
    peak_note(l);
    return true;
}

void ledger_finish(struct ledger *l)
{
    l->open--;
    l->finished++;
}

void ledger_take(struct ledger *l)
{
    l->finished--;
    l->delivered++;
    peak_note(l);
}

void ledger_release(struct ledger *l)
{
    l->delivered--;
}

void ledger_abandon(struct ledger *l, uint32_t batches)
{
    l->open -= batches;
}

uint64_t ledger_free(const struct ledger *l, enum pool pool)
{
    return pool == POOL_LANE ? l->lane - l->lane_used : l->general - l->tickets - l->held;
}

bool ledger_reserve(struct ledger *l, enum pool pool, uint64_t bytes)
{
    if (bytes > ledger_free(l, pool))
        return false;
    *(pool == POOL_LANE ? &l->lane_used : &l->tickets) += bytes;
    peak_note(l);
    return true;
}

void ledger_return(struct ledger *l, enum pool pool, uint64_t bytes)
{
    *(pool == POOL_LANE ? &l->lane_used : &l->tickets) -= bytes;
}

bool ledger_hold_fits(const struct ledger *l, uint64_t bytes)
{
    return bytes <= l->hold_cap - l->held;
}

void ledger_hold(struct ledger *l, uint64_t bytes)
{
    l->held += bytes;
    peak_note(l);
}

void ledger_unhold(struct ledger *l, uint64_t bytes)
{
    l->held -= bytes;
}
