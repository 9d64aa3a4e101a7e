/* A division is tried by adding up what it sets aside; the first that fits is taken. The sums use the very sizes that
 * engine_open then allocates (window_bytes, ring_bytes), so that `tables` is true to the byte.
 *
 * Below `comfortable` the choice is between re-reads and jobs at once: with n open batches a chunk whose rows go out over h
 * batches is read h / n times, a held one once; which fraction can be held, and how many tickets there are, follows from what
 * n batches leave. The estimate is coarse; it only ranks divisions, and the results are the same under each
 * (docs/design.md §4, push or hold). */
#include "engine/budget.h"

#include "base/amount.h"
#include "engine/hold.h"
#include "engine/job.h"
#include "engine/ring.h"
#include "engine/window.h"

#define MOST_WINDOW 32768u /* batches: a need names its batch in 16 bits */
#define MOST_AHEAD  64u
#define FAR_MOST    512u /* over a network */
#define FAR_AHEAD   3u   /* times what is in flight is read ahead of a network: see wishes */
#define LEVELS      7    /* of generosity: ahead, ahead/2, … */

struct divide { /* what stays the same over all tries */
    const struct plan *p;
    const struct plan_facts *plan;
    const struct footprint *f;
    const struct engine_config *c;
    uint64_t ahead, work, lane; /* the generous wishes */
    uint64_t fresh;             /* bytes of chunks that a batch is the first to need, on average */
    uint64_t steps, per_batch;
};
struct division { /* one division */
    bool push, keep;
    uint64_t max_open, ahead, window, slots;
    uint64_t known; /* batches behind one in which its chunks may be needed, too */
    uint64_t lane, work, hold, tables;
    uint64_t early; /* of hold: for chunks that are read ahead */
};

static uint64_t entries_of(const struct divide *d, const struct division *t)
{
    uint64_t window = times(t->window, d->per_batch);
    return least(plus(window, t->keep ? d->f->split_chunks : 0), d->f->chunks);
}

static uint64_t jobs_of(const struct engine_config *c)
{
    return 2 * (uint64_t)c->workers + (c->remote ? most(2 * (uint64_t)c->fetches, 64) : 0);
}

/* Bytes of everything that is allocated at open. Saturates: an absurd window is then simply too large. */
static uint64_t tables_of(const struct divide *d, const struct division *t)
{
    uint64_t entries = entries_of(d, t), needs = times(t->window, d->per_batch),
             jobs = jobs_of(d->c);
    if (needs >= NONE || entries >= NONE / 4 || t->window > MOST_WINDOW)
        return UINT64_MAX;
    uint64_t sum = plus(d->c->tables, window_bytes(d->p, (uint32_t)t->window,
                                                   (uint32_t)d->per_batch, (uint32_t)entries));
    sum = plus(sum, ring_bytes(job_piece_bytes(needs, entries)) +
                        ring_bytes(job_chunk_bytes(entries, d->c)));
    sum = plus(sum, job_table_bytes((uint32_t)jobs, d->c) + holds_bytes((uint32_t)entries));
    return plus(sum, times(sizeof(uint32_t), t->slots));
}

static uint64_t sum_of(const struct divide *d, const struct division *t)
{
    uint64_t sum = plus(t->tables, plus(t->lane, times(d->plan->batch_bytes, t->slots + 1)));
    return plus(sum, plus(t->work, t->hold));
}

/* The window may not take more than an eighth of the budget, as long as a batch of it is left. */
static bool tables_fit(const struct division *t, uint64_t budget)
{
    return t->tables != UINT64_MAX && (t->window <= 1 || t->tables <= budget / 8);
}

/* Most blocks that are open at some time within `batches` batches. */
static uint64_t blocks_within(const struct divide *d, uint64_t batches)
{
    uint64_t rows = times(batches, d->plan->rows);
    uint64_t opened = rows / d->f->block_rows + 1;
    return least(plus(d->plan->open_blocks, opened), most(d->plan->blocks, 1));
}

/* Blocks whose rows go out at two far places of an epoch: those that a cut between streams goes through, and, where the
 * first rows fill the last batch, theirs, if its needs are planned before these blocks are through. */
