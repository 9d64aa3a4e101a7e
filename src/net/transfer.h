/* One object (or range) on its way: from net_start to `done`, over as many tries as it takes.
 * Internal to the room.
 *
 *     QUEUED ─► CONNECTING ─► WAITING ─► BODY ─► ended, or ─► BACKOFF ─► QUEUED …
 *        └► PARKED or NAMING ─► QUEUED
 *
 * A transfer belongs to one lane (client × loop) and all of its life but net_start and
 * net_cancel runs on that loop's thread. What earlier tries have brought stays in the caller's
 * memory when the object has a strong ETag: the next try asks for the rest, with If-Match. */
#ifndef NET_TRANSFER_H
#define NET_TRANSFER_H
#include <stdatomic.h>
#include <sys/queue.h>

#include "net/addresses.h"
#include "net/hedge.h"
#include "net/limit.h"
#include "net/loop.h"
#include "net/pins.h"
#include "net/retry.h"
#include "net/stats.h"
#include "net/warm.h"

struct transfer;
TAILQ_HEAD(transfer_list, transfer);

#define EASY_TRIES_MAX 4

/* A libcurl easy handle with the memory its request and reply live in; recycled within its lane. */
struct easy {
    struct easy *next;
    struct lane *lane;
    struct transfer *t; /* NULL when idle */
    CURL *curl;
    uint64_t sent_ns;                  /* 0: not yet */
    uint64_t handshake_ns;             /* of a connection made for this try */
    struct curl_slist agent, *headers; /* the first of them; the others */
    struct net_wire wire;
    struct buf head, body; /* reply headers; error bodies and chunked whole objects */
    bool knows_sending;    /* libcurl tells when the request goes out (7.80) */
    char origin[160];      /* "https://host:port/", if that is all of the URL that libcurl knows */
    size_t origin_size;    /* without the last '/'; 0: it knows the whole URL */
    struct host *host;     /* that its URL names; NULL: libcurl finds the address (hosts.h) */
    bool named;            /* host is up to date */
    union address_ip tries[EASY_TRIES_MAX]; /* to which it has tried to connect in this try */
    size_t tried;
    union address_ip peer;      /* the last of them, or the only one there is, with its port */
    bool warmed;                /* its connection was opened ahead */
    struct curl_slist *resolve; /* what it told libcurl */
    bool gets;                  /* its method is GET */
    char error[CURL_ERROR_SIZE];
};

enum phase {
    PHASE_QUEUED,
    PHASE_PARKED, /* no credential yet: build said NET_WAIT */
    PHASE_NAMING, /* no address yet */
    PHASE_CONNECTING,
    PHASE_WAITING,
    PHASE_BODY,
    PHASE_PARTS, /* its own part is there, others are not yet: split.h */
    PHASE_BACKOFF
};
enum body_mode { BODY_NONE, BODY_KEEP, BODY_SPOOL, BODY_ERROR };
enum outcome { OUTCOME_OPEN, OUTCOME_RETRY, OUTCOME_FINAL };

struct transfer {
    TAILQ_ENTRY(transfer) open;  /* in the client, under its lock */
    TAILQ_ENTRY(transfer) queue; /* in the lane, while QUEUED or PARKED; in naming while NAMING */
    struct host *naming;
    struct mail start, cancel;
    bool arrived; /* its start was delivered */
    struct timer timer;
    struct lane *lane;
    uint64_t ticket;
    bool cancel_posted;         /* under the client's lock */
    bool cancel_arrived, ended; /* ended while a cancel is on its way: freed when it arrives */
    struct net_get ask;
    uint64_t key_hash;
    enum phase phase;
    uint32_t tries;
    uint64_t begun_ns; /* first try */
    struct retry retry;
    struct transfer *parent;    /* this is a part of it; or NULL */
    struct transfer_list parts; /* that have not ended; by their `open` */
    bool split, parts_ending;
    struct easy *hedge; /* its second request, until one of both is answered */
    bool fresh;         /* next try on a new connection */
    struct {            /* what is known of the object and kept of it */
        bool sized, no_resume;
        bool seen; /* a reply was taken for it */
        uint64_t first, size, total;
        uint64_t got, share; /* share: how much of it is this transfer's own: split.h */
        char *place;
        uint64_t room;               /* the size that `place` was asked for */
        uint64_t etag_hash, version; /* version: the same, or of its date where there is none */
        char etag[REPLY_ETAG_MAX];   /* strong, else "" */
    } object;
    struct { /* this try */
        struct easy *easy;
        uint64_t sent_ns, first_byte_ns, progress_ns;
        uint64_t seen, got_before; /* body bytes; object.got when it began */
        struct want want;
        bool resumed, replied;
        enum body_mode mode;
        struct reply reply;
        struct slice slice;
        enum outcome outcome;
        enum cause cause;
        struct hr_error fault; /* why it failed, without the URL */
    } now;
    char key[];
};

