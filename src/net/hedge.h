/* A second request for an answer that is late. Internal to the room.
 *
 * A few of a store's answers take many times longer than the rest, for reasons of their own that a
 * second request does not meet. When the first byte is later than nearly all of this lane's
 * lately, a second request goes out, and whichever answers well first becomes the transfer's try;
 * the other is dropped before it has brought a byte. A loaded store must not be loaded more: at
 * most one in twenty requests, a few at once, none for a while after a throttle, fewer the more
 * tries fail, none for a try that is a retry, none before enough answers are known. `hedge_ms` of the policy is the least wait; 0: never. */
#ifndef NET_HEDGE_H
#define NET_HEDGE_H
#include "net/stats.h"

struct easy;
struct lane;
struct transfer;

struct hedging {           /* of a lane */
    struct latency recent; /* first bytes of first tries; old ones fade */
    uint64_t after_ns;     /* how late is late; 0: not known yet */
    uint64_t calm_from;    /* no second requests before this time */
    uint32_t credit;       /* in twentieths of a request */
};
/* Pure part. A first try was answered after this time. */
void hedging_learn(struct hedging *g, uint32_t least_ms, uint64_t first_byte_ns);
void hedging_throttled(struct hedging *g, uint64_t now);
void hedging_failed(struct hedging *g); /* a try: where many do, there are no second requests */
bool hedging_take(struct hedging *g, uint64_t now); /* may one be sent now? counts it */

/* When a second request for t's try, sent at `sent_ns`, is due; UINT64_MAX: never. */
uint64_t hedge_due(const struct transfer *t, uint64_t sent_ns);
void hedge_send(struct transfer *t); /* if it may be; outside of libcurl's callbacks */
/* The first header line has come on h, one of t's two requests. False: h is not to go on. */
bool hedge_answered(struct transfer *t, struct easy *h, bool good);
/* libcurl has ended h while t had two requests and no answer: the other one goes on. */
void hedge_ended(struct transfer *t, struct easy *h);
void hedge_drop(struct transfer *t); /* with its transfer's try */

#endif
