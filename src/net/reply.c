/* See reply.h. Header syntax: RFC 9110 §5, ranges §14, validators §8.8, Retry-After §10.2.3;
 * message framing: RFC 9112 §6. */
#include "net/reply.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/hash.h"

/* Larger answers to an ignored range are refused: reading them again for every chunk would hide
 * a useless store. */
#define SLICE_MAX_BODY  (16u << 20)
#define SLICE_MAX_RATIO 4

static bool number(const char **p, const char *end, uint64_t *out)
{
    uint64_t v = 0;
    const char *s = *p;
    if (s == end || *s < '0' || *s > '9')
        return false;
    for (; s < end && *s >= '0' && *s <= '9'; s++)
        if (__builtin_mul_overflow(v, (uint64_t)10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
            return false;
    *p = s;
    *out = v;
    return true;
}

static bool whole_number(const char *p, const char *end, uint64_t *out)
{
    return number(&p, end, out) && p == end;
}

static bool is_word(const char *p, const char *end, const char *word)
{
    size_t n = strlen(word);
    return (size_t)(end - p) == n && !strncasecmp(p, word, n);
}

/* Days since 1970-01-01 (proleptic Gregorian), so that no time zone and no locale is asked. */
static int64_t days_from_civil(int64_t y, int m, int d)
{
    y -= m <= 2;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t yoe = y - era * 400;
    int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

bool reply_date(const char *p, size_t n, int64_t *out)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    char text[32], month[4];
    int day, year, hour, minute, second;
    if (n >= sizeof text)
        return false;
    memcpy(text, p, n);
    text[n] = 0;
    if (sscanf(text, "%*3s, %2d %3s %4d %2d:%2d:%2d GMT", &day, month, &year, &hour, &minute,
               &second) != 6)
        return false;
    const char *at = strlen(month) == 3 ? strstr(months, month) : NULL;
    if (!at || (at - months) % 3)
        return false;
    *out = days_from_civil(year, (int)(at - months) / 3 + 1, day) * 86400 + hour * 3600 +
           minute * 60 + second;
    return true;
}

static void parse_length(struct reply *r, const char *p, const char *end)
{
    uint64_t v;
    if (!whole_number(p, end, &v) || v > INT64_MAX || (r->has_length && v != r->length))
        r->bad_length = true;
    else
        r->length = v;
    r->has_length = true;
}

/* "bytes 0-9/100", "bytes 0-9/ *", "bytes * /100" (without the blanks) */
static void parse_range(struct reply *r, const char *p, const char *end)
{
    r->bad_range = true;
    if (end - p < 6 || strncasecmp(p, "bytes", 5) || (p[5] != ' ' && p[5] != '='))
        return;
    p += 6;
    if (p < end && *p == '*') {
        p++;
        r->range_empty = true;
    } else {
        if (!number(&p, end, &r->first) || p == end || *p++ != '-' || !number(&p, end, &r->last) ||
            r->last < r->first || r->last == UINT64_MAX)
            return;
        r->has_range = true;
    }
    if (p == end || *p++ != '/')
        return;
    if (is_word(p, end, "*"))
        r->bad_range = false;
    else if (whole_number(p, end, &r->total) && (r->range_empty || r->total > r->last)) {
        r->has_total = true;
        r->bad_range = false;
    }
}

static void parse_etag(struct reply *r, const char *p, const char *end)
{
    if (end - p > 2 && p[0] == 'W' && p[1] == '/') {
        r->weak = true;
        p += 2;
    }
    if (p == end)
        return;
    r->has_etag = true;
    r->etag_hash = hash_bytes(p, (size_t)(end - p), 0);
    if ((size_t)(end - p) < sizeof r->etag) {
        memcpy(r->etag, p, (size_t)(end - p));
        r->etag[end - p] = 0;
    }
}

static void parse_retry_after(struct reply *r, const char *p, const char *end, const char *date,
                              size_t date_size)
{
    uint64_t v;
    int64_t at, now;
    if (whole_number(p, end, &v)) {
        r->retry_after_ms = v > 86400 ? 86400000 : (int64_t)v * 1000;
    } else if (reply_date(p, (size_t)(end - p), &at)) {
        if (!date ||
            !reply_date(date, date_size, &now)) /* against the server's own clock, not ours */
            return;
        r->retry_after_ms = at <= now ? 0 : at - now > 86400 ? 86400000 : (at - now) * 1000;
    }
}

static bool next_line(const char **p, const char *end, const char **line, const char **line_end)
{
    if (*p >= end)
        return false;
    const char *nl = memchr(*p, '\n', (size_t)(end - *p));
    *line = *p;
    *line_end = nl ? nl : end;
    *p = nl ? nl + 1 : end;
    while (*line_end > *line &&
           ((*line_end)[-1] == '\r' || (*line_end)[-1] == ' ' || (*line_end)[-1] == '\t'))
        (*line_end)--;
    return true;
}

/* Split "Name: value"; the value without the white space around it. */
static bool split_field(const char *line, const char *line_end, size_t *name, const char **value)
{
    const char *colon = memchr(line, ':', (size_t)(line_end - line));
    if (!colon)
        return false;
    *name = (size_t)(colon - line);
    *value = colon + 1;
    while (*value < line_end && (**value == ' ' || **value == '\t'))
        (*value)++;
    return true;
}

static bool named(const char *line, size_t n, const char *name)
{
    return strlen(name) == n && !strncasecmp(line, name, n);
}

const char *reply_header(const struct reply *r, const char *name, size_t *size)
{
    const char *p = r->head, *end = p + r->head_size, *line, *line_end, *value;
    size_t n;
    while (p && next_line(&p, end, &line, &line_end))
        if (split_field(line, line_end, &n, &value) && named(line, n, name)) {
            *size = (size_t)(line_end - value);
            return value;
        }
    return NULL;
}

void reply_parse(struct reply *r, const char *head, size_t size)
{
    *r = (struct reply){.retry_after_ms = -1, .head = head, .head_size = size};
    const char *p = head, *end = head + size, *line, *line_end, *value;
    uint64_t generation = 0;
    size_t n;
    if (next_line(&p, end, &line, &line_end)) {
        const char *code = memchr(line, ' ', (size_t)(line_end - line));
        uint64_t status = 0;
        if (code && code++ && number(&code, line_end, &status) && status < 1000)
            r->status = (int)status;
    }
    while (next_line(&p, end, &line, &line_end)) {
        if (!split_field(line, line_end, &n, &value))
            continue;
        if (named(line, n, "content-length"))
            parse_length(r, value, line_end);
        else if (named(line, n, "content-range"))
            parse_range(r, value, line_end);
        else if (named(line, n, "transfer-encoding"))
            r->chunked |= line_end - value >= 7 && !strncasecmp(line_end - 7, "chunked", 7);
        else if (named(line, n, "content-encoding"))
            r->encoded |= value < line_end && !is_word(value, line_end, "identity");
        else if (named(line, n, "etag"))
            parse_etag(r, value, line_end);
        else if (named(line, n, "x-goog-generation"))
            generation = hash_bytes(value, (size_t)(line_end - value), 1);
        else if (named(line, n, "retry-after")) {
            size_t date_size = 0;
            const char *date = reply_header(r, "date", &date_size);
            parse_retry_after(r, value, line_end, date, date_size);
        }
    }
    /* Of Google's objects the ETag may be a hash of the contents; the generation is the version. */
    if (generation) {
        r->has_etag = true;
        r->etag_hash ^= generation;
    }
    if (r->chunked) /* RFC 9112 §6.3: Transfer-Encoding overrides Content-Length */
        r->has_length = r->bad_length = false;
}

#define SAY(verdict, ...) (snprintf(why, n, __VA_ARGS__), (verdict))

/* The whole object came although a part was asked for. */
static enum slice_verdict slice_whole_reply(const struct reply *r, const struct want *w,
                                            struct slice *out, char *why, size_t n)
{
    if (!r->has_length)
        return SAY(SLICE_REFUSED,
                   "the server ignores Range requests and sent an object of unknown length");
    uint64_t total = r->length, first, take, end;
    if (w->kind == WANT_SUFFIX) {
        take = w->length < total ? w->length : total;
        first = total - take;
    } else {
        first = w->first;
        take = w->length;
        if (__builtin_add_overflow(first, take, &end) || end > total)
            return SAY(SLICE_SHORT,
                       "the object has %" PRIu64 " bytes, but bytes %" PRIu64 "-%" PRIu64
                       " were asked for",
                       total, w->first, w->first + w->length - 1);
    }
    if (total > SLICE_MAX_BODY && total / SLICE_MAX_RATIO > take)
        return SAY(SLICE_REFUSED,
                   "the server ignores Range requests: it sent all %" PRIu64
                   " bytes instead of %" PRIu64,
                   total, take);
    *out = (struct slice){
        .sized = true, .skip = first, .take = take, .body = total, .first = first, .total = total};
    return SLICE_OK;
}

static enum slice_verdict slice_partial(const struct reply *r, const struct want *w,
                                        struct slice *out, char *why, size_t n)
{
    if (w->kind == WANT_WHOLE)
        return SAY(SLICE_WRONG, "206 Partial Content to a request without Range");
    if (!r->has_range || r->bad_range)
        return SAY(SLICE_WRONG, "206 Partial Content without a valid Content-Range");
    uint64_t got = r->last - r->first + 1;
    if (w->kind == WANT_SUFFIX) {
        if (!r->has_total)
            return SAY(SLICE_REFUSED,
                       "206 Partial Content of a suffix without the size of the object");
        uint64_t take = w->length < r->total ? w->length : r->total;
        if (r->first != r->total - take || got != take)
            return SAY(SLICE_WRONG,
                       "asked for the last %" PRIu64 " bytes, got %" PRIu64 "-%" PRIu64
                       " of %" PRIu64,
                       w->length, r->first, r->last, r->total);
    } else if (r->first != w->first || got != w->length) {
        if (r->first == w->first && got < w->length && r->has_total && r->last + 1 == r->total)
            return SAY(SLICE_SHORT,
                       "the object has %" PRIu64 " bytes, but bytes %" PRIu64 "-%" PRIu64
                       " were asked for",
                       r->total, w->first, w->first + w->length - 1);
        return SAY(SLICE_WRONG, "asked for bytes %" PRIu64 "-%" PRIu64 ", got %" PRIu64 "-%" PRIu64,
                   w->first, w->first + w->length - 1, r->first, r->last);
    }
    if (r->has_length && r->length != got)
        return SAY(SLICE_WRONG, "Content-Range has %" PRIu64 " bytes but Content-Length %" PRIu64,
                   got, r->length);
    if (!r->has_length && !r->chunked)
        return SAY(
            SLICE_REFUSED,
            "the body has no length (neither Content-Length nor chunked): a cut would not show");
    *out = (struct slice){
        .sized = true, .take = got, .body = got, .first = r->first, .total = r->total};
    return SLICE_OK;
}

/* 416: for the suffix of an empty object that is the right answer, else the object ends before
 * the range. */
static enum slice_verdict slice_unsatisfied(const struct reply *r, const struct want *w,
                                            struct slice *out, char *why, size_t n)
{
    bool sized = r->range_empty && r->has_total;
    if (w->kind == WANT_SUFFIX && sized && r->total == 0) {
        *out = (struct slice){.sized = true};
        return SLICE_OK;
    }
    if (w->kind == WANT_RANGE && sized)
        return SAY(SLICE_SHORT,
                   "the object has %" PRIu64 " bytes, but bytes %" PRIu64 "-%" PRIu64
                   " were asked for",
                   r->total, w->first, w->first + w->length - 1);
    return SAY(SLICE_SHORT, "the object ends before the range (416 Range Not Satisfiable)");
}

enum slice_verdict reply_slice(const struct reply *r, const struct want *w, struct slice *out,
                               char *why, size_t n)
{
    *out = (struct slice){0};
    if (r->status == 416)
        return slice_unsatisfied(r, w, out, why, n);
    if (r->encoded)
        return SAY(
            SLICE_REFUSED,
            "the server sent it compressed (Content-Encoding) although that was not asked for; "
            "ranges and sizes of such an object mean something else");
    if (r->bad_length)
        return SAY(SLICE_WRONG, "unreadable or contradicting Content-Length");
    if (r->status == 206)
        return slice_partial(r, w, out, why, n);
    if (w->kind != WANT_WHOLE)
        return slice_whole_reply(r, w, out, why, n);
    if (!r->has_length && !r->chunked)
        return SAY(
            SLICE_REFUSED,
            "the body has no length (neither Content-Length nor chunked): a cut would not show");
    *out = (struct slice){
        .sized = r->has_length, .take = r->length, .body = r->length, .total = r->length};
    return SLICE_OK;
}
