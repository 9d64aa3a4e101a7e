/* Inside the Azure store: azure.c (opening, requests), azure_judge.c (answers), azure_list.c
 * (listings), azure_suffix.c (the ends of objects). */
#ifndef STORE_AZURE_H
#define STORE_AZURE_H
#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "store/anonymous.h"
#include "store/azure_options.h"
#include "store/clock.h"
#include "store/cred.h"
#include "store/crypto.h"
#include "store/remote.h"

/* Ranges, ETags and error codes as they are here came with 2011-08-18; names that XML cannot hold,
 * in listings, with 2021-02-12. */
#define AZURE_VERSION "2023-11-03"

struct azure_suffix;
LIST_HEAD(azure_suffix_list, azure_suffix);

struct azure_store {
    struct remote remote;
    struct arena arena; /* what the options point to */
    struct azure_options options;
    struct azure_url url;
    struct net *net;       /* for the log; the client holds it */
    char *shown;           /* "az://container/prefix" */
    struct buf base;       /* of all keys: origin, container and prefix, encoded */
    size_t container_size; /* of base, as far as the container */
    size_t origin_size;
    bool has_version; /* the user's headers say which x-ms-version */
    struct crypto crypto;
    struct cred *cred; /* NULL: anonymous by request */
    struct {
        struct server_clock clock;
        struct anonymous anonymous;
        pthread_mutex_t lock; /* of what follows */
        bool closed;
        struct azure_suffix_list suffixes; /* reads of suffixes under way */
    } shared;
};

/* What a try was made with: in net_wire's mark, for the judge. The low bits of each will do. */
struct azure_mark {
    uint32_t generation;  /* of the credential */
    uint8_t clocks, kind; /* kind: enum azure_kind */
    bool listing;
};
static inline uint64_t azure_mark_pack(struct azure_mark m)
{
    return (uint64_t)m.generation << 32 | (uint64_t)m.listing << 16 | (uint64_t)m.clocks << 8 |
           m.kind;
}
static inline struct azure_mark azure_mark_unpack(uint64_t v)
{
    return (struct azure_mark){(uint32_t)(v >> 32), (uint8_t)(v >> 8), (uint8_t)v,
                               (v >> 16 & 1) != 0};
}

/* When a SAS ends: its se, as Unix seconds. False: it does not say. */
bool azure_sas_end(const char *sas, int64_t *unix_s);

enum net_verdict azure_judge(void *arg, const struct net_reply *reply, struct net_saying *say);
int azure_list(struct remote *r, const char *prefix, char **names, size_t *size,
               struct hr_error *e);

/* As remote_ops, but that ends of objects are asked for by their place. */
extern const struct store_ops azure_ops;

#endif
