/* See limit.h. */
#include "net/limit.h"

void limit_init(struct limit *l, uint32_t start, uint32_t max, uint32_t first)
{
    max = max ? max : 1;
    *l = (struct limit){.now = start < 1     ? 1
                               : start > max ? max
                                             : start,
                        .max = max,
                        .gentle = first ? first : 1,
                        .doubling = true,
                        .settling = true};
    l->before = l->now;
}

uint32_t limit_allowed(const struct limit *l)
{
    return l->gentle < l->now ? l->gentle : l->now;
}

void limit_answered(struct limit *l, bool waiting)
{
    l->gentle += waiting && l->gentle < l->max;
}

void limit_unanswered(struct limit *l)
{
    l->gentle = l->gentle < l->max / 2 ? l->gentle * 2 : l->max;
}

void limit_far(struct limit *l)
{
    l->gentle = l->max;
}

static void begin_round(struct limit *l, uint64_t now_ns)
{
    l->successes = 0;
    l->round_bytes = 0;
    l->round_ns = now_ns;
}

/* A round of `now` answers is over. One in which it has grown, and the first, are about cold
 * connections: not counted. */
static void end_round(struct limit *l, uint64_t now_ns)
{
    uint64_t us = (now_ns - l->round_ns) / 1000 + 1, rate = l->round_bytes * 1000 / us;
    if (l->settling) {
        l->settling = false;
    } else if (rate * 4 > l->rate * 5) {
        l->rate = rate;
        l->settling = true;
        l->before = l->now;
        l->now = l->now < l->max / 2 ? l->now * 2 : l->max;
    } else {
        l->now = l->before;
        l->doubling = false;
    }
    begin_round(l, now_ns);
}

void limit_success(struct limit *l, bool waiting, uint64_t bytes, uint64_t now_ns)
{
    if (!waiting || l->now >= l->max || (l->doubling && l->gentle < l->now)) {
        begin_round(l, now_ns);
        return;
    }
    l->round_bytes += bytes;
    if (++l->successes < l->now)
        return;
    if (l->doubling) {
        end_round(l, now_ns);
    } else {
        l->successes = 0;
        l->now++;
    }
}

bool limit_throttled(struct limit *l, uint64_t started, uint64_t now)
{
    if (started < l->cut_at)
        return false;
    l->cut_at = now;
    l->doubling = false;
    l->successes = 0;
    l->now = limit_allowed(l) > 1 ? limit_allowed(l) / 2 : 1;
    return true;
}
