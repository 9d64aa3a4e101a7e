/* See limit.h. */
#include "net/limit.h"

#define FEW          16u
#define QUICK_NS     2000000u
#define QUICK_LASTS  64u       /* answers */
#define ROUND_NS     20000000u /* shorter ones tell about the scheduler */
#define QUICK_ROUND  50000000u /* … and these about what else the processor does */
#define FLIGHT_BYTES (32u << 20)
#define FAR_BYTES    (12u << 20) /* small objects far away: so much at once, or so many */
#define FAR_MOST     128u
#define FAR_SETTLES  3u /* rounds in which the windows of new connections open */
#define HOLD_NS      10000000000ull

void limit_init(struct limit *l, uint32_t start, uint32_t max, uint32_t first)
{
    max = max ? max : 1;
    *l = (struct limit){.now = start < 1     ? 1
                               : start > max ? max
                                             : start,
                        .max = max,
                        .gentle = first ? first : 1,
                        .doubling = true,
                        .settling = 1};
    l->before = l->now;
    l->fixed = l->now == max;
}

uint32_t limit_allowed(const struct limit *l)
{
    return l->gentle < l->now ? l->gentle : l->now;
}

static uint8_t settles(const struct limit *l)
{
    return l->far ? FAR_SETTLES : 1;
}

/* The first answers tell what kind of store it is. */
static void look(struct limit *l)
{
    uint64_t n = FLIGHT_BYTES / l->size;
    if (l->quick || n < FEW)
        n = FEW;
    if (l->now > n)
        l->now = l->before = (uint32_t)n;
    n = FAR_BYTES / l->size < FAR_MOST ? FAR_BYTES / l->size : FAR_MOST;
    if (l->far && l->now < n)
        l->now = l->before = n < l->max ? (uint32_t)n : l->max;
    l->settling = settles(l);
}

void limit_answered(struct limit *l, bool waiting, uint64_t first_byte_ns, uint64_t bytes)
{
    if (first_byte_ns < QUICK_NS)
        l->quick = QUICK_LASTS;
    else if (l->quick)
        l->quick--;
    bytes = bytes ? bytes : 1;
    l->size = l->size ? (7 * l->size + bytes + 7) / 8 : bytes;
    l->gentle += waiting && l->gentle < l->max;
    if (++l->answers == FEW && l->doubling && !l->fixed)
        look(l);
}

void limit_unanswered(struct limit *l)
{
    l->gentle = l->gentle < l->max / 2 ? l->gentle * 2 : l->max;
}

void limit_far(struct limit *l)
{
    l->gentle = l->max;
    l->far = true;
}

static void begin_round(struct limit *l, uint64_t now_ns)
{
    l->successes = 0;
    l->round_bytes = 0;
    l->round_ns = now_ns;
    l->used = 0;
}

static void hold(struct limit *l, uint32_t at, uint64_t now_ns)
{
    l->now = at;
    l->doubling = false;
    l->hold_until = now_ns + HOLD_NS;
}

/* What is in flight beyond `before` should bring a quarter of what it would where nothing is in its way. */
static bool pays(const struct limit *l, uint64_t rate)
{
    uint64_t used = l->used < l->now ? l->used : l->now;
    uint64_t more = used > l->before ? used - l->before : 0;
    return rate > l->rate && (rate - l->rate) * 4 * l->before > l->rate * more;
}

/* Fewer do as well. */
static bool suffices(const struct limit *l, uint64_t rate)
{
    return rate * 8 >= l->rate * 7;
}

static void try_other(struct limit *l, uint64_t rate, uint32_t other)
{
    l->rate = rate ? rate : 1;
    l->settling = settles(l);
    l->before = l->now;
    l->now = other;
}

static void more_is_better(struct limit *l)
{
    l->now = l->before;
    l->rate = 0;
    l->settling = 1;
    l->again = false;
}

/* A round of `now` answers is over. One in which it has changed, and the first, are about cold connections: not counted. */
static void end_round(struct limit *l, uint64_t now_ns)
{
    uint64_t us = (now_ns - l->round_ns) / 1000 + 1, rate = l->round_bytes * 1000 / us;
    uint32_t twice = l->now < l->max / 2 ? l->now * 2 : l->max;
    if (l->settling)
        l->settling--;
    else if (!l->rate && l->again && l->quick && l->now > FEW)
        try_other(l, rate, l->now / 2 > FEW ? l->now / 2 : FEW);
    else if (l->now < l->before && suffices(l, rate))
        hold(l, l->now, now_ns);
    else if (l->now < l->before)
        more_is_better(l);
    else if (l->rate && !pays(l, rate))
        hold(l, l->before, now_ns);
    else if (l->now >= l->max)
        hold(l, l->now, now_ns);
    else
        try_other(l, rate, twice);
    begin_round(l, now_ns);
}

static void try_again(struct limit *l)
{
    l->doubling = l->again = true;
    l->settling = 1;
    l->rate = 0;
    l->before = l->now;
}

void limit_success(struct limit *l, bool waiting, uint32_t in_flight, uint64_t bytes,
                   uint64_t now_ns)
{
    bool most = l->now >= l->max && !l->doubling && !(l->quick && l->hold_until && !l->fixed);
    bool tried = l->doubling && l->now > l->before && in_flight > l->before + l->before / 4;
    if ((!waiting && !tried) || most || (l->doubling && l->gentle < l->now)) {
        begin_round(l, now_ns);
        return;
    }
    l->round_bytes += bytes;
    l->used = in_flight > l->used ? in_flight : l->used;
    if (++l->successes < l->now ||
        (l->doubling && now_ns - l->round_ns < (l->quick ? QUICK_ROUND : ROUND_NS)))
        return;
    if (l->doubling) {
        end_round(l, now_ns);
    } else if (!l->hold_until) {
        l->successes = 0;
        l->now++;
    } else if (l->hold_until <= now_ns) {
        try_again(l);
        begin_round(l, now_ns);
    }
}

bool limit_throttled(struct limit *l, uint64_t started, uint64_t now)
{
    if (started < l->cut_at)
        return false;
    l->cut_at = now;
    l->doubling = false;
    l->hold_until = 0;
    l->successes = 0;
    l->now = limit_allowed(l) > 1 ? limit_allowed(l) / 2 : 1;
    return true;
}
