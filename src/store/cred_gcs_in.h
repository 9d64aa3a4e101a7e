/* The Google providers among themselves: the chain (cred_gcs.c), key files (cred_gcs_file.c), the
 * metadata server (cred_gcs_metadata.c). */
#ifndef STORE_CRED_GCS_IN_H
#define STORE_CRED_GCS_IN_H
#include "base/json.h"
#include "store/cred_gcs.h"
#include "store/meta.h"
#include "store/secret_file.h"

/* Reading is all that is ever done. */
#define GCS_SCOPE "https://www.googleapis.com/auth/devstorage.read_only"

struct gcs {
    struct arena arena;
    struct gcs_env env;      /* in the arena */
    struct cred_value given; /* HMAC keys or a token */
    char *text;              /* JSON given in the options; wiped */
    const char *file;
    struct meta *meta; /* NULL where nothing is asked */
    bool has_metadata; /* it has given a token: later it may fail, but is not absent */
    struct store_shared *shared;
    uint64_t seen; /* of shared_ask */
    struct cred_provider chain[3];
    size_t n;
};

/* As cred_provider.fetch. */
int gcs_metadata(struct gcs *g, struct cred_value *v, struct buf *why, struct hr_error *e);
/* A JSON credential of any kind: 1 and *v, or an error. `where` names it, its text is never
 * shown. */
int gcs_json(struct gcs *g, const char *text, size_t n, const char *where, struct cred_value *v,
             struct hr_error *e);
int gcs_file(struct gcs *g, const char *path, struct cred_value *v, struct hr_error *e);
/* An answer of OAuth 2.0 (RFC 6749 §5.1) into *v: 1 or an error. `where` names the server. */
int gcs_token_answer(const struct buf *body, const char *where, struct cred_value *v,
                     struct hr_error *e);

#endif
