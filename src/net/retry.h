/* When a request is tried again, and how long to wait before. Pure: time and randomness come
 * from the caller.
 *
 * Full jitter keeps clients apart; Retry-After is a floor (some services ask for 17 s, some for
 * 1200: capped); the bucket makes retries a bounded extra load: each costs a token, successes
 * and time bring tokens back, and a retry without a token waits for one instead of failing, so
 * an outage ends in the total limit and not in a storm. */
#ifndef NET_RETRY_H
#define NET_RETRY_H
#include <stdbool.h>
#include <stdint.h>

struct net_policy;

enum cause {
    CAUSE_NONE,
    CAUSE_CONNECT,    /* DNS, TCP, TLS, proxy */
    CAUSE_STALE,      /* a reused connection died before the first byte: not counted */
    CAUSE_RESET,      /* a fresh one did */
    CAUSE_FIRST_BYTE, /* no answer in time */
    CAUSE_STALL,      /* the body stopped */
    CAUSE_CUT,        /* the body ended early */
    CAUSE_THROTTLE,   /* 429, 503 */
    CAUSE_SERVER,     /* other retryable statuses */
    CAUSE_WRONG,      /* the reply is not what was asked for */
    CAUSE_AGAIN,      /* refused for a region, credential or clock that is known better now */
    CAUSE_COUNT
};
const char *cause_name(enum cause c); /* as in stats: "first_byte" */

bool retry_status(int status);    /* 408 429 500 502 503 504 509 */
bool retry_throttled(int status); /* 429 503: the in-flight limit halves */

/* Tokens are thousandths of a retry. */
struct bucket {
    uint64_t milli, at_ns;
};
void bucket_init(struct bucket *b, uint64_t now_ns);
void bucket_success(struct bucket *b);
/* Take a token that may lie in the future; returns how long to wait for it, in ms. */
uint64_t bucket_take(struct bucket *b, uint64_t now_ns);

/* What one transfer has been through. */
struct retry {
    uint32_t failures; /* counted ones since the last real progress */
    uint32_t stale;    /* uncounted ones */
    uint32_t wrong;    /* in a row */
    uint32_t again;    /* uncounted too */
    uint64_t since_ns; /* first of the failures */
};
struct retry_decision {
    bool again;
    uint64_t delay_ms;
};
/* `answered`: this server has answered before (else it is tried a few times only: a mistyped host
 * should not take minutes). `random`: 64 random bits. */
struct retry_decision retry_next(struct retry *r, const struct net_policy *p, enum cause c,
                                 int64_t retry_after_ms, bool answered, struct bucket *b,
                                 uint64_t now_ns, uint64_t random);
/* A try that brought this many bytes is progress: the count and the clock start anew. */
#define RETRY_PROGRESS_BYTES (256u << 10)
bool retry_again_left(const struct retry *r); /* may CAUSE_AGAIN be tried once more? */
bool retry_wrong_left(const struct retry *r, const struct net_policy *p); /* … CAUSE_WRONG? */
void retry_progress(struct retry *r);

#endif
