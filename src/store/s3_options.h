/* What a user says about an S3 store: options in the spellings of s3fs and of object_store, the
 * environment, the profile. */
#ifndef STORE_S3_OPTIONS_H
#define STORE_S3_OPTIONS_H
#include "store/remote_options.h"
#include "store/s3_address.h"

struct s3_options {
    struct remote_options remote;
    const char *id, *secret, *token, *profile;
    const char *endpoint, *region; /* NULL: AWS's own; not known */
    const char *addressing;        /* "path", "virtual", "auto" */
    enum maybe anonymous, requester_pays, virtual_hosted, use_ssl, allow_http;
    const struct json *client, *config, *config_s3; /* client_kwargs, config_kwargs and its s3 */
    enum s3_style style;
};
/* Everything lives in `a`, or as long as the program. `shown` names the store in errors. */
int s3_options_read(struct s3_options *o, const char *json, const struct store_env *env,
                    const char *shown, struct arena *a, struct hr_error *e);

#endif
