/* Bytes for a key and a range. One interface for every place an archive may live.
 *
 * Two kinds of caller: *blocking* (opening an archive, the CLI, local workers) through
 * store_read, from any thread; and *asynchronous* (the engine's driver) through store_start,
 * whose completion is called on a network thread. A store whose `blocking` flag is set has no
 * asynchronous side: reads go to worker threads. Cloud stores are request builders over net/;
 * they fit behind the same calls.
 *
 * "Missing" is a positive answer only (docs/design.md §6): STORE_MISSING. Everything else that
 * is not the exact bytes is an error that names the URL without its secrets. */
#ifndef STORE_STORE_H
#define STORE_STORE_H
#include <stdbool.h>
#include "base/error.h"

enum { STORE_OK = 0, STORE_MISSING = 1 };

struct store;

/* A range: offset < 0 is a suffix of -offset bytes (a shorter object gives the whole); length 0
 * with offset 0 is the whole object. */
struct store_range {
    int64_t offset;
    uint64_t length;
};

/* Where the bytes go. The store asks for room once the size is known; `room` returns the place
 * for `size` bytes or NULL (then the read fails with HR_ENOMEM, and object_size says how
 * large the object is). */
struct store_sink {
    void *(*room)(void *arg, uint64_t size);
    void *arg;
};
struct store_result {
    int rc;               /* STORE_OK, STORE_MISSING or a negative code */
    uint64_t size;        /* bytes delivered */
    uint64_t object_size; /* total size of the object, 0 if unknown */
    uint64_t version;     /* tells it from what lay there before or lies there later; 0: unknown */
    bool denied;          /* the error is that we may not: HTTP's 401 and 403 */
    struct hr_error error;
};

int store_open(const char *url, const char *options_json, struct store **out, struct hr_error *e);

/* The same with what stores share: the process's network threads (a reference is taken; NULL:
 * the store starts its own), and the waiting times from which the options start (NULL:
 * NET_POLICY; tests shrink them). */
struct net;
struct net_policy;
struct store_shared;
struct store_env {
    struct net *net;
    const struct net_policy *policy;
    struct store_shared *shared;   /* what stores learn once for all; a reference is taken */
    int (*interrupted)(void *arg); /* NULL, or asked every 50 ms by who waits: nonzero ends that */
    void *interrupted_arg;
};
int store_open_with(const char *url, const char *options_json, const struct store_env *env,
                    struct store **out, struct hr_error *e);
bool store_url_is_remote(const char *url); /* its store asks the network: worth a store_env */
struct store *store_ref(struct store *s);
/* The last one closes: open reads end with HR_ECLOSED, within 100 ms. No lock may be held that
 * their `done` takes, and without a shared net (store_env) the store's network thread is joined. */
void store_unref(struct store *s);
const char *store_url(const struct store *s); /* for people: no secrets */
/* The store that has `key`, one of several in `s` or `s` itself; *key becomes what it is called there. */
struct store *store_of(struct store *s, const char **key);
bool store_blocking(const struct store *s);
bool store_remote(const struct store *s); /* decides gap and size of coalesced reads */

/* Blocking; not on a network thread (in a store_done or a sink's room). The result's bytes are
 * in what `room` returned. Returns result->rc. */
int store_read(struct store *s, const char *key, struct store_range range,
               const struct store_sink *sink, struct store_result *result);
/* Names directly below prefix ("a/b" or ""): NUL-separated in *names (mem_free), folders end in
 * '/'. HR_EUNSUPPORTED where the store cannot list. */
int store_list(struct store *s, const char *prefix, char **names, size_t *size, struct hr_error *e);

/* Asynchronous (only when !store_blocking). `done` is called exactly once, on a network thread,
 * also after cancel. */
typedef void (*store_done)(void *arg, const struct store_result *result);
int store_start(struct store *s, const char *key, struct store_range range,
                const struct store_sink *sink, store_done done, void *arg, uint64_t *ticket,
                struct hr_error *e);
void store_cancel(struct store *s, uint64_t ticket);

/* For whoever waits for `key`, about every STORE_ASK_NS: nonzero when it is to give up. Long waits are warned of. */
#define STORE_ASK_NS 50000000ull
struct store_wait {
    uint64_t since_ns, warned_ns; /* 0 at first */
};
bool store_interrupted(struct store *s, const char *key, struct store_wait *w);
/* What went wrong last, in a sentence; "" if nothing did lately. */
#define STORE_TROUBLE_BYTES 480
void store_trouble(struct store *s, char *out, size_t n);

/* Local directories: an open file for preadv/fadvise by the worker itself; -1 + STORE_MISSING,
 * or a code. Only when store_local. */
bool store_local(const struct store *s);
int store_open_file(struct store *s, const char *key, int *fd, uint64_t *size, struct hr_error *e);

/* 0 while the object `key` of a local store (or any other store: nothing is asked there) is still
 * where it was, otherwise an error: to be asked before absence below it is believed. NULL: no
 * such object. */
int store_expect(struct store *s, const char *key, struct hr_error *e);

/* Counters for stats: requests, bytes, retries, … as a JSON object appended to `buf` (struct
 * buf). */
void store_stats_json(struct store *s, void *buf);

#endif
