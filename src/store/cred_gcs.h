/* Credentials of Google Cloud.
 *
 * What the options name, alone; or else, in google-auth's order: the file of
 * GOOGLE_APPLICATION_CREDENTIALS (before it object_store's GOOGLE_SERVICE_ACCOUNT…), the file that
 * `gcloud auth application-default login` has written, the metadata server. The value's token is
 * a bearer token; with HMAC keys its id and secret sign (sign_v4.h).
 *
 * The environment is copied by gcs_env_read in the caller's thread; files are read anew at every
 * fetch. */
#ifndef STORE_CRED_GCS_H
#define STORE_CRED_GCS_H
#include "base/arena.h"
#include "net/net.h"
#include "store/cred.h"
#include "store/options.h"
#include "store/shared.h"

/* What the environment says to GCS stores; NULL: nothing. */
struct gcs_env {
    const char *emulator;         /* STORAGE_EMULATOR_HOST */
    const char *project;          /* GOOGLE_CLOUD_PROJECT, GCLOUD_PROJECT */
    const char *key;              /* GOOGLE_SERVICE_ACCOUNT_KEY: the JSON itself */
    const char *key_file;         /* GOOGLE_SERVICE_ACCOUNT, GOOGLE_SERVICE_ACCOUNT_PATH */
    const char *application_file; /* GOOGLE_APPLICATION_CREDENTIALS */
    const char *gcloud_file;      /* in CLOUDSDK_CONFIG, or ~/.config/gcloud */
    const char *home;             /* for "~/…" */
    const char *metadata;         /* GCE_METADATA_HOST, GCE_METADATA_ROOT, GCE_METADATA_IP */
    bool no_metadata;             /* NO_GCE_CHECK */
    enum maybe anonymous;         /* GOOGLE_SKIP_SIGNATURE */
};
/* The strings are copied into `a`. */
int gcs_env_read(struct gcs_env *out, struct arena *a, struct hr_error *e);

struct gcs_config {
    /* At most one of these four kinds; none: the chain is asked. */
    const char *id, *secret; /* HMAC keys */
    const char *bearer;      /* an access token */
    const char *file, *text; /* JSON as in the files above */
    bool metadata_only;
    const struct gcs_env *env;
    bool anonymous;    /* where there is no credential: cred_config */
    bool late_machine; /* then ask the metadata server only once anonymous requests are refused */
    struct store_shared *shared;     /* NULL: nothing is shared */
    const char *what;                /* for errors: "gs://bucket" */
    struct net *net;                 /* NULL: threads of its own */
    const struct net_policy *policy; /* NULL: NET_POLICY */
    const char *ca_file;             /* NULL: as the environment says */
    void (*ready)(void *ready_arg);  /* cred_config */
    void *ready_arg;
    void (*log)(void *log_arg, int level, const char *text); /* may be NULL */
    void *log_arg;
};
/* Everything in *c is copied, but for net (a reference) and the callbacks. Asks nothing yet. */
int cred_gcs_new(const struct gcs_config *c, struct cred **out, struct hr_error *e);

#endif
