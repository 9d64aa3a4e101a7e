#include "net/reply.h"

#include "t.h"

static struct reply parse(const char *head)
{
    struct reply r;
    reply_parse(&r, head, strlen(head));
    return r;
}

static void status_and_lengths_are_read(void)
{
    struct reply r = parse("HTTP/1.1 206 Partial Content\r\ncontent-length:  42 \r\nContent-Range: "
                           "bytes 10-51/100\r\n\r\n");
    check_eq(r.status, 206);
    check(r.has_length && !r.bad_length && r.length == 42);
    check(r.has_range && !r.bad_range && r.has_total);
    check_eq(r.first, 10);
    check_eq(r.last, 51);
    check_eq(r.total, 100);
    check_eq(parse("HTTP/1.1 404\r\n\r\n").status, 404);
    check_eq(parse("nonsense").status, 0);
    check_eq(parse("").status, 0);
}

static void lengths_that_cannot_be_trusted_are_marked(void)
{
    check(parse("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n").bad_length);
    check(parse("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n").bad_length);
    check(parse("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n").bad_length);
    check(!parse("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n").bad_length);
    struct reply r =
        parse("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: gzip, chunked\r\n\r\n");
    check(r.chunked && !r.has_length);
}

static void content_ranges_are_read_strictly(void)
{
    const char *const bad[] = {"bytes 5-4/10",  "bytes 5-/10",
                               "bytes -5/10",   "bytes 0-9",
                               "bytes 0-9/9",   "items 0-9/10",
                               "bytes 0-9/10x", "bytes 18446744073709551615-18446744073709551615/*",
                               "bytes",         ""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char head[128];
        snprintf(head, sizeof head, "HTTP/1.1 206 x\r\nContent-Range: %s\r\n\r\n", bad[i]);
        if (!check(parse(head).bad_range))
            printf("# %s\n", bad[i]);
    }
    struct reply r = parse("HTTP/1.1 416 x\r\nContent-Range: bytes */77\r\n\r\n");
    check(r.range_empty && r.has_total && r.total == 77 && !r.bad_range);
    r = parse("HTTP/1.1 206 x\r\nContent-Range: bytes 0-9/*\r\n\r\n");
    check(r.has_range && !r.has_total && !r.bad_range);
}

static void etags_are_compared_without_their_weakness(void)
{
    struct reply a = parse("HTTP/1.1 200 x\r\nETag: \"abc\"\r\n\r\n"),
                 b = parse("HTTP/1.1 200 x\r\nETag: W/\"abc\"\r\n\r\n");
    struct reply c = parse("HTTP/1.1 200 x\r\nETag: \"abd\"\r\n\r\n"),
                 d = parse("HTTP/1.1 200 x\r\n\r\n");
    check(a.has_etag && b.has_etag && !d.has_etag);
    check(!a.weak && b.weak);
    check_str(a.etag, "\"abc\"");
    check(a.etag_hash == b.etag_hash && a.etag_hash != c.etag_hash);
    char head[300] = "HTTP/1.1 200 x\r\nETag: \"";
    memset(head + strlen(head), 'x', 200);
    memcpy(head + 223, "\"\r\n\r\n", 6);
    struct reply e = parse(head);
    check(e.has_etag && !e.etag[0]); /* too long to send back: compared only */
}

static void a_generation_is_part_of_the_version(void)
{
    struct reply a = parse("HTTP/1.1 200 OK\r\nETag: \"abc\"\r\nx-goog-generation: 1\r\n");
    struct reply b = parse("HTTP/1.1 200 OK\r\nX-Goog-Generation: 1\r\nETag: \"abc\"\r\n");
    struct reply c = parse("HTTP/1.1 200 OK\r\nETag: \"abc\"\r\nx-goog-generation: 2\r\n");
    struct reply d = parse("HTTP/1.1 200 OK\r\nx-goog-generation: 1\r\n");
    check(a.etag_hash == b.etag_hash && a.etag_hash != c.etag_hash);
    check_str(c.etag, "\"abc\"");
    check(d.has_etag && d.etag_hash && !d.etag[0]);
}

