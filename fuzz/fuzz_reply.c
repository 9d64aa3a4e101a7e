/* Reply headers: whatever a server sends is parsed without reading past it, and a reply that is
 * accepted promises exactly the bytes that were asked for, inside the body and inside the
 * object. The first three bytes of an input choose what was asked for; the same text is then
 * taken for a URL. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/reply.h"
#include "net/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_accepted(const struct want *w, const struct slice *s)
{
    if (!s->sized) {
        if (w->kind != WANT_WHOLE)
            __builtin_trap();
        return;
    }
    if (s->skip > s->body || s->take > s->body - s->skip)
        __builtin_trap();
    if (s->total && (s->first > s->total || s->take > s->total - s->first))
        __builtin_trap();
    if (w->kind == WANT_RANGE && (s->first != w->first || s->take != w->length))
        __builtin_trap();
    if (w->kind == WANT_SUFFIX && s->take > w->length)
        __builtin_trap();
    if (w->kind == WANT_WHOLE && (s->skip || s->first))
        __builtin_trap();
}

/* A line break would begin a header of its own, a blank end the URL. */
static void check_sendable(const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s <= ' ')
            __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 3)
        return 0;
    struct want w = {
        .kind = data[0] % 3, .first = (uint64_t)data[1] * 16, .length = (uint64_t)data[2] + 1};
    struct reply r;
    struct slice s;
    char why[256] = "", shown[64];
    reply_parse(&r, (const char *)data + 3, n - 3);
    enum slice_verdict v = reply_slice(&r, &w, &s, why, sizeof why);
    if (v == SLICE_OK)
        check_accepted(&w, &s);
    else if (!why[0])
        __builtin_trap();
    char *text = strndup((const char *)data + 3, n - 3);
    struct url u;
    url_redact(text, shown, sizeof shown);
    if (url_parse(text, &u, NULL) == 0) {
        check_sendable(u.base);
        check_sendable(u.query);
        url_dispose(&u);
    }
    free(text);
    return 0;
}
