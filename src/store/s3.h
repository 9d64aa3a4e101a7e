/* Inside the S3 store: s3.c (opening, requests), s3_judge.c (answers), s3_list.c (listings). */
#ifndef STORE_S3_H
#define STORE_S3_H
#include <stdatomic.h>

#include "store/anonymous.h"
#include "store/clock.h"
#include "store/cred.h"
#include "store/remote.h"
#include "store/s3_options.h"
#include "store/sign_v4.h"
#include "store/sum.h"

#define S3_HEADERS_SIGNED 8 /* the user's own x-amz-… */

/* An address in use: replaced when an answer names another region. Old ones stay until the store
 * goes, since requests under way may read them; there are as many as regions were named. */
struct s3_at {
    struct s3_at *older;
    uint32_t number;
    struct s3_address address;
};

struct s3_store {
    struct remote remote;
    struct arena arena; /* what the options point to */
    struct s3_options options;
    struct s3_place place;
    struct net *net; /* for the log; the client holds it */
    char *shown;     /* "s3://bucket/prefix" */
    char *prefix;    /* as it stands in keys, without '/' at its end; "" for the whole bucket */
    struct buf path; /* the same encoded, with a '/' before it; empty if there is none */
    struct crypto crypto;
    struct cred *cred; /* NULL: anonymous by request */
    struct sign_v4_key key;
    struct sign_v4_header signed_headers[S3_HEADERS_SIGNED + 2];
    size_t n_signed; /* of them; one more, for the checksum, where whole objects are asked for */
    struct sum sum;
    struct {
        _Atomic(struct s3_at *) at;
        _Atomic int search; /* enum s3_search */
        struct server_clock clock;
        struct anonymous anonymous;
        pthread_mutex_t lock; /* of replacing `at` */
    } shared;
};

/* What a try was made with: in net_wire's mark, for the judge. The low bits of each will do. */
struct s3_mark {
    uint32_t generation; /* of the credential */
    uint16_t address;
    uint8_t clocks;
    bool head; /* the bucket was asked where it is */
    bool listing;
};
static inline uint64_t s3_mark_pack(struct s3_mark m)
{
    return (uint64_t)m.generation << 32 | (uint64_t)m.address << 16 | (uint64_t)m.clocks << 8 |
           (uint64_t)m.listing << 1 | m.head;
}
static inline struct s3_mark s3_mark_unpack(uint64_t v)
{
    return (struct s3_mark){(uint32_t)(v >> 32), (uint16_t)(v >> 16), (uint8_t)(v >> 8),
                            (v & 1) != 0, (v & 2) != 0};
}

/* Some answers say that a bucket is elsewhere, but not where; a HEAD of the bucket is asked then,
 * once. Other requests wait for it. */
enum s3_search { S3_SEARCH_NONE, S3_SEARCH_UNDER_WAY, S3_SEARCH_OVER };

/* Requests go to this region from now on. 0 or a code (nothing has changed then). */
int s3_move(struct s3_store *s, const char *region, size_t n, struct hr_error *e);

/* Ask the bucket where it is. False: that was done before, or cannot be. */
bool s3_search(struct s3_store *s);

enum net_verdict s3_judge(void *arg, const struct net_reply *reply, struct net_saying *say);
int s3_list(struct remote *r, const char *prefix, char **names, size_t *size, struct hr_error *e);
/* The same for any store that is asked as S3 is: `shown` for errors; `root`: where its keys begin,
 * without '/' at the end. */
int s3_list_below(struct remote *r, const char *shown, const char *root, const char *prefix,
                  char **names, size_t *size, struct hr_error *e);

#endif
