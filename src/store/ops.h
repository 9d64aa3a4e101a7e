/* What a kind of store provides. Internal to the room; store.c dispatches and has checked
 * arguments. */
#ifndef STORE_OPS_H
#define STORE_OPS_H
#include <stdatomic.h>

#include "base/buf.h"
#include "store/store.h"

struct store_ops {
    bool blocking, remote, local;
    /* Of several stores in one (members.h): the one that has the key, which is shortened to what it is there; else NULL */
    struct store *(*route)(struct store *s, const char **key);
    void (*close)(struct store *s); /* last reference: frees, or sees to it */
    /* Fills *result, rc included. */
    void (*read)(struct store *s, const char *key, struct store_range range,
                 const struct store_sink *sink, struct store_result *result);
    int (*list)(struct store *s, const char *prefix, char **names, size_t *size,
                struct hr_error *e); /* or NULL */
    int (*start)(struct store *s, const char *key, struct store_range range,
                 const struct store_sink *sink, store_done done, void *arg, uint64_t *ticket,
                 struct hr_error *e); /* NULL when blocking */
    void (*cancel)(struct store *s, uint64_t ticket);
    int (*open_file)(struct store *s, const char *key, int *fd, uint64_t *size,
                     struct hr_error *e); /* when local */
    void (*stats)(struct store *s, struct buf *out);
    /* What a store behind a network has met last, and the warning of who waits; NULL: nothing */
    void (*trouble)(struct store *s, char *out, size_t n);
    void (*waits)(struct store *s, const char *key, unsigned seconds);
};

struct store {
    const struct store_ops *ops;
    _Atomic uint32_t refs;
    const char *url;               /* for people */
    int (*interrupted)(void *arg); /* NULL, or asked by whoever waits for a read */
    void *interrupted_arg;
};
static inline void store_init(struct store *s, const struct store_ops *ops, const char *url)
{
    s->ops = ops;
    s->url = url;
    s->interrupted = NULL;
    atomic_init(&s->refs, 1);
}

/* Counters of stores that read in the caller's thread. */
struct store_counts {
    _Atomic uint64_t requests, bytes, missing, failed;
};
void store_count(struct store_counts *c, const struct store_result *r);
void store_counts_json(const struct store_counts *c, struct buf *out);

/* The bytes of an object of `size` bytes that a range means. HR_EDATA when the object ends
 * before the range does. */
int store_clip(struct store_range range, uint64_t size, uint64_t *first, uint64_t *length,
               struct hr_error *e);

/* Ask the sink for room; NULL and an error where there is none. */
void *store_room(const struct store_sink *sink, uint64_t size, struct store_result *r);

int file_store_open(const char *path, const char *options, struct store **out, struct hr_error *e);
int memory_store_open(const char *url, const char *options, struct store **out, struct hr_error *e);
int http_store_open(const char *url, const char *options, const struct store_env *env,
                    struct store **out, struct hr_error *e);
int s3_store_open(const char *url, const char *options, const struct store_env *env,
                  struct store **out, struct hr_error *e);
int gcs_store_open(const char *url, const char *options, const struct store_env *env,
                   struct store **out, struct hr_error *e);
int azure_store_open(const char *url, const char *options, const struct store_env *env,
                     struct store **out, struct hr_error *e);

#endif