static uint64_t blocks_twice(const struct divide *d, uint64_t window)
{
    const struct plan_facts *f = d->plan;
    uint64_t n = f->streams > 1 ? f->streams / most(f->world, 1) + 1 : 0;
    bool seen = plus(window, f->horizon) >= d->steps;
    return n + (f->remainder == HR_WRAP && seen ? least(f->rows, blocks_within(d, 1)) : 0);
}

enum way { WAY_KEEP, WAY_PUSH, WAY_PUSH_ONLY, WAY_HOLD };

/* One of the comfortable divisions with `ahead` batches of read-ahead. */
static struct division try_way(const struct divide *d, enum way way, uint64_t ahead, bool lean)
{
    struct division t = {
        .push = way == WAY_PUSH || way == WAY_PUSH_ONLY, .keep = way == WAY_KEEP, .ahead = ahead};
    t.known = t.keep ? ahead : d->plan->horizon;
    t.max_open = least(t.push ? plus(d->plan->horizon, ahead) : ahead + 1, d->steps);
    t.window = least(plus(t.max_open, t.known), d->steps);
    t.slots = plus(t.max_open, ahead > 1 ? 2 : 1);
    t.lane = lean ? d->f->ticket : d->lane;
    t.work =
        lean ? d->f->ticket : most(times(d->f->ticket, 2), d->work / most(d->ahead / ahead, 1));
    t.tables = tables_of(d, &t);
    uint64_t now = blocks_within(d, ahead + 1), all = blocks_within(d, t.window),
             twice = blocks_twice(d, t.window);
    if (t.keep)
        t.hold = d->f->split_bytes;
    else if (way == WAY_PUSH)
        t.hold = footprint_live(d->f, twice, all);
    else if (way == WAY_HOLD)
        t.hold = footprint_live(d->f, now + twice, all - least(now, all));
    return t;
}

/* The smallest budget that a division can work with, the eighth of the tables included. */
static uint64_t budget_of(const struct divide *d, const struct division *t)
{
    return most(sum_of(d, t), t->window > 1 ? times(t->tables, 8) : 0);
}

static bool try_fits(const struct divide *d, const struct division *t, uint64_t budget)
{
    return tables_fit(t, budget) && sum_of(d, t) <= budget;
}

/* Where the chunks that are held at once may be all of the split, keeping them over epochs takes no byte more. */
static void keep_all(const struct divide *d, bool lean, uint64_t budget, struct division *t)
{
    struct division keep = try_way(d, WAY_KEEP, t->ahead, lean);
    if (!t->push && !t->keep && t->hold >= d->f->split_bytes && try_fits(d, &keep, budget))
        *t = keep;
}

static bool comfortable_try(const struct divide *d, struct division *out, uint64_t budget)
{
    const enum way ways[] = {WAY_KEEP, WAY_PUSH, WAY_HOLD, WAY_PUSH_ONLY};
    for (int last = 0; last < 2;
         last++) /* re-reading at the borders of blocks only if nothing else fits */
        for (int level = 0; level < LEVELS; level++)
            for (int w = last ? 3 : d->c->keep ? 0 : 1; w < (last ? 4 : 3); w++) {
                bool lean = level == LEVELS - 1;
                *out = try_way(d, ways[w], lean ? 1 : most(d->ahead >> level, 1), lean);
                if (!try_fits(d, out, budget))
                    continue;
                keep_all(d, lean, budget, out);
                return true;
            }
    return false;
}

static uint64_t comfortable_of(const struct divide *d)
{
    uint64_t best = UINT64_MAX;
    for (int way = d->c->keep ? WAY_KEEP : WAY_PUSH; way <= WAY_HOLD; way++) {
        struct division t = try_way(d, (enum way)way, 1, true);
        if (way != WAY_PUSH_ONLY)
            best = least(best, budget_of(d, &t));
    }
    return best;
}

/* n open batches and the widest window whose tables fit. False when not even the batches fit. */
static bool constrained_try(const struct divide *d, uint64_t n, uint64_t lane, uint64_t budget,
                            struct division *t)
{
    *t = (struct division){.max_open = n, .slots = n, .ahead = 1, .lane = lane};
    uint64_t low = n, high = least(plus(n, d->plan->horizon), d->steps);
    t->window = low;
    t->tables = tables_of(d, t);
    if (!tables_fit(t, budget) || sum_of(d, t) > budget)
        return false;
    while (low < high) {
        struct division wider = *t;
        wider.window = (low + high + 1) / 2;
        wider.tables = tables_of(d, &wider);
        if (tables_fit(&wider, budget) && sum_of(d, &wider) <= budget) {
            low = wider.window;
            *t = wider;
        } else {
            high = wider.window - 1;
        }
    }
    t->known = t->window == d->steps ? d->plan->horizon : t->window - n;
    return true;
}

