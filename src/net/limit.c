/* See limit.h. */
#include "net/limit.h"

void limit_init(struct limit *l, uint32_t start, uint32_t max)
{
    max = max ? max : 1;
    *l = (struct limit){.now = start < 1 ? 1 : start > max ? max : start, .max = max};
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
    l->now = l->now > 1 ? l->now / 2 : 1;
    return true;
}
