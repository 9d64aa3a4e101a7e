/* Inside the GCS store: gcs.c (opening, requests), gcs_judge.c (answers), gcs_list.c (listings). */
#ifndef STORE_GCS_H
#define STORE_GCS_H
#include <stdatomic.h>

#include "store/anonymous.h"
#include "store/clock.h"
#include "store/cred.h"
#include "store/gcs_options.h"
#include "store/remote.h"
#include "store/s3_address.h"
#include "store/sign_v4.h"
#include "store/sum.h"

struct gcs_store {
    struct remote remote;
    struct arena arena; /* what the options point to */
    struct gcs_options options;
    struct s3_address address; /* of the bucket, in the form both APIs share */
    size_t root_size;          /* of address.path, what is before "/bucket" */
    char *bucket;
    char *shown;          /* "gs://bucket/prefix" */
    char *prefix;         /* as it stands in keys, without '/' at its end; "": the whole bucket */
    struct buf path;      /* the same encoded, with a '/' before it; empty if there is none */
    struct buf container; /* of the JSON API's listings: "/storage/v1/b/bucket/o" */
    struct crypto crypto; /* for HMAC keys */
    struct cred *cred;    /* NULL: anonymous by request */
    struct sign_v4_key key;
    struct sum sum;
    struct anonymous anonymous;
    struct server_clock clock; /* of signatures */
    struct net *net;           /* for the log; the client holds it */
};

/* What a try was made with: in net_wire's mark, for the judge. */
struct gcs_mark {
    uint32_t generation; /* of the credential */
    uint8_t clock;
    bool listing;
};
static inline uint64_t gcs_mark_pack(struct gcs_mark m)
{
    return (uint64_t)m.generation << 9 | (uint64_t)m.clock << 1 | m.listing;
}
static inline struct gcs_mark gcs_mark_unpack(uint64_t v)
{
    return (struct gcs_mark){(uint32_t)(v >> 9), (uint8_t)(v >> 1), (v & 1) != 0};
}

enum net_verdict gcs_judge(void *arg, const struct net_reply *reply, struct net_saying *say);
int gcs_list(struct remote *r, const char *prefix, char **names, size_t *size, struct hr_error *e);

#endif
