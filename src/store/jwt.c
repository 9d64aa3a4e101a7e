/* See jwt.h. */
#include "store/jwt.h"

#include <string.h>

/* Only the parts in front of the signature, which is over exactly these bytes. */
static int add_signing_input(const char *key_id, const char *claims, size_t n, struct buf *out)
{
    struct buf header;
    buf_init(&header);
    buf_puts(&header, "{\"alg\":\"RS256\",\"typ\":\"JWT\"");
    if (key_id) {
        buf_puts(&header, ",\"kid\":");
        buf_json_string(&header, key_id, strlen(key_id));
    }
    buf_putc(&header, '}');
    int rc = header.failed ? -1 : crypto_base64_url(out, header.data, header.size);
    rc |= buf_putc(out, '.');
    rc |= crypto_base64_url(out, claims, n);
    buf_dispose(&header);
    return rc;
}

int jwt_rs256(const struct crypto *c, const char *pem, const char *key_id, const char *claims,
              size_t n, struct buf *out, struct hr_error *e)
{
    struct buf signature;
    size_t from = out->size;
    if (add_signing_input(key_id, claims, n, out) < 0)
        return error_nomem(e, n, "a token");
    buf_init(&signature);
    int rc = crypto_rsa_sha256(c, pem, out->data + from, out->size - from, &signature, e);
    if (rc == 0 &&
        (buf_putc(out, '.') < 0 || crypto_base64_url(out, signature.data, signature.size) < 0))
        rc = error_nomem(e, n, "a token");
    buf_dispose(&signature);
    return rc;
}
