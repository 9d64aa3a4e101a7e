#include "net/url.h"

#include "base/mem.h"
#include "t.h"
#include "wire/keys.h"

static void check_key(const char *base, const char *key, const char *want)
{
    struct url u;
    struct buf out;
    buf_init(&out);
    check_eq(url_parse(base, &u, NULL), 0);
    check_eq(url_add_key(&out, &u, key), 0);
    check_str(out.data, want);
    buf_dispose(&out);
    url_dispose(&u);
}

static void awkward_keys_are_encoded_strictly(void)
{
    for (size_t i = 0; i < AWKWARD_KEYS; i++) {
        struct buf out;
        buf_init(&out);
        url_encode(&out, awkward_keys[i].key, strlen(awkward_keys[i].key), true);
        check_str(out.data, awkward_keys[i].encoded);
        check_eq(url_decode(out.data), strlen(awkward_keys[i].key));
        check_str(out.data, awkward_keys[i].key);
        buf_dispose(&out);
    }
}

static void every_byte_survives_encoding(void)
{
    char all[256];
    for (int i = 1; i < 256; i++)
        all[i - 1] = (char)i;
    all[255] = 0;
    struct buf out;
    buf_init(&out);
    url_encode(&out, all, 255, false);
    for (size_t i = 0; i < out.size; i++)
        check(strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~%",
                     out.data[i]));
    check_eq(url_decode(out.data), 255);
    check_str(out.data, all);
    buf_dispose(&out);
}

static void keys_hang_below_the_base(void)
{
    check_key("http://h/x.zarr", "c/0/0", "http://h/x.zarr/c/0/0");
    check_key("http://h/x.zarr/", "c/0/0", "http://h/x.zarr/c/0/0");
    check_key("http://h", "k", "http://h/k");
    check_key("https://u:p%40@h:8443/a?sig=a%2Fb&c=d#frag", "k v",
              "https://u:p%40@h:8443/a/k%20v?sig=a%2Fb&c=d");
    check_key("HTTP://h/A", "k", "http://h/A/k");
    check_key("http://[::1]:80/a", "k", "http://[::1]:80/a/k");
    check_key("http://h?token=1", "k", "http://h/k?token=1");
}

static void base_paths_are_made_sendable_and_escapes_kept(void)
{
    check_key("http://h/a b/\303\274/%41%zz", "k", "http://h/a%20b/%C3%BC/%41%25zz/k");
    check_key("http://h/a=1,b;c'd(e)", "k", "http://h/a=1,b;c'd(e)/k");
}

static void people_see_no_secrets(void)
{
    struct url u;
    char out[64];
    check_eq(url_parse("https://user:secret@h:1/a/b?sig=secret#x", &u, NULL), 0);
    check_str(u.shown, "https://h:1/a/b");
    check(u.tls);
    check_str(url_redact("https://user:secret@h/a@b?sig=secret", out, sizeof out), "https://h/a@b");
    check_str(url_redact("h/a?secret", out, sizeof out), "h/a");
    check_str(url_redact("http://host/abcdef", out, 12), "http://host");
    url_dispose(&u);
}

static void what_cannot_be_sent_is_refused(void)
{
    const char *const bad[] = {"",
                               "h/x",
                               "ftp://h/x",
                               "http:/h",
                               "http://",
                               "http://:80",
                               "http://u@/x",
                               "http://h:/x",
                               "http://h:70000/",
                               "http://h x/",
                               "http://[::zz]/",
                               "http://h/?a\r\nX: y",
                               "http://u\n@h/"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct url u;
        struct hr_error e = {0};
        check_eq(url_parse(bad[i], &u, &e), HR_EINVAL);
        check(e.text[0]);
    }
}

static void broken_escapes_do_not_decode(void)
{
    const char *const bad[] = {"%", "a%4", "%zz", "a%00b"};
    for (size_t i = 0; i < 4; i++) {
        char s[8];
        snprintf(s, sizeof s, "%s", bad[i]);
        check_eq(url_decode(s), -1);
    }
}

static void running_out_of_memory_leaks_nothing(void)
{
    for (uint64_t n = 1; n < 12; n++) {
        struct url u;
        uint64_t live = mem_live();
        mem_fail_at(n, false);
        int rc = url_parse("https://h/a b?c", &u, NULL);
        mem_fail_at(0, false);
        check(rc == 0 || rc == HR_ENOMEM);
        if (rc == 0)
            url_dispose(&u);
        check_eq(mem_live(), live);
    }
}

int main(void)
{
    RUN(awkward_keys_are_encoded_strictly);
    RUN(every_byte_survives_encoding);
    RUN(keys_hang_below_the_base);
    RUN(base_paths_are_made_sendable_and_escapes_kept);
    RUN(people_see_no_secrets);
    RUN(what_cannot_be_sent_is_refused);
    RUN(broken_escapes_do_not_decode);
    RUN(running_out_of_memory_leaks_nothing);
    return t_done();
}
