/* One question to the name server, on a thread of its own. Internal to the room.
 *
 * getaddrinfo blocks and cannot be interrupted, so its thread is detached and holds all it uses:
 * a loop that ends abandons the question, and whoever comes last frees it. */
#ifndef NET_LOOKUP_H
#define NET_LOOKUP_H
#include "net/addresses.h"
#include "net/loop.h"

struct lookup {
    struct mail answer; /* to the loop, when it is there; then lookup_free */
    void *asker;
    union address_ip found[ADDRESSES_MAX];
    size_t count; /* 0: no such name, or no answer */
    struct {
        pthread_mutex_t lock;
        struct loop *loop; /* NULL: abandoned */
        bool posted;
    } synced;
    char name[];
};
/* `deliver` is called on the loop's thread. NULL where no thread could be started. */
struct lookup *lookup_start(struct loop *l, const char *name, void *asker,
                            void (*deliver)(struct loop *l, struct mail *m));
void lookup_free(struct lookup *q);    /* after its delivery */
void lookup_abandon(struct lookup *q); /* before it */

#endif
