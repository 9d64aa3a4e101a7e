/* What the environment says to S3 stores, besides what all of AWS's tools agree on (cred_aws.h):
 * names that s3fs, object_store and GDAL read. */
#ifndef STORE_CRED_S3_ENV_H
#define STORE_CRED_S3_ENV_H
#include "base/arena.h"
#include "base/error.h"
#include "store/options.h"

struct s3_env {
    const char *endpoint;      /* AWS_ENDPOINT, AWS_S3_ENDPOINT; NULL: none */
    enum maybe anonymous;      /* AWS_SKIP_SIGNATURE, AWS_NO_SIGN_REQUEST */
    enum maybe requester_pays; /* AWS_REQUEST_PAYER */
    enum maybe virtual_hosted; /* AWS_VIRTUAL_HOSTED_STYLE_REQUEST, AWS_VIRTUAL_HOSTING */
};
/* The strings are copied into `a`. */
int s3_env_read(struct s3_env *out, struct arena *a, struct hr_error *e);

#endif