static void retry_after_is_read_in_both_forms(void)
{
    check_eq(parse("HTTP/1.1 503 x\r\nRetry-After: 17\r\n\r\n").retry_after_ms, 17000);
    check_eq(parse("HTTP/1.1 503 x\r\n\r\n").retry_after_ms, -1);
    check_eq(parse("HTTP/1.1 503 x\r\nRetry-After: soon\r\n\r\n").retry_after_ms, -1);
    check_eq(parse("HTTP/1.1 503 x\r\nRetry-After: 99999999999\r\n\r\n").retry_after_ms, 86400000);
    check_eq(parse("HTTP/1.1 503 x\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                   "Retry-After: Sun, 06 Nov 1994 08:50:07 GMT\r\n\r\n")
                 .retry_after_ms,
             30000);
    check_eq(parse("HTTP/1.1 503 x\r\nRetry-After: Thu, 29 Feb 2024 00:00:10 GMT\r\n"
                   "Date: Wed, 28 Feb 2024 23:59:50 GMT\r\n\r\n")
                 .retry_after_ms,
             20000);
    check_eq(parse("HTTP/1.1 503 x\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                   "Retry-After: Sun, 06 Nov 1994 08:40:00 GMT\r\n\r\n")
                 .retry_after_ms,
             0);
    check_eq(parse("HTTP/1.1 503 x\r\nRetry-After: Sun, 06 Nov 1994 08:50:07 GMT\r\n\r\n")
                 .retry_after_ms,
             -1);
}

static void headers_are_found_by_name(void)
{
    size_t n;
    struct reply r =
        parse("HTTP/1.1 301 x\r\nX-Location: no\r\nLocation: http://h/ \r\nEmpty:\r\n\r\n");
    const char *v = reply_header(&r, "location", &n);
    check(v && n == 9 && !memcmp(v, "http://h/", 9));
    check(reply_header(&r, "empty", &n) && n == 0);
    check(!reply_header(&r, "absent", &n));
}

/* ---- slices ---------------------------------------------------------------------------------- */

static const struct want whole = {WANT_WHOLE, 0, 0};

static void check_slice(const char *head, struct want w, enum slice_verdict verdict, uint64_t skip,
                        uint64_t take, uint64_t total)
{
    struct reply r = parse(head);
    struct slice s;
    char why[256] = "";
    if (!check_eq(reply_slice(&r, &w, &s, why, sizeof why), verdict))
        printf("# %s: %s\n", head, why);
    if (verdict != SLICE_OK) {
        check(why[0]);
        return;
    }
    check_eq(s.skip, skip);
    check_eq(s.take, take);
    check_eq(s.total, total);
}

static struct want range(uint64_t first, uint64_t length)
{
    return (struct want){WANT_RANGE, first, length};
}

static struct want suffix(uint64_t length)
{
    return (struct want){WANT_SUFFIX, 0, length};
}

static void whole_objects_need_a_length(void)
{
    check_slice("HTTP/1.1 200 x\r\nContent-Length: 10\r\n\r\n", whole, SLICE_OK, 0, 10, 10);
    check_slice("HTTP/1.1 200 x\r\nContent-Length: 0\r\n\r\n", whole, SLICE_OK, 0, 0, 0);
    check_slice("HTTP/1.1 200 x\r\n\r\n", whole, SLICE_REFUSED, 0, 0, 0);
    check_slice("HTTP/1.1 200 x\r\nContent-Length: 1, 2\r\n\r\n", whole, SLICE_WRONG, 0, 0, 0);
    check_slice("HTTP/1.1 206 x\r\nContent-Range: bytes 0-9/10\r\nContent-Length: 10\r\n\r\n",
                whole, SLICE_WRONG, 0, 0, 0);
    check_slice("HTTP/1.1 200 x\r\nContent-Encoding: gzip\r\nContent-Length: 10\r\n\r\n", whole,
                SLICE_REFUSED, 0, 0, 0);
    check_slice("HTTP/1.1 200 x\r\nContent-Encoding: identity\r\nContent-Length: 9\r\n\r\n", whole,
                SLICE_OK, 0, 9, 9);
    struct reply r = parse("HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n");
    struct slice s;
    check_eq(reply_slice(&r, &whole, &s, NULL, 0), SLICE_OK);
    check(!s.sized);
}

static void ranges_must_be_exactly_those_asked_for(void)
{
    const char *good =
        "HTTP/1.1 206 x\r\nContent-Range: bytes 10-19/100\r\nContent-Length: 10\r\n\r\n";
    check_slice(good, range(10, 10), SLICE_OK, 0, 10, 100);
    check_slice(good, range(10, 11), SLICE_WRONG, 0, 0, 0);
    check_slice(good, range(10, 9), SLICE_WRONG, 0, 0, 0);
    check_slice(good, range(9, 10), SLICE_WRONG, 0, 0, 0);
    check_slice("HTTP/1.1 206 x\r\nContent-Range: bytes 10-19/100\r\nContent-Length: 9\r\n\r\n",
                range(10, 10), SLICE_WRONG, 0, 0, 0);
    check_slice("HTTP/1.1 206 x\r\nContent-Length: 10\r\n\r\n", range(10, 10), SLICE_WRONG, 0, 0,
                0);
    check_slice("HTTP/1.1 206 x\r\nContent-Range: bytes 10-19/*\r\nContent-Length: 10\r\n\r\n",
                range(10, 10), SLICE_OK, 0, 10, 0);
    check_slice(
        "HTTP/1.1 206 x\r\nContent-Range: bytes 10-19/100\r\nTransfer-Encoding: chunked\r\n\r\n",
        range(10, 10), SLICE_OK, 0, 10, 100);
    check_slice("HTTP/1.1 206 x\r\nContent-Range: bytes 10-19/100\r\n\r\n", range(10, 10),
                SLICE_REFUSED, 0, 0, 0);
    check_slice("HTTP/1.1 206 x\r\nContent-Range: bytes 10-14/15\r\nContent-Length: 5\r\n\r\n",
                range(10, 10), SLICE_SHORT, 0, 0, 0);
}

static void suffixes_are_checked_against_the_size(void)
{
    check_slice("HTTP/1.1 206 x\r\nContent-Range: bytes 90-99/100\r\nContent-Length: 10\r\n\r\n",
                suffix(10), SLICE_OK, 0, 10, 100);
    check_slice("HTTP/1.1 206 x\r\nContent-Range: bytes 0-4/5\r\nContent-Length: 5\r\n\r\n",
                suffix(10), SLICE_OK, 0, 5, 5);
    check_slice("HTTP/1.1 206 x\r\nContent-Range: bytes 80-89/100\r\nContent-Length: 10\r\n\r\n",
                suffix(10), SLICE_WRONG, 0, 0, 0);
    check_slice("HTTP/1.1 206 x\r\nContent-Range: bytes 95-99/100\r\nContent-Length: 5\r\n\r\n",
                suffix(10), SLICE_WRONG, 0, 0, 0);
    check_slice("HTTP/1.1 206 x\r\nContent-Range: bytes 90-99/*\r\nContent-Length: 10\r\n\r\n",
                suffix(10), SLICE_REFUSED, 0, 0, 0);
    check_slice("HTTP/1.1 416 x\r\nContent-Range: bytes */0\r\nContent-Length: 3\r\n\r\n",
                suffix(10), SLICE_OK, 0, 0, 0);
    check_slice("HTTP/1.1 416 x\r\nContent-Length: 3\r\n\r\n", suffix(10), SLICE_SHORT, 0, 0, 0);
}

static void a_whole_answer_to_a_range_is_cut_when_that_is_safe(void)
{
    const char *all = "HTTP/1.1 200 x\r\nContent-Length: 100\r\n\r\n";
    check_slice(all, range(10, 20), SLICE_OK, 10, 20, 100);
    check_slice(all, range(0, 100), SLICE_OK, 0, 100, 100);
    check_slice(all, range(90, 20), SLICE_SHORT, 0, 0, 0);
    check_slice(all, suffix(30), SLICE_OK, 70, 30, 100);
    check_slice(all, suffix(300), SLICE_OK, 0, 100, 100);
    check_slice("HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n", range(0, 10), SLICE_REFUSED,
                0, 0, 0);
    check_slice("HTTP/1.1 200 x\r\n\r\n", range(0, 10), SLICE_REFUSED, 0, 0, 0);
    check_slice("HTTP/1.1 200 x\r\nContent-Length: 1000000000\r\n\r\n", range(0, 1000),
                SLICE_REFUSED, 0, 0, 0);
    check_slice("HTTP/1.1 200 x\r\nContent-Length: 30000000\r\n\r\n", range(0, 20000000), SLICE_OK,
                0, 20000000, 30000000);
}

static void ranges_past_the_end_are_short(void)
{
    check_slice("HTTP/1.1 416 x\r\nContent-Range: bytes */100\r\n\r\n", range(200, 10), SLICE_SHORT,
                0, 0, 0);
    check_slice("HTTP/1.1 416 x\r\n\r\n", range(200, 10), SLICE_SHORT, 0, 0, 0);
}

int main(void)
{
    RUN(status_and_lengths_are_read);
    RUN(lengths_that_cannot_be_trusted_are_marked);
    RUN(content_ranges_are_read_strictly);
    RUN(etags_are_compared_without_their_weakness);
    RUN(a_generation_is_part_of_the_version);
    RUN(retry_after_is_read_in_both_forms);
    RUN(headers_are_found_by_name);
    RUN(whole_objects_need_a_length);
    RUN(ranges_must_be_exactly_those_asked_for);
    RUN(suffixes_are_checked_against_the_size);
    RUN(a_whole_answer_to_a_range_is_cut_when_that_is_safe);
    RUN(ranges_past_the_end_are_short);
    return t_done();
}