/* What the batches leave: tickets for `jobs` jobs besides the one in the lane, the rest for held chunks, an eighth of it
 * for those that are read ahead. */
static void constrained_share(const struct divide *d, uint64_t rest, uint64_t jobs,
                              struct division *t)
{
    t->work = least(times(jobs, d->f->ticket), rest);
    t->hold = rest - t->work;
    t->ahead = most(least(t->hold / 8 / d->fresh, d->ahead), 1);
    t->early = least(times(t->ahead, d->fresh), t->hold / 8);
}

/* Expected reads of a chunk, in 1/1024. One that is not held is read once for n batches of its life, but no more often than
 * it is needed. */
static uint64_t reads_of(const struct divide *d, const struct division *t)
{
    uint64_t live = most(footprint_live(d->f, blocks_within(d, 2), 0), 1),
             hold = t->hold - t->early;
    uint64_t held = hold >= live ? 1024 : (uint64_t)(1024.0 * (double)hold / (double)live);
    uint64_t needs = times(d->steps, d->per_batch) / most(d->f->split_chunks, 1);
    uint64_t again =
        least(times(least(d->plan->horizon, d->steps), 1024) / t->max_open, times(needs, 1024));
    return held + times(1024 - held, most(again, 1024)) / 1024;
}

/* Time, in reads of the whole: fewer jobs at once than there is work for take longer. A single open batch costs half as
 * much again: reading then stops whenever the consumer has not yet taken the last one. */
static uint64_t cost_of(const struct divide *d, const struct division *t, uint64_t jobs,
                        uint64_t wanted)
{
    uint64_t cost = times(reads_of(d, t), wanted) / (jobs + 1);
    return t->max_open == 1 && d->steps > 1 ? cost + cost / 2 : cost;
}

static bool constrained_best(const struct divide *d, uint64_t budget, struct division *best)
{
    uint64_t least_cost = UINT64_MAX, wanted = d->c->workers + (d->c->remote ? d->c->fetches : 0);
    for (uint64_t n = 1; n <= d->steps; n += n < 16 ? 1 : n / 8) {
        struct division t;
        if (!constrained_try(d, n, d->lane, budget, &t) &&
            !constrained_try(d, n, d->f->ticket, budget, &t))
            break;
        uint64_t rest = budget - sum_of(d, &t);
        for (uint64_t jobs = least(wanted - 1, rest / d->f->ticket);; jobs -= (jobs + 3) / 4) {
            constrained_share(d, rest, jobs, &t);
            uint64_t cost = cost_of(d, &t, jobs, wanted);
            if (cost < least_cost) {
                least_cost = cost;
                *best = t;
            }
            if (!jobs)
                break;
        }
    }
    return least_cost != UINT64_MAX;
}

/* What reads and decodes would like to have in flight, and how many batches of new chunks that is. Batches go out in order,
 * so one late answer holds up its batch and all after it; meanwhile reads of further batches keep the wire full. With no more
 * read ahead than what is in flight, a straggler emptied it (128 requests → 1, 0.65 of the throughput over loopback). */
static void wishes(struct divide *d)
{
    const struct engine_config *c = d->c;
    uint64_t job = most(c->job_bytes, d->f->decoded);
    uint64_t flight = c->remote ? plus(times(FAR_AHEAD * (uint64_t)c->fetches, d->f->decoded),
                                       times(c->workers, job))
                                : times(2 * (uint64_t)c->workers, job);
    d->fresh = most(times(d->f->block_bytes / d->f->block_rows, d->plan->rows), 1);
    uint64_t ahead = c->ahead ? c->ahead : most((flight - 1) / d->fresh + 1, 2);
    uint64_t room = c->budget / 4 / most(d->plan->batch_bytes, 1);
    d->ahead =
        c->ahead ? ahead : most(least(least(ahead, c->remote ? FAR_MOST : MOST_AHEAD), room), 1);
    d->work = times(2 * (uint64_t)c->workers + (c->remote ? c->fetches : 0), d->f->ticket);
    d->work = least(d->work, c->budget / 4);
    uint64_t wide = c->remote ? plus(c->join_bytes, d->f->ticket) : 0;
    wide = most(most(wide, times(2, d->f->ticket)), c->larger);
    d->lane = most(d->f->ticket, least(wide, c->budget / 16));
}

