/* All addresses of one host, used in turn; those that fail rest for a while. Pure: time comes from
 * the caller.
 *
 * A large store hands out several addresses, each a front end with its own limits, and a client
 * that takes the first one sends everything to one of them. So each new connection takes the next
 * address of the family that libcurl asks for. One that refuses connections rests at once, one
 * whose answers do not come or break off after some of these; each time longer when it fails
 * again. When all of a family rest, the one whose rest ends first is used: there is always one.
 * Addresses are kept for a while after they were last heard of, since some name servers give
 * another few of many with each answer. */
#ifndef NET_ADDRESSES_H
#define NET_ADDRESSES_H
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ADDRESSES_MAX     32
#define ADDRESSES_KEEP_NS 150000000000ull /* after the last answer that had it */

union address_ip {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};
struct address {
    union address_ip ip; /* port 0 */
    uint64_t heard_ns, rests_until, struck_ns;
    uint32_t strikes, rests; /* since it last did well for some time */
};
struct addresses {
    struct address list[ADDRESSES_MAX];
    size_t count, turn;
};

/* What a name server said. An answer without any changes nothing. True when the list changed. */
bool addresses_hear(struct addresses *a, const union address_ip *found, size_t n, uint64_t now);
/* The next of this family, or NULL where it has none. */
struct address *addresses_next(struct addresses *a, int family, uint64_t now);
enum blame {
    BLAME_CONNECT, /* no connection */
    BLAME_ANSWER   /* none, or one that broke off */
};
/* Returns true when it rests from now on. `rest_ms`: the first rest. */
bool addresses_blame(struct addresses *a, const union address_ip *ip, enum blame why,
                     uint32_t rest_ms, uint64_t now);
size_t addresses_resting(const struct addresses *a, uint64_t now);

bool address_parse(union address_ip *out, const char *text); /* "10.0.0.1", "fe80::1" */
void address_text(const union address_ip *ip, char *out, size_t n);

#endif
