/* Credentials of AWS and of what speaks its protocol.
 *
 * In botocore's order, so that a program finds here what its user's other tools find: explicit
 * keys, or else the environment; the profile's role (role_arn with source_profile or
 * credential_source); web identity; single sign-on; the shared credentials file;
 * credential_process; the config file; the container; the instance. An explicit profile leaves
 * out the environment. docs/internals/credentials.md has the details.
 *
 * The environment is copied when cred_aws_new or aws_settings_read is called, in the caller's
 * thread; files (~/.aws, tokens) are read anew at every fetch. */
#ifndef STORE_CRED_AWS_H
#define STORE_CRED_AWS_H
#include "base/arena.h"
#include "net/net.h"
#include "store/cred.h"
#include "store/shared.h"

struct aws_config {
    const char *id, *secret, *token; /* explicit; id NULL: the chain is asked */
    const char *profile;             /* NULL: AWS_PROFILE, else "default" */
    const char *region;              /* of STS; NULL: as aws_settings finds it */
    bool anonymous;                  /* where there is no credential: cred_config */
    bool late_machine; /* then ask the instance only once anonymous requests are refused */
    struct store_shared *shared;     /* NULL: nothing is shared */
    const char *what;                /* for errors: "s3://bucket" */
    struct net *net;                 /* NULL: threads of its own */
    const struct net_policy *policy; /* NULL: NET_POLICY */
    const char *ca_file;             /* NULL: as the environment says */
    void (*ready)(void *ready_arg);  /* cred_config */
    void *ready_arg;
    void (*log)(void *log_arg, int level, const char *text); /* may be NULL */
    void *log_arg;
};
/* Everything in *c is copied, but for net (a reference) and the callbacks. Asks nothing yet. */
int cred_aws_new(const struct aws_config *c, struct cred **out, struct hr_error *e);

/* What else environment and profile say. NULL: nothing. */
struct aws_settings {
    const char *region;           /* AWS_REGION, AWS_DEFAULT_REGION, profile */
    const char *endpoint_url;     /* of S3: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, profile */
    const char *addressing_style; /* profile: s3.addressing_style */
    const char *ca_file;          /* AWS_CA_BUNDLE, profile: ca_bundle */
};
/* The strings live in `a`. A profile that was named, here or by AWS_PROFILE, and is in no file is
 * an error. */
int aws_settings_read(const char *profile, struct arena *a, struct aws_settings *out,
                      struct hr_error *e);

/* The DNS suffix of a region's services: "amazonaws.com", "amazonaws.com.cn". */
const char *aws_dns_suffix(const char *region);

#endif
