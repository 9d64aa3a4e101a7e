/* JSON Web Tokens that this machine signs: RS256 of RFC 7518 in the compact form of RFC 7515. */
#ifndef STORE_JWT_H
#define STORE_JWT_H
#include "store/crypto.h"

/* Append header.claims.signature. `claims` is a JSON object; `key_id` becomes the header's "kid",
 * NULL: none. Errors as crypto_rsa_sha256, or HR_ENOMEM. */
int jwt_rs256(const struct crypto *c, const char *pem, const char *key_id, const char *claims,
              size_t n, struct buf *out, struct hr_error *e);

#endif
