/* See anonymous.h. */
#include "store/anonymous.h"

#include <stdatomic.h>

#include "base/buf.h"
#include "base/mem.h"

const char *anonymous_text(struct anonymous *made, struct cred *cred, const char *closed)
{
    const char *text = atomic_load(&made->text), *tried = cred ? cred_tried(cred) : NULL,
               *none = NULL;
    if (text || (cred && !tried))
        return text;
    struct buf b;
    buf_init(&b);
    if (cred)
        buf_printf(&b,
                   "no credentials were found, so the request was anonymous, and %s; looked at: %s",
                   closed, tried);
    else
        buf_printf(&b, "requests are anonymous; if %s, open it with credentials instead of anon",
                   closed);
    text = buf_take(&b);
    buf_dispose(&b);
    if (text && !atomic_compare_exchange_strong(&made->text, &none, text)) {
        mem_free((char *)text);
        text = none;
    }
    return text;
}

void anonymous_dispose(struct anonymous *made)
{
    mem_free((char *)atomic_load(&made->text));
}