static int refuse(const struct divide *d, const struct division *least_try, struct hr_error *e)
{
    char budget[24], need[24], tables[24], lane[24], batch[24];
    return error_set(e, HR_EBUDGET,
                     "memory budget of %s (%llu bytes) is too small: at least %s (%llu bytes) are "
                     "needed = tables %s + "
                     "largest chunk job %s + 2 batches of %s; raise memory=, or use a smaller "
                     "batch, fewer or smaller "
                     "views, or an archive with smaller chunks",
                     error_bytes(budget, sizeof budget, d->c->budget),
                     (unsigned long long)d->c->budget,
                     error_bytes(need, sizeof need, sum_of(d, least_try)),
                     (unsigned long long)sum_of(d, least_try),
                     error_bytes(tables, sizeof tables, least_try->tables),
                     error_bytes(lane, sizeof lane, least_try->lane),
                     error_bytes(batch, sizeof batch, d->plan->batch_bytes));
}

static int limits_check(const struct divide *d, const struct plan *p,
                        const struct division *least_try, struct hr_error *e)
{
    if (d->steps >= NONE - MOST_WINDOW)
        return error_set(e, HR_EUNSUPPORTED, "an epoch of %llu batches: at most %u are supported",
                         (unsigned long long)d->steps, NONE - MOST_WINDOW);
    if (plan_config(p)->n_parts > UINT16_MAX)
        return error_set(e, HR_EUNSUPPORTED, "%d arrays in all views: at most %d are supported",
                         plan_config(p)->n_parts, UINT16_MAX);
    if (least_try->tables == UINT64_MAX)
        return error_set(
            e, HR_EUNSUPPORTED,
            "a batch touches up to %llu chunks, more than can be kept track of; use smaller "
            "batches or an archive with larger chunks",
            (unsigned long long)d->per_batch);
    return 0;
}

int budget_divide(struct budget *b, const struct plan *p, const struct footprint *f,
                  const struct engine_config *c, struct hr_error *e)
{
    struct divide d = {.p = p, .plan = plan_facts(p), .f = f, .c = c, .per_batch = f->needs};
    d.steps = most(d.plan->steps, 1);
    wishes(&d);
    struct division t = {.max_open = 1, .window = 1, .slots = 1, .lane = f->ticket};
    t.tables = tables_of(&d, &t);
    TRY(limits_check(&d, p, &t, e));
    uint64_t minimum = sum_of(&d, &t);
    if (minimum > c->budget)
        return refuse(&d, &t, e);
    if (!comfortable_try(&d, &t, c->budget) && !constrained_best(&d, c->budget, &t))
        return error_set(e, HR_EINTERNAL, "no division of %llu bytes, though the minimum is %llu",
                         (unsigned long long)c->budget, (unsigned long long)minimum);
    uint64_t needs = t.window * d.per_batch, entries = entries_of(&d, &t);
    *b = (struct budget){.slots = (uint32_t)t.slots,
                         .entries = (uint32_t)entries,
                         .jobs = (uint32_t)jobs_of(c),
                         .idle = t.keep ? (uint32_t)least(f->split_chunks, entries) : 0,
                         .piece_bytes = job_piece_bytes(needs, entries),
                         .chunk_bytes = job_chunk_bytes(entries, c)};
    b->hold_cap = c->budget - sum_of(&d, &t) + t.hold;
    b->early = t.early;
    b->known = least(t.known, t.window - 1);
    b->facts = (struct engine_facts){.budget = c->budget,
                                     .minimum = minimum - c->spare,
                                     .tables = t.tables,
                                     .lane = t.lane,
                                     .batch = d.plan->batch_bytes,
                                     .comfortable = comfortable_of(&d),
                                     .max_open = (uint32_t)t.max_open,
                                     .ahead = (uint32_t)t.ahead,
                                     .window = (uint32_t)t.window,
                                     .push = t.push,
                                     .keeps = t.keep};
    return 0;
}
