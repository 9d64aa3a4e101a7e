#include "base/mem.h"
#include "store/store.h"
#include "t.h"

static void other_urls_are_refused_by_name(void)
{
    const char *const urls[] = {"ftp://h/x", "hdfs://h/x", "simplecache::s3://b/x",
                                "zip::file:///x.zip"};
    for (size_t i = 0; i < 4; i++) {
        struct store *s;
        struct hr_error e;
        check_eq(store_open(urls[i], NULL, &s, &e), HR_EUNSUPPORTED);
        check_has(e.text, "http://");
    }
    struct store *s;
    check_eq(store_open("", NULL, &s, NULL), HR_EINVAL);
}

static void http_stores_check_their_options_when_opened(void)
{
    struct store *s;
    struct hr_error e;
    check_eq(store_open("http://h/x", "{\"conect_timeout\": 1}", &s, &e), HR_EINVAL);
    check_has(e.text, "connect_timeout");
    check_eq(store_open("http://h/x", "{\"concurrency\": 0}", &s, &e), HR_EINVAL);
    check_eq(store_open("http://h/x", "{\"concurrency\": 257}", &s, &e), HR_EINVAL);
    check_eq(store_open("https://h/x", "{\"ca_file\": \"/no/such/file\"}", &s, &e), HR_EINVAL);
    check_eq(
        store_open("http://h/x?sig=SECRET", "{\"max_retries\": 3, \"retry_total\": 0.5}", &s, &e),
        0);
    check_str(store_url(s), "http://h/x");
    check(store_remote(s) && !store_blocking(s) && !store_local(s));
    char *names;
    size_t size;
    int fd;
    uint64_t n;
    check_eq(store_list(s, "", &names, &size, &e), HR_EUNSUPPORTED);
    check_eq(store_open_file(s, "k", &fd, &n, &e), HR_EINTERNAL);
    store_unref(store_ref(s));
    store_unref(s);
    store_unref(NULL);
}

static void running_out_of_memory_leaks_nothing(void)
{
    int opened = 0;
    for (uint64_t n = 1; n < 40; n++) {
        struct store *s = NULL;
        uint64_t live = mem_live();
        mem_fail_at(n, false);
        int rc = store_open("http://h/x?q",
                            "{\"headers\": {\"a\": \"b\"}, \"proxy\": \"http://p\"}", &s, NULL);
        mem_fail_at(0, false);
        if (!check(rc == 0 || rc == HR_ENOMEM))
            printf("# %d\n", rc);
        opened += rc == 0;
        store_unref(s);
        if (!check_eq(mem_live(), live))
            printf("# allocation %d, rc %d\n", (int)n, rc);
    }
    check(opened > 0);
}

int main(void)
{
    RUN(other_urls_are_refused_by_name);
    RUN(http_stores_check_their_options_when_opened);
    RUN(running_out_of_memory_leaks_nothing);
    return t_done();
}
