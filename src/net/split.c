/* See split.h. */
#include "net/split.h"

#include <string.h>

#include "base/mem.h"
#include "net/tries.h"

#define PARTS_MAX 64u /* then they are larger */
#define LONE_PART (32u << 10)
#define LONE_MAX  32u

static bool serves_ranges(const struct reply *r)
{
    size_t n = 0;
    const char *units = r->status == 206 ? NULL : reply_header(r, "accept-ranges", &n);
    return r->status == 206 || (units && n == 5 && !memcmp(units, "bytes", 5));
}

/* A distant read that nothing else is under way beside, of metadata that all else waits for: its connection would begin with
 * 14 KB a round trip, and open its window by doubling that. */
static bool is_lone(const struct lane *lane)
{
    return lane->limit.far && lane->in_flight <= 1;
}

static uint64_t part_of(const struct transfer *t)
{
    uint64_t part = t->lane->client->config.policy.split_bytes, size = t->object.size;
    uint64_t small = size / LONE_MAX > LONE_PART ? size / LONE_MAX + 1 : LONE_PART;
    if (small < part && is_lone(t->lane))
        return small;
    if (part && size / part > PARTS_MAX)
        part = size / PARTS_MAX < 2 * part ? size / PARTS_MAX : 2 * part;
    return part;
}

static bool worth_it(const struct transfer *t)
{
    const struct lane *lane = t->lane;
    uint64_t part = part_of(t);
    return part && t->object.size >= 2 * part && !t->parent && !t->split && !lane->no_split &&
           t->object.etag[0] && serves_ranges(&t->now.reply) && t->ask.body_size == 0 &&
           !t->ask.query && TAILQ_EMPTY(&lane->queue) &&
           lane->in_flight < limit_allowed(&lane->limit);
}

static struct transfer *new_part(struct transfer *t, uint64_t at, uint64_t size)
{
    size_t n = strlen(t->key) + 1;
    struct transfer *x = mem_zalloc(sizeof *x + n);
    if (!x)
        return NULL;
    memcpy(x->key, t->key, n);
    x->key_hash = t->key_hash;
    x->parent = t;
    x->lane = t->lane;
    TAILQ_INIT(&x->parts);
    x->ask.key = x->key;
    x->ask.method = "GET";
    x->ask.want = (struct want){WANT_RANGE, t->object.first + at, size};
    x->object = t->object;
    x->object.first += at;
    x->object.size = x->object.share = size;
    x->object.got = 0;
    x->object.place += at;
    return x;
}

void split_consider(struct transfer *t)
{
    if (!worth_it(t))
        return;
    struct lane *lane = t->lane;
    uint64_t part = part_of(t), size = t->object.size;
    size_t n = (size_t)((size - 1) / part), made = 0;
    if (timers_reserve(&lane->loop->timers, lane->loop->transfers + n) < 0)
        return;
    for (uint64_t at = part; at < size; at += part) {
        struct transfer *x = new_part(t, at, part < size - at ? part : size - at);
        if (!x)
            break;
        TAILQ_INSERT_TAIL(&t->parts, x, open);
        made++;
    }
    struct transfer *x;
    if (made < n) { /* no memory: in one piece */
        while ((x = TAILQ_FIRST(&t->parts))) {
            TAILQ_REMOVE(&t->parts, x, open);
            mem_free(x);
        }
        return;
    }
    t->split = true;
    t->object.share = part;
    lane->loop->transfers += n;
    for (x = TAILQ_FIRST(&t->parts); x; x = TAILQ_NEXT(x, open))
        transfer_enqueue(x, false);
    lane_wake(lane);
    pthread_mutex_lock(&lane->client->synced.lock);
    lane->client->synced.stats.parts += n + 1;
    pthread_mutex_unlock(&lane->client->synced.lock);
}

void split_end_parts(struct transfer *t)
{
    struct transfer *x;
    t->parts_ending = true;
    while ((x = TAILQ_FIRST(&t->parts)))
        transfer_end_now(x, HR_ECANCELED, "canceled"); /* comes back to split_part_ended */
    t->parts_ending = false;
}

void split_undo(struct transfer *t)
{
    split_end_parts(t);
    t->lane->no_split = true;
    t->split = false;
    t->object.no_resume = true;
    t->object.got = 0;
    t->object.share = t->object.size;
}

void split_part_ended(struct transfer *part, const struct net_result *r)
{
    struct transfer *t = part->parent;
    bool refused = part->object.no_resume;
    TAILQ_REMOVE(&t->parts, part, open);
    mem_free(part);
    if (t->parts_ending)
        return;
    if (r->rc == NET_OK) {
        if (t->phase == PHASE_PARTS && TAILQ_EMPTY(&t->parts))
            transfer_complete(t);
    } else if (refused) {
        transfer_stop(t);
        split_undo(t);
        transfer_enqueue(t, true);
        lane_wake(t->lane);
    } else {
        transfer_stop(t);
        transfer_finish(t, r);
    }
}
