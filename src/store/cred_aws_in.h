/* The AWS providers among themselves: what a user has set up, and who makes credentials of it. */
#ifndef STORE_CRED_AWS_IN_H
#define STORE_CRED_AWS_IN_H
#include <stdatomic.h>

#include "base/json.h"
#include "store/cred_aws.h"
#include "store/ini.h"
#include "store/meta.h"
#include "store/secret_file.h"

/* ---- cred_aws_user.c: the environment and the files of ~/.aws ---------------------------------- */

struct aws_user {
    struct arena arena;
    char **environment; /* a copy; NULL-terminated */
    const char *home;   /* NULL: unknown */
    const char *profile;
    bool named;    /* the profile is the user's choice, and must exist */
    bool explicit; /* … in code: the environment's credentials do not count */
};
int aws_user_init(struct aws_user *u, const char *profile, struct hr_error *e);
void aws_user_dispose(struct aws_user *u);
/* NULL when absent or empty. */
const char *aws_env(const struct aws_user *u, const char *name);
bool aws_env_true(const struct aws_user *u, const char *name);

struct aws_files {
    struct arena arena;
    struct ini credentials, config;
    const char *credentials_path, *config_path;
    bool has_credentials, has_config; /* the file exists */
};
int aws_files_read(struct aws_files *f, const struct aws_user *u, struct hr_error *e);
void aws_files_dispose(struct aws_files *f);
bool aws_profile_exists(const struct aws_files *f, const char *profile);
/* HR_EINVAL where the user has named a profile that is in neither file. */
int aws_user_check(const struct aws_user *u, const struct aws_files *f, struct hr_error *e);
/* The credentials file counts before the config file. */
const char *aws_profile_get(const struct aws_files *f, const char *profile, const char *name);
const struct ini_section *aws_config_section(const struct aws_files *f, const char *profile);
/* The endpoint that environment or profile give for a service ("sts": AWS_ENDPOINT_URL_STS,
 * AWS_ENDPOINT_URL, the profile's services section, its endpoint_url) into *url, in `a`; NULL: the
 * service's own. 0 or HR_ENOMEM: no secret may go elsewhere for want of memory. */
int aws_endpoint(const struct aws_user *u, const struct aws_files *f, const char *profile,
                 const char *service, struct arena *a, const char **url, struct hr_error *e);

/* "2026-01-02T03:04:05Z", also with a fraction, an offset, or UTC; false: no such time. */
bool aws_time(const char *text, int64_t *unix_s);

/* ---- the chain --------------------------------------------------------------------------------- */

struct aws {
    struct aws_user user;
    struct cred_value given; /* explicit credentials */
    const char *region;      /* NULL: unknown */
    struct meta *meta;
    _Atomic bool stopped;
    struct store_shared *shared;
    uint64_t seen_container, seen_instance; /* of shared_ask */
    struct cred_provider chain[8];
    size_t n;
};

/* A provider's own kind of call: as cred_provider.fetch, for the profile that is asked. */
int aws_environment(struct aws *a, struct cred_value *v, struct buf *why, struct hr_error *e);
int aws_container(struct aws *a, struct cred_value *v, struct buf *why, struct hr_error *e);
int aws_instance(struct aws *a, struct cred_value *v, struct buf *why, struct hr_error *e);
/* role_arn with a source, of the user's profile. */
int aws_role(struct aws *a, struct cred_value *v, struct buf *why, struct hr_error *e);
/* Web identity, of the environment (unless the profile was explicit) or the profile. */
int aws_web_identity(struct aws *a, struct cred_value *v, struct buf *why, struct hr_error *e);
/* SSO, keys in the files and credential_process of the user's profile. */
int aws_profile(struct aws *a, struct cred_value *v, struct buf *why, struct hr_error *e);

/* Parts of a profile; `p` is its name. */
int aws_sso(struct aws *a, const struct aws_files *f, const char *p, struct cred_value *v,
            struct hr_error *e);
int aws_process(struct aws *a, const struct aws_files *f, const char *p, struct cred_value *v,
                struct hr_error *e);

/* ---- cred_aws_sso_token.c ---------------------------------------------------------------------- */

struct aws_sign_on {
    const char *profile;
    const char *session, *start_url, *region; /* session NULL: the old form */
};
/* The access token of single sign-on, in `arena`; renewed near its end, where that can be. */
int aws_sso_token(struct aws *a, const struct aws_files *f, const struct aws_sign_on *on,
                  struct arena *arena, const char **token, struct hr_error *e);
/* The error that says to run `aws sso login`. */
int aws_sso_log_in(const struct aws_sign_on *on, const char *why, struct hr_error *e);

/* ---- cred_aws_sts.c ---------------------------------------------------------------------------- */

struct aws_role_request {
    const char *arn, *session, *external_id, *duration; /* but arn may be NULL */
    const char *region;                                 /* NULL: the global endpoint */
    const char *endpoint;                               /* NULL: of the region */
    const struct cred_value *source;                    /* signs it … */
    const char *token;                                  /* … or a web identity does instead */
};
int aws_sts(struct aws *a, const struct aws_role_request *r, struct cred_value *v,
            struct hr_error *e);

/* ---- answers ----------------------------------------------------------------------------------- */

/* Names of the members that a service uses. */
struct aws_json_names {
    const char *id, *secret, *token, *until; /* until "": looked at by the caller */
    bool must_end, must_token;
};
/* A JSON answer into *v: 1 or an error that says what is missing; `where` names the answer. */
int aws_json_value(const struct json *object, const struct aws_json_names *names, const char *where,
                   struct cred_value *v, struct hr_error *e);

#endif
