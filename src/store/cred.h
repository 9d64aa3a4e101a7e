/* A credential that renews itself.
 *
 * A chain of providers is asked in order, lazily, by one thread at a time that lives only as long
 * as the asking; builders of requests (net.h) take what there is with cred_get, which never
 * blocks, and wait with NET_WAIT where there is nothing yet. A credential that expires is renewed
 * ahead of that, in the background, and the old one used while it is valid; a failed renewal is
 * repeated, and is an error only once the old one is no longer valid. Secrets are in struct
 * cred_value and nowhere else: not in errors, logs or states. */
#ifndef STORE_CRED_H
#define STORE_CRED_H
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

/* One credential. Fields that a kind does not have are NULL. */
struct cred_value {
    char *id;      /* AWS access key id, Azure account */
    char *secret;  /* AWS secret key, Azure account key */
    char *token;   /* AWS session token; bearer token; SAS */
    int64_t until; /* Unix seconds; 0: does not expire */
};
/* Copies of the strings (NULL stays NULL). 0 or HR_ENOMEM. */
int cred_value_set(struct cred_value *v, const char *id, const char *secret, const char *token,
                   int64_t until, struct hr_error *e);
void cred_value_clear(struct cred_value *v); /* wipes and frees */
/* When a value that was fetched at `now` and ends at `until` is to be renewed; Unix ms. */
int64_t cred_renew_at(int64_t now, int64_t until);

/* One provider of a chain. */
struct cred_provider {
    const char *name; /* as a person knows it: "environment", "profile dev" */
    /* May block, but ends by itself in bounded time. 1: *v is filled; 0: not configured here, and
     * *why (may stay empty) says what was looked for; negative: configured, but failed. `arg` is
     * the chain's. */
    int (*fetch)(void *arg, struct cred_value *v, struct buf *why, struct hr_error *e);
};

struct cred_config {
    const struct cred_provider *chain; /* lives as long as the credential */
    size_t n;
    void *arg;
    void (*release)(void *arg); /* of arg, when nothing uses it any more, on any thread */
    void (*stop)(void *arg); /* the credential is closed: a fetch under way should end; or NULL */
    void (*ready)(void *ready_arg); /* something has changed: builders may ask again */
    void *ready_arg;
    const char *what; /* for errors: "s3://bucket" */
    /* What it means when no provider is configured: false: an error that lists them all; true: an
     * anonymous credential (all fields NULL), said once in the log. Once there was a credential, it
     * is an error in any case: what was asked for by somebody is not asked for by nobody. */
    bool anonymous;
    /* So many providers at the chain's end are asked only once an anonymous request was refused
     * (cred_denied): those that cost a wait wherever there are none. Only where `anonymous`. */
    size_t n_late;
    void (*log)(void *log_arg, int level, const char *text); /* may be NULL */
    void *log_arg;
};

struct cred;
struct cred *cred_new(const struct cred_config *c, struct hr_error *e);
/* No `ready` begins after this returns; a fetch under way is told to stop and ends by itself. */
void cred_close(struct cred *c);

/* A credential in use: counted, so that it stays whole while a request is signed with it. */
struct cred_use {
    const struct cred_value *value;
    uint64_t generation;
    void *hidden;
};
/* 0 and *use (to be given back with cred_done); NET_WAIT; or a negative code. Never blocks. */
int cred_get(struct cred *c, struct cred_use *use, struct hr_error *e);
void cred_done(struct cred_use *use);
/* The server refused this generation (expired, revoked). True: another may be had, ask again;
 * false: it is the newest, cannot be renewed, or was renewed a moment ago. */
bool cred_refused(struct cred *c, uint64_t generation);
/* The server refused an anonymous request of this generation. True: there are providers that have not
 * been asked yet; they are now, ask again. */
bool cred_denied(struct cred *c, uint64_t generation);
/* Which providers were asked and why none applied, once an anonymous credential came of that; else
 * NULL. For the error of a request that was refused for want of a credential. Lives as long as c. */
const char *cred_tried(struct cred *c);

/* NULL, or what is wrong with a key, secret or token as a user or a file gives it: "ends in a line break". */
const char *cred_fault(const char *text);

#endif