/* A client's part on one loop. Loop thread only, but for the atomics. */
struct lane {
    struct net_client *client;
    struct loop *loop;
    struct mail close, wake;
    _Atomic bool wake_posted;
    struct transfer_list queue, parked;
    uint32_t in_flight;
    struct limit limit;
    struct bucket bucket;
    struct hedging hedging;
    struct warm warm;
    bool answered;
    bool closed;  /* whatever still arrives ends at once */
    bool widened; /* in loop->widened: an answer has made room for waiting transfers */
    struct lane *next_widened;
    bool no_split;     /* a server without ranges, after all */
    bool told_ignored; /* that ranges are ignored: said once */
    struct easy *idle;
    uint64_t random_key, random_index;
    _Atomic uint32_t shown_limit, shown_in_flight, shown_waiting, shown_addresses;
};

struct net_client {
    struct net *net;
    struct net_config config;
    _Atomic uint32_t refs; /* the owner, open transfers, lanes to be closed */
    _Atomic uint32_t next_lane;
    _Atomic uint64_t handshake_ns; /* the quickest; 0: none yet */
    struct {
        pthread_mutex_t lock;
        struct transfer_list open;
        uint64_t tickets;
        struct net_stats stats; /* without the gauges */
        struct pins pins;
        struct {
            uint64_t at_ns, told_ns; /* 0: never */
            char text[TROUBLE_BYTES];
        } trouble; /* the last */
    } synced;
    struct lane lanes[NET_THREADS_MAX];
};
void client_unref(struct net_client *c);
/* Its queue is looked at again in the next turn of the loop. False: its client is ending. */
bool lane_wake(struct lane *lane);
void client_forget(struct net_client *c, struct transfer *t,
                   const struct net_result *r); /* off the list; counts */

/* easy.c */
struct easy *easy_take(struct lane *lane, struct hr_error *e);
void easy_give(struct easy *h);
void easy_free(struct easy *h);
bool easy_reused(const struct easy *h); /* this try goes over a kept connection */
void easy_note_socket(struct easy *h);  /* its connection is kept and will be used again */
int easy_prepare(struct easy *h, struct transfer *t,
                 struct hr_error *e); /* URL, headers, range of this try */

/* transfer.c; called by the loop and by mail */
#define TRANSFER_CLOSED "the store was closed"
void transfer_arrive(struct loop *l, struct mail *m);
void transfer_cancel(struct loop *l, struct mail *m);
void transfer_wake(struct loop *l, struct mail *m);
void transfer_named(struct transfer *t); /* its host's addresses are there, or will not be */
void transfer_end_now(struct transfer *t, int code, const char *why);
void transfer_timer(struct timer *timer);
void transfer_answered(struct transfer *t); /* the reply begins; from within libcurl */
void transfer_pump_widened(struct loop *l);
void transfer_ended(struct easy *h, CURLcode code); /* libcurl says so */
void transfer_enqueue(struct transfer *t, bool first);
void transfer_dequeue(struct transfer *t);
void transfer_finish(struct transfer *t, const struct net_result *r);
void transfer_complete(struct transfer *t); /* all bytes are there */
void transfer_stop(struct transfer *t);     /* whatever it waits for */
/* `text` with the name of the object before it, and what was tried behind it. */
void transfer_fail(struct transfer *t, int code, bool retryable, const char *text);
void transfer_name(const struct transfer *t, char *out, size_t n);

void trouble_note(struct transfer *t, bool again, uint64_t delay_ms); /* its try has failed */

/* body.c; called by libcurl through easy.c: false aborts the try */
bool body_head(struct transfer *t);
bool body_bytes(struct transfer *t, const char *data, size_t n);
void body_end(struct transfer *t, CURLcode code);        /* sets the outcome */
bool body_doubtful(struct transfer *t, const char *why); /* to be repeated: sets the fault */
bool body_changed(struct transfer *t);                 /* another version: sets the fault; false */
bool body_pinned(struct transfer *t, struct pin *pin); /* which version is known of its object */
void transfer_fault(struct transfer *t, enum outcome o, enum cause c, int code, const char *format,
                    ...) __attribute__((format(printf, 5, 6)));

#endif
