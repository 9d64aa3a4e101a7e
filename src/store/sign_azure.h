/* Shared Key: the signature that Azure Storage wants of who has an account's key.
 *
 * A pure function of request, account and key ("Authorize with Shared Key", Azure Storage REST API
 * reference): method, eleven standard headers, the x-ms- headers and the resource. Everything is
 * taken as it is sent, the path with its escapes; so the caller encodes and passes exactly that. */
#ifndef STORE_SIGN_AZURE_H
#define STORE_SIGN_AZURE_H
#include <stdint.h>

#include "store/crypto.h"

#define SIGN_AZURE_HEADERS    32 /* the most x-ms- headers that one request has */
#define SIGN_AZURE_PARAMETERS 32 /* … and parts of a query */

struct sign_azure_request {
    const char *method, *account;
    const char *path;  /* as sent, from the first '/' behind the host */
    const char *query; /* as sent, without '?'; NULL: none */
    /* "Name: value" lines, each ended by a NUL, x-ms-date among them: net_wire's. */
    const char *headers;
    size_t headers_size;
    const char *range, *if_match; /* headers that are sent besides; or NULL */
};
/* Append what is signed. HR_EINVAL for too many headers or parameters; HR_ENOMEM. */
int sign_azure_text(const struct sign_azure_request *r, struct buf *out, struct hr_error *e);
/* Append "SharedKey account:…", the value of the header Authorization. `key` in Base64, as the
 * portal shows it; HR_EINVAL when it is not. */
int sign_azure(const struct crypto *c, const struct sign_azure_request *r, const char *key,
               struct buf *out, struct hr_error *e);

#define SIGN_AZURE_DATE 30
/* "Sun, 06 Nov 1994 08:49:37 GMT", whatever the locale. */
void sign_azure_date(char out[SIGN_AZURE_DATE], int64_t unix_time);

#endif
