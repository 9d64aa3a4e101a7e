/* See limit.h. */
#include "net/limit.h"

void limit_init(struct limit *l, uint32_t start, uint32_t max, uint32_t first)
{
    max = max ? max : 1;
    *l = (struct limit){.now = start < 1     ? 1
                               : start > max ? max
                                             : start,
                        .max = max,
                        .gentle = first ? first : 1};
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

void limit_success(struct limit *l, bool waiting)
{
    if (!waiting || l->now >= l->max || ++l->successes < l->now)
        return;
    l->successes = 0;
    l->now++;
}

bool limit_throttled(struct limit *l, uint64_t started, uint64_t now)
{
    if (started < l->cut_at)
        return false;
    l->cut_at = now;
    l->successes = 0;
    l->now = limit_allowed(l) > 1 ? limit_allowed(l) / 2 : 1;
    return true;
}
