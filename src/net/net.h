/* HTTP GETs of many objects at once: transfers, retries, timers. The interface of the room.
 *
 *     struct net          the network threads of a process (1…4) and their libcurl; counted
 *     struct net_client   one per store: where its requests go, its policy, limits and counters
 *
 * A client does not know what a store is: before every try it calls the client's `build` for URL
 * and headers, so that a signature is made at send time and again for each retry, and for
 * statuses that decide between "missing" and an error it asks `judge`. Ranges, resumes and the
 * checks of what comes back are the room's own business.
 *
 * Threads: every call may be made from any thread; build, judge, room and done run on a network
 * thread and must not block. Starting and cancelling from inside them is fine. After fork() the
 * child gets HR_EFORK from every call on inherited objects, and never touches their sockets,
 * locks or threads; what it closes is left alone. */
#ifndef NET_NET_H
#define NET_NET_H
#include "base/buf.h"
#include "base/error.h"
#include "net/reply.h"

struct net;
struct net_client;
struct net_stats;

struct net_options {
    int threads; /* 1…4; 0: 1 */
    void (*log)(void *arg, int level,
                const char *text); /* any thread; levels as hr_log_next; may be NULL */
    void *log_arg;
    bool trace; /* a line at level NET_TRACE for each request */
};
#define NET_TRACE 10
/* Starts nothing yet; libcurl is looked for by the first client. */
struct net *net_new(const struct net_options *o, struct hr_error *e);
struct net *net_ref(struct net *n);
void net_unref(struct net *n); /* the last one ends and joins the threads */
void net_say(struct net *n, int level, const char *text); /* to net_options.log */

/* All waiting is bounded by these; tests shrink them. */
struct net_policy {
    uint32_t connect_ms, first_byte_ms, stall_ms;
    uint32_t max_retries;                /* counted failures in a row */
    uint32_t retry_total_ms;             /* from the first of them */
    uint32_t backoff_ms, backoff_max_ms; /* full jitter between 0 and backoff · 2^n ≤ max */
    uint32_t retry_after_max_ms;
    uint32_t concurrency, concurrency_max; /* in flight: at the start, and at most */
    uint64_t split_bytes; /* larger objects than two of these are fetched in parts; 0: never */
    uint32_t hedge_ms;    /* least time before a second request for a late answer; 0: none */
    uint32_t rest_ms;     /* of an address that fails, the first time */
    uint32_t far_us; /* a handshake that takes so long is with a distant server; 0: none does */
    uint32_t warm;   /* connections opened ahead there, while the first request is answered */
};
#define NET_POLICY                                                                                 \
    {                                                                                              \
        .connect_ms = 5000, .first_byte_ms = 10000, .stall_ms = 20000, .max_retries = 10,          \
        .retry_total_ms = 180000, .backoff_ms = 100, .backoff_max_ms = 20000,                      \
        .retry_after_max_ms = 60000, .concurrency = 64, .concurrency_max = 256,                    \
        .split_bytes = 8u << 20, .hedge_ms = 10, .rest_ms = 10000, .far_us = 5000, .warm = 32      \
    }

/* What one try needs to know, for builders that sign. */
struct net_try {
    const char *key, *method; /* method: "GET", … */
    const char *query; /* not an object but its container is asked, as for a listing; or NULL */
    const char *body;  /* of a POST or PUT */
    size_t body_size;
    uint32_t number;              /* from 0 */
    const char *range, *if_match; /* the headers that the room adds, or NULL */
};
struct net_wire {
    struct buf url;
    struct buf headers; /* "Name: value" lines, each ended by a NUL: net_wire_header */
    uint64_t mark;      /* the builder's note to the judge of this try: which credential it used */
};
/* What `build` may answer instead of 0 or an error: it has no credential yet. The transfer is put
 * aside until net_client_wake, and asks again. */
enum { NET_WAIT = 1 };
int net_wire_header(struct net_wire *w, const char *name,
                    const char *value); /* 0 or -1 when out of memory */

