/* What a user says about a GCS store: options in the spellings of gcsfs and of object_store, and
 * the environment. */
#ifndef STORE_GCS_OPTIONS_H
#define STORE_GCS_OPTIONS_H
#include "store/cred_gcs.h"
#include "store/remote_options.h"

struct gcs_options {
    struct remote_options remote;
    struct gcs_env env;
    const char *endpoint; /* NULL: Google's own */
    const char *id, *secret, *bearer, *file, *text;
    const char *payer; /* the project that pays for requests; NULL: the bucket's */
    enum maybe anonymous;
    bool metadata_only, emulator;
    struct { /* as given; the fields above are made of these */
        const struct json *token, *requester_pays;
        const char *project, *user_project, *access;
        enum maybe allow_http;
    } said;
};
/* Everything lives in `a`, or as long as the program. `shown` names the store in errors. */
int gcs_options_read(struct gcs_options *o, const char *json, const struct store_env *env,
                     const char *shown, struct arena *a, struct hr_error *e);

#endif
