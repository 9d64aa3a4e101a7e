/* The examples of "Authorize with Shared Key" in the Azure Storage REST API reference; signatures
 * as an independent implementation makes them; that everything which is sent is signed; cost. */
#include "store/sign_azure.h"

#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "t.h"

static struct crypto c;

/* 64 bytes, 0 to 63. */
#define KEY                                                                                        \
    "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw=="
#define LINES(text) .headers = text, .headers_size = sizeof text

static void expect_text(const struct sign_azure_request *r, const char *want)
{
    struct buf out;
    struct hr_error e = {0};
    buf_init(&out);
    if (check_eq(sign_azure_text(r, &out, &e), 0))
        check_str(out.data, want);
    buf_dispose(&out);
}

static void container_metadata_of_the_reference(void)
{
    const struct sign_azure_request r = {
        .method = "GET",
        .account = "myaccount",
        .path = "/mycontainer",
        .query = "restype=container&comp=metadata&timeout=20",
        LINES("x-ms-version: 2015-02-21\0x-ms-date: Fri, 26 Jun 2015 23:39:12 GMT"),
    };
    expect_text(&r, "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\n"
                    "x-ms-version:2015-02-21\n/myaccount/mycontainer\ncomp:metadata\n"
                    "restype:container\ntimeout:20");
}

static void list_blobs_of_the_reference(void)
{
    const struct sign_azure_request r = {
        .method = "GET",
        .account = "myaccount",
        .path = "/mycontainer",
        .query = "restype=container&comp=list&include=snapshots&include=uncommittedblobs&"
                 "include=metadata",
        LINES("x-ms-date: Fri, 26 Jun 2015 23:39:12 GMT\0x-ms-version: 2015-02-21"),
    };
    expect_text(&r, "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\n"
                    "x-ms-version:2015-02-21\n/myaccount/mycontainer\ncomp:list\n"
                    "include:metadata,snapshots,uncommittedblobs\nrestype:container");
}

static void standard_headers_stand_in_their_lines(void)
{
    const struct sign_azure_request r = {
        .method = "PUT",
        .account = "a",
        .path = "/c/k",
        .range = "bytes=10-19",
        .if_match = "\"0x8\"",
        LINES("Content-Encoding: e\0content-language:l\0Content-Length: 0\0Content-MD5: m\0"
              "CONTENT-TYPE: text/plain; charset=UTF-8\0Date: now\0If-Modified-Since: s\0"
              "If-None-Match: *\0If-Unmodified-Since: u\0Accept-Encoding: identity"),
    };
    expect_text(&r,
                "PUT\ne\nl\n\nm\ntext/plain; charset=UTF-8\nnow\ns\n\"0x8\"\n*\nu\nbytes=10-19\n"
                "/a/c/k");
}

static void a_date_of_ours_takes_the_place_of_the_others(void)
{
    const struct sign_azure_request r = {
        .method = "GET",
        .account = "a",
        .path = "/c/k",
        LINES("Date: now\0X-Ms-Date:  then "),
    };
    expect_text(&r, "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:then\n/a/c/k");
}

static void headers_are_sorted_and_folded(void)
{
    const struct sign_azure_request r = {
        .method = "GET",
        .account = "a",
        .path = "/c/k",
        LINES("x-ms-meta-b: 1\0x-ms-meta: 0\0X-MS-Meta-A:\ttwo   words\t \" a  b \"\0x-ms-none:\0"
              "x-ms: no"),
    };
    expect_text(&r, "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-meta:0\nx-ms-meta-a:two words \" a  b \"\n"
                    "x-ms-meta-b:1\n/a/c/k");
}

static void paths_are_signed_as_sent_and_queries_decoded(void)
{
    const struct sign_azure_request r = {
        .method = "GET",
        .account = "devstoreaccount1",
        .path = "/devstoreaccount1/c/a%20b/%25/%C3%A9+=",
        .query = "&Prefix=a%2Fb%26%3D%0A&comp=list&empty&delimiter=%2F&",
    };
    expect_text(&r, "GET\n\n\n\n\n\n\n\n\n\n\n\n/devstoreaccount1/devstoreaccount1/c/a%20b/%25/"
                    "%C3%A9+=\ncomp:list\ndelimiter:/\nempty:\nprefix:a/b&=\n");
}

/* As Python's hmac makes them of the texts above. */
static void signatures_are_those_of_another_implementation(void)
{
    struct buf out;
    struct hr_error e = {0};
    struct sign_azure_request r = {
        .method = "GET",
        .account = "myaccount",
        .path = "/mycontainer",
        .query = "restype=container&comp=metadata&timeout=20",
        LINES("x-ms-version: 2015-02-21\0x-ms-date: Fri, 26 Jun 2015 23:39:12 GMT"),
    };
    buf_init(&out);
    check_eq(sign_azure(&c, &r, KEY, &out, &e), 0);
    check_str(out.data, "SharedKey myaccount:ZfuQJIowrCGKlm/KTSTcA7Tx12MxVvDi2ryOPQQw7Gw=");
    buf_dispose(&out);
}

