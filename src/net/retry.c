/* See retry.h. The retryable set and the numbers are the contract of docs/design.md; sources are
 * the behaviours of other clients (aws-c-s3's bucket: 500 tokens at cost 5; full jitter:
 * "Exponential Backoff And Jitter", AWS Architecture). */
#include "net/retry.h"

#include "net/net.h"

#define TOKENS_MAX         100000u /* 100 retries at once … */
#define TOKEN_COST         1000u
#define TOKENS_PER_SUCCESS 200u /* … one more per five successes … */
#define TOKENS_PER_MS      10u  /* … and ten a second */
#define STALE_MAX          3
#define WRONG_MAX          5 /* one answer in five may be a lie, and an epoch still ends */
#define UNANSWERED_MAX     3
#define SILENT_MAX         2 /* each takes as long as an answer may */
#define AGAIN_MAX          2

const char *cause_name(enum cause c)
{
    static const char *const names[CAUSE_COUNT] = {"none",       "connect",     "stale", "reset",
                                                   "first_byte", "stall",       "cut",   "throttle",
                                                   "server",     "wrong_reply", "again"};
    return c < CAUSE_COUNT ? names[c] : "?";
}

bool retry_status(int status)
{
    switch (status) {
    case 408:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
    case 509:
        return true;
    default:
        return false;
    }
}

bool retry_throttled(int status)
{
    return status == 429 || status == 503;
}

void bucket_init(struct bucket *b, uint64_t now_ns)
{
    *b = (struct bucket){.milli = TOKENS_MAX, .at_ns = now_ns};
}

void bucket_success(struct bucket *b)
{
    if (b->milli < TOKENS_MAX)
        b->milli += TOKENS_PER_SUCCESS;
}

uint64_t bucket_take(struct bucket *b, uint64_t now_ns)
{
    /* at_ns lies ahead of now while tokens of the future have been given away. */
    if (now_ns > b->at_ns) {
        uint64_t ms = (now_ns - b->at_ns) / 1000000;
        uint64_t more = ms < TOKENS_MAX / TOKENS_PER_MS ? ms * TOKENS_PER_MS : TOKENS_MAX;
        b->milli = b->milli + more < TOKENS_MAX ? b->milli + more : TOKENS_MAX;
        b->at_ns += ms * 1000000;
    }
    if (b->milli >= TOKEN_COST) {
        b->milli -= TOKEN_COST;
        return 0;
    }
    uint64_t ms = (TOKEN_COST - b->milli + TOKENS_PER_MS - 1) / TOKENS_PER_MS;
    b->milli = b->milli + ms * TOKENS_PER_MS - TOKEN_COST;
    b->at_ns += ms * 1000000;
    return b->at_ns > now_ns ? (b->at_ns - now_ns + 999999) / 1000000 : 0;
}

static uint64_t backoff_ms(const struct net_policy *p, uint32_t failures, uint64_t random)
{
    uint64_t most = p->backoff_ms;
    for (uint32_t i = 1; i < failures && most < p->backoff_max_ms; i++)
        most *= 2;
    if (most > p->backoff_max_ms)
        most = p->backoff_max_ms;
    return most ? random % (most + 1) : 0;
}

/* Retries of a server that has never answered anything: it may not be one. One that takes connections and drops them may be
 * overloaded. */
static uint32_t unanswered_max(enum cause c)
{
    return c == CAUSE_FIRST_BYTE ? SILENT_MAX : c == CAUSE_CONNECT ? UNANSWERED_MAX : UINT32_MAX;
}

struct retry_decision retry_next(struct retry *r, const struct net_policy *p, enum cause c,
                                 int64_t retry_after_ms, bool answered, struct bucket *b,
                                 uint64_t now_ns, uint64_t random)
{
    const struct retry_decision stop = {false, 0};
    if (c == CAUSE_STALE && r->stale < STALE_MAX) {
        r->stale++;
        return (struct retry_decision){true, 0};
    }
    if (c == CAUSE_AGAIN && retry_again_left(r)) {
        r->again++;
        return (struct retry_decision){true, 0};
    }
    if (!r->failures++)
        r->since_ns = now_ns;
    if (c != CAUSE_WRONG) /* only a lie that is repeated at once is meant */
        r->wrong = 0;
    if (r->failures > p->max_retries || (c == CAUSE_WRONG && r->wrong++ >= WRONG_MAX) ||
        (!answered && r->failures > unanswered_max(c)))
        return stop;
    uint64_t delay = backoff_ms(p, r->failures, random);
    if (retry_after_ms > 0) {
        uint64_t floor = (uint64_t)retry_after_ms;
        if (floor > p->retry_after_max_ms)
            floor = p->retry_after_max_ms;
        delay = delay > floor ? delay : floor;
    }
    uint64_t token = bucket_take(b, now_ns);
    delay = delay > token ? delay : token;
    if ((now_ns - r->since_ns) / 1000000 + delay > p->retry_total_ms)
        return stop;
    return (struct retry_decision){true, delay};
}

bool retry_wrong_left(const struct retry *r, const struct net_policy *p)
{
    return r->wrong < WRONG_MAX && r->failures < p->max_retries;
}

bool retry_again_left(const struct retry *r)
{
    return r->again < AGAIN_MAX;
}

void retry_progress(struct retry *r)
{
    r->failures = 0;
    r->stale = 0;
}
