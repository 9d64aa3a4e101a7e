/* Where a bucket is: URL, Host and path of its requests, from its name, the endpoint, the region
 * and the style of addressing. Pure. */
#ifndef STORE_S3_ADDRESS_H
#define STORE_S3_ADDRESS_H
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum s3_style {
    S3_STYLE_AUTO,
    S3_STYLE_PATH,   /* https://host/bucket/key */
    S3_STYLE_VIRTUAL /* https://bucket.host/key */
};
struct s3_place {
    const char *bucket;
    const char *endpoint; /* URL, or a host with perhaps a port; NULL: AWS's own, by region */
    const char *scheme;   /* where the endpoint has none: "https" or "http" */
    const char *suffix;   /* of AWS's endpoints: "amazonaws.com" */
    /* Auto: virtual where AWS's certificates cover it (no dots in the bucket's name) and where it
     * is a name at all; path for endpoints of the user, which seldom have the DNS entries. */
    enum s3_style style;
};
struct s3_address {
    char *region;
    char *origin; /* "https://host[:port]" */
    char *host;   /* as the Host header has it: lower case, no port that is the scheme's own */
    char *path;   /* of the bucket: "", or "/bucket"; with the endpoint's own path before it */
    bool tls;
};
/* HR_EINVAL for an endpoint that is no URL of a server. */
int s3_address_init(struct s3_address *a, const struct s3_place *place, const char *region,
                    struct hr_error *e);
void s3_address_dispose(struct s3_address *a);

/* Names that any S3-like service could have. HR_EINVAL; HR_EUNSUPPORTED for directory buckets (S3
 * Express) and access point ARNs, saying what to use instead. `shown` begins the error. */
int s3_bucket_check(const char *bucket, const char *shown, struct hr_error *e);
/* Lower-case letters, digits and '-': what may become part of a host name. */
bool s3_region_ok(const char *region, size_t n);
/* The region in the host name of one of AWS's endpoints ("b.s3.eu-west-1.amazonaws.com",
 * "s3-eu-west-1.…"): its place in `host` and size; NULL if there is none. */
const char *s3_region_of_host(const char *host, size_t n, size_t *size);

/* "http://host/bucket": the bucket stands in the endpoint already, as consoles show it; once too often, most likely. */
bool s3_endpoint_names(const char *endpoint, const char *bucket);

#endif