static void keys_that_are_none_are_refused_and_not_shown(void)
{
    const char *const bad[] = {"", "not base64: KEYKEY", "AAEC=AAE", "A"};
    const struct sign_azure_request r = {.method = "GET", .account = "a", .path = "/c/k"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct buf out;
        struct hr_error e = {0};
        buf_init(&out);
        check_eq(sign_azure(&c, &r, bad[i], &out, &e), HR_EINVAL);
        check_has(e.text, "Base64");
        check(!strstr(e.text, "KEYKEY"));
        buf_dispose(&out);
    }
}

static void too_many_headers_or_parameters_are_an_error(void)
{
    char lines[40 * 16], query[40 * 8];
    size_t n = 0, q = 0;
    for (int i = 0; i < 40; i++) {
        n += (size_t)snprintf(lines + n, sizeof lines - n, "x-ms-h%02d: 1", i) + 1;
        q += (size_t)snprintf(query + q, sizeof query - q, "p%02d=1&", i);
    }
    struct sign_azure_request r = {
        .method = "GET", .account = "a", .path = "/c", .headers = lines, .headers_size = n};
    struct buf out;
    buf_init(&out);
    check_eq(sign_azure_text(&r, &out, NULL), HR_EINVAL);
    r.headers_size = 0;
    r.query = query;
    check_eq(sign_azure_text(&r, &out, NULL), HR_EINVAL);
    r.query = "a=%zz";
    check_eq(sign_azure_text(&r, &out, NULL), HR_EINVAL);
    buf_dispose(&out);
}

static void dates_are_those_of_http(void)
{
    char date[SIGN_AZURE_DATE];
    sign_azure_date(date, 784111777);
    check_str(date, "Sun, 06 Nov 1994 08:49:37 GMT");
    sign_azure_date(date, 0);
    check_str(date, "Thu, 01 Jan 1970 00:00:00 GMT");
    sign_azure_date(date, 1709210096);
    check_str(date, "Thu, 29 Feb 2024 12:34:56 GMT");
}

static void running_out_of_memory_leaks_nothing(void)
{
    const struct sign_azure_request r = {.method = "GET",
                                         .account = "a",
                                         .path = "/c/k",
                                         .query = "comp=list",
                                         LINES("x-ms-date: now")};
    uint64_t live = mem_live();
    for (uint64_t n = 1; n < 20; n++) {
        struct buf out;
        struct hr_error e = {0};
        buf_init(&out);
        mem_fail_at(n, false);
        int rc = sign_azure(&c, &r, KEY, &out, &e);
        mem_fail_at(0, false);
        check(rc == 0 || rc == HR_ENOMEM);
        check(rc != 0 || (out.data && !out.failed && strlen(out.data) == 56));
        buf_dispose(&out);
        check_eq(mem_live(), live);
    }
}

static void a_signature_costs_microseconds(void)
{
    const struct sign_azure_request r = {
        .method = "GET",
        .account = "myaccount",
        .path = "/container/era5.zarr/t2m/c/17/0/0",
        .range = "bytes=1048576-2097151",
        LINES("Accept-Encoding: identity\0x-ms-date: Fri, 26 Jun 2015 23:39:12 GMT\0"
              "x-ms-version: 2023-11-03"),
    };
    struct timespec from, to;
    struct buf out;
    const int n = 20000;
    buf_init(&out);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    for (int i = 0; i < n; i++) {
        buf_clear(&out);
        sign_azure(&c, &r, KEY, &out, NULL);
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    buf_dispose(&out);
    double us =
        ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) / n / 1000;
    printf("# %.1f us a signature\n", us);
}

int main(void)
{
    struct hr_error e;
    if (crypto_load(&c, &e) < 0) {
        printf("# %s\n", e.text);
        return 77;
    }
    RUN(container_metadata_of_the_reference);
    RUN(list_blobs_of_the_reference);
    RUN(standard_headers_stand_in_their_lines);
    RUN(a_date_of_ours_takes_the_place_of_the_others);
    RUN(headers_are_sorted_and_folded);
    RUN(paths_are_signed_as_sent_and_queries_decoded);
    RUN(signatures_are_those_of_another_implementation);
    RUN(keys_that_are_none_are_refused_and_not_shown);
    RUN(too_many_headers_or_parameters_are_an_error);
    RUN(dates_are_those_of_http);
    RUN(running_out_of_memory_leaks_nothing);
    RUN(a_signature_costs_microseconds);
    crypto_unload(&c);
    return t_done();
}
