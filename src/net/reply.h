/* What a server answered, and whether those are the bytes that were asked for. Pure.
 *
 * libcurl trusts servers: a 200 with the whole object and a 206 with other bytes both come back
 * as success. So the reply is checked here against what was wanted, before the first byte is
 * kept: status, Content-Range start, end and total, length known in advance. A 200 to a ranged
 * request is sliced when it is complete and not much larger than the slice
 * (arrow-rs-object-store#806; source-cooperative/data.source.coop#57: suffix ranges ignored). */
#ifndef NET_REPLY_H
#define NET_REPLY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REPLY_ETAG_MAX 128

struct reply {
    int status;                  /* 0: no reply yet */
    bool has_length, bad_length; /* Content-Length; bad: unreadable or two that differ */
    bool chunked;
    bool encoded; /* Content-Encoding other than identity */
    /* Content-Range; range_empty: no bytes but perhaps a total, as in a 416 */
    bool has_range, range_empty, has_total, bad_range;
    uint64_t length, first, last, total;
    char etag[REPLY_ETAG_MAX]; /* with quotes; "" if absent or longer (then only hashed) */
    bool has_etag, weak;
    uint64_t etag_hash;     /* of the text without a W/ in front, and of x-goog-generation */
    int64_t retry_after_ms; /* -1: none */
    const char *head;       /* all header lines, CRLF between; the caller's memory */
    size_t head_size;
};

/* Parse the status line and headers of one response. */
void reply_parse(struct reply *r, const char *head, size_t n);
/* Value of a header (its length in *size), or NULL. */
const char *reply_header(const struct reply *r, const char *name, size_t *size);
/* IMF-fixdate, the only form senders may generate: "Sun, 06 Nov 1994 08:49:37 GMT". Unix seconds. */
bool reply_date(const char *text, size_t n, int64_t *out);

/* What the caller wants of the object: all of it, its last `length` bytes, or [first, first +
 * length). */
enum want_kind { WANT_WHOLE, WANT_SUFFIX, WANT_RANGE };
struct want {
    enum want_kind kind;
    uint64_t first, length;
};
/* How to cut it out of the reply's body. */
struct slice {
    bool sized;          /* false: a chunked whole object, its size is known at the end */
    uint64_t skip, take; /* body bytes to drop, then to keep; what follows is dropped */
    uint64_t body;       /* bytes the body must have (if sized) */
    uint64_t first;      /* place of the kept bytes in the object */
    uint64_t total;      /* size of the object; 0 if unknown */
};
enum slice_verdict {
    SLICE_OK,
    SLICE_WRONG,  /* not what was asked for: worth one more try on another connection */
    SLICE_SHORT,  /* the object ends before the range does */
    SLICE_REFUSED /* this server cannot serve it: ranges ignored, compressed, no length */
};
/* For status 200, 206 and 416. `why` receives the reason when not SLICE_OK. */
enum slice_verdict reply_slice(const struct reply *r, const struct want *w, struct slice *out,
                               char *why, size_t n);

#endif