enum net_verdict {
    NET_DEFAULT,   /* as HTTP has it: retry what is temporary, else an error */
    NET_ABSENT,    /* a positive answer that there is no such object */
    NET_TEMPORARY, /* to be tried again, whatever its status */
    NET_THROTTLED, /* the same, and fewer at once */
    NET_AGAIN,     /* `build` knows better now (region, credential, clock): at once, at most
                      twice a transfer; after that as NET_DEFAULT */
};

/* A reply outside 2xx, as judges see it. */
struct net_reply {
    const struct reply *head;
    const char *body; /* its first bytes, at most NET_ERROR_BODY */
    size_t body_size;
    const char *key;
    uint64_t mark; /* of the try: net_wire */
};
#define NET_ERROR_BODY 4096
/* What the judge adds to the error, should it become one. */
struct net_saying {
    char code[96];    /* the server's own: "NoSuchBucket"; "" if none */
    const char *hint; /* a sentence: what to do. NULL: none */
};

struct net_config {
    int (*build)(void *arg, const struct net_try *t, struct net_wire *w, struct hr_error *e);
    /* A status outside 2xx; any to a HEAD, which never succeeds: it is asked for its judge. */
    enum net_verdict (*judge)(void *arg, const struct net_reply *reply, struct net_saying *say);
    /* The bytes of a whole object that came in one answer, before they are delivered: false, and *why: they are not those
     * that its head speaks of, so it is read once more, on another connection. May be NULL. */
    bool (*agrees)(void *arg, const struct reply *head, const void *data, uint64_t size, char *why,
                   size_t room);
    void (*release)(void *arg); /* after the last use of arg, perhaps on a network thread */
    void *arg;
    const char *shown; /* URL of the store, for messages; copied */
    const char *proxy; /* NULL: none. Copied, as are the next two */
    const char *no_proxy;
    const char *ca_file; /* NULL: libcurl's own */
    struct net_policy policy;
};

/* Holds a reference on `n`. HR_EUNSUPPORTED where libcurl is not installed. On failure `release`
 * is not called. */
int net_client_open(struct net *n, const struct net_config *c, struct net_client **out,
                    struct hr_error *e);
/* Cancels everything: each open transfer ends with HR_ECLOSED, at once; the client frees itself
 * after the last. Where it held the last reference on its net, this waits for that, so no lock
 * may be held that `done` takes. */
void net_client_close(struct net_client *c);
void net_client_stats(struct net_client *c, struct net_stats *out);

/* The last failure of a try, if it is not long ago: "URL: no answer within 10.0 s: try 2, next try in 0.3 s", else "". */
#define TROUBLE_BYTES 480
void net_client_trouble(struct net_client *c, char *out, size_t n);
/* Somebody has waited so long for an object: a warning in the log, with the trouble there was. */
void net_client_waits(struct net_client *c, const char *key, unsigned seconds);

enum { NET_OK = 0, NET_MISSING = 1 };
struct net_result {
    int rc;               /* NET_OK, NET_MISSING or a negative code */
    uint64_t size;        /* bytes delivered */
    uint64_t object_size; /* 0: unknown */
    uint64_t version; /* a fingerprint of its ETag, else of its date; 0: the server says neither */
    int status;       /* of the answer that was an error; 0: there was none */
    struct hr_error error;
};
struct net_get {
    const char *key;    /* copied; for messages only where there is a query */
    const char *query;  /* NULL: an object. Copied; encoded and sorted as the builder wants it */
    const char *method; /* NULL: GET. Not copied */
    const char *body;   /* of a POST or PUT; copied */
    size_t body_size;
    struct want want;
    /* The place for `size` bytes, asked for when the size is known; NULL: HR_ENOMEM. Asked for
     * again, and the place before it forgotten, where that answer did not last and the next one has
     * another size. */
    void *(*room)(void *arg, uint64_t size);
    void *room_arg;
    void (*done)(void *arg,
                 const struct net_result *result); /* exactly once, on a network thread */
    void *done_arg;
};
/* *ticket is written before the first callback can run. */
int net_start(struct net_client *c, const struct net_get *get, uint64_t *ticket,
              struct hr_error *e);
/* Transfers that wait for a credential ask `build` again. From any thread. */
void net_client_wake(struct net_client *c);
/* Ends it with HR_ECANCELED unless it has ended. Unknown tickets are ignored. */
void net_cancel(struct net_client *c, uint64_t ticket);

#endif
