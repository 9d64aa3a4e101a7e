/* See limit.h. */
#include "net/limit.h"

#define SAMPLES   8u       /* before the mean means something; also its memory */
#define MUCH      3u       /* times the least mean, and … */
#define MARGIN_NS 5000000u /* … this more, is a queue at the other end */

void limit_init(struct limit *l, uint32_t start, uint32_t max, uint32_t first)
{
    max = max ? max : 1;
    *l = (struct limit){.now = start < 1     ? 1
                               : start > max ? max
                                             : start,
                        .max = max,
                        .gentle = first ? first : 1,
                        .doubling = true};
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

/* A running mean of the first bytes, and the least that it ever was. */
static void note_time(struct limit *l, uint64_t ns)
{
    if (l->samples < SAMPLES)
        l->samples++;
    l->usual_ns = l->usual_ns - l->usual_ns / l->samples + ns / l->samples;
    if (l->samples == SAMPLES && (!l->least_ns || l->usual_ns < l->least_ns))
        l->least_ns = l->usual_ns;
}

void limit_success(struct limit *l, bool waiting, uint64_t first_byte_ns)
{
    if (l->doubling) {
        note_time(l, first_byte_ns);
        l->doubling = !l->least_ns || l->usual_ns <= MUCH * l->least_ns + MARGIN_NS;
    }
    if (!waiting || l->now >= l->max)
        return;
    if (l->doubling ? l->gentle < l->now : ++l->successes < l->now)
        return;
    l->successes = 0;
    l->now++;
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
