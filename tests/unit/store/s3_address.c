/* Where requests for a bucket go: style, endpoint, region, names that cannot be. */
#include "store/s3_address.h"

#include "base/mem.h"
#include "t.h"

static void expect(const char *bucket, const char *endpoint, enum s3_style style,
                   const char *region, const char *origin, const char *host, const char *path)
{
    struct s3_place p = {.bucket = bucket,
                         .endpoint = endpoint,
                         .scheme = "https",
                         .suffix = "amazonaws.com",
                         .style = style};
    struct s3_address a;
    struct hr_error e = {0};
    if (!check_eq(s3_address_init(&a, &p, region, &e), 0)) {
        printf("# %s\n", e.text);
        return;
    }
    check_str(a.origin, origin);
    check_str(a.host, host);
    check_str(a.path, path);
    check_str(a.region, region);
    s3_address_dispose(&a);
}

static void amazon_s_own_endpoints(void)
{
    expect("bkt", NULL, S3_STYLE_AUTO, "eu-west-1", "https://bkt.s3.eu-west-1.amazonaws.com",
           "bkt.s3.eu-west-1.amazonaws.com", "");
    expect("bkt", NULL, S3_STYLE_PATH, "eu-west-1", "https://s3.eu-west-1.amazonaws.com",
           "s3.eu-west-1.amazonaws.com", "/bkt");
}

static void names_that_certificates_do_not_cover_go_into_the_path(void)
{
    static const char *const names[] = {"dotted.bkt", "Upper", "under_score", "-x-", "ends-"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[64];
        snprintf(path, sizeof path, "/%s", names[i]);
        expect(names[i], NULL, S3_STYLE_AUTO, "us-east-1", "https://s3.us-east-1.amazonaws.com",
               "s3.us-east-1.amazonaws.com", path);
    }
    expect("dotted.bkt", NULL, S3_STYLE_VIRTUAL, "us-east-1",
           "https://dotted.bkt.s3.us-east-1.amazonaws.com", "dotted.bkt.s3.us-east-1.amazonaws.com",
           "");
}

static void endpoints_of_the_user(void)
{
    expect("bkt", "http://127.0.0.1:9000", S3_STYLE_AUTO, "us-east-1", "http://127.0.0.1:9000",
           "127.0.0.1:9000", "/bkt");
    expect("bkt", "https://Minio.Example.ORG/base/path/", S3_STYLE_AUTO, "x",
           "https://minio.example.org", "minio.example.org", "/base/path/bkt");
    expect("bkt", "https://s.example.org:443", S3_STYLE_VIRTUAL, "x", "https://bkt.s.example.org",
           "bkt.s.example.org", "");
    expect("bkt", "https://s.example.org:80/a", S3_STYLE_VIRTUAL, "x",
           "https://bkt.s.example.org:80", "bkt.s.example.org:80", "/a");
    expect("bkt", "https://bkt.s.example.org", S3_STYLE_VIRTUAL, "x", "https://bkt.s.example.org",
           "bkt.s.example.org", "");
    expect("bkt", "localhost:9000", S3_STYLE_AUTO, "x", "https://localhost:9000", "localhost:9000",
           "/bkt");
    expect("bkt", "http://[::1]:80", S3_STYLE_AUTO, "x", "http://[::1]", "[::1]", "/bkt");
}

static void endpoints_that_are_none_are_refused_without_their_secrets(void)
{
    static const char *const wrong[] = {
        "ftp://h",          "https://", "http://h:0", "http://me:SECRET@h", "http://h?x=SECRET",
        "http://h\303\274", ""};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct s3_place p = {
            .bucket = "bkt", .endpoint = wrong[i], .scheme = "https", .suffix = "amazonaws.com"};
        struct s3_address a;
        struct hr_error e = {0};
        check_eq(s3_address_init(&a, &p, "x", &e), HR_EINVAL);
        check_has(e.text, "endpoint");
        check(!strstr(e.text, "SECRET"));
    }
}

static void names_that_cannot_be_buckets(void)
{
    static const struct {
        const char *name, *part;
        int code;
    } cases[] = {
        {"", "s3://bucket/path", HR_EINVAL},
        {"ab", "s3://bucket/path", HR_EINVAL},
        {"a b c", "s3://bucket/path", HR_EINVAL},
        {"user:secret@bucket", "s3://bucket/path", HR_EINVAL},
        {"logs--usw2-az1--x-s3", "S3 Express", HR_EUNSUPPORTED},
        {"arn:aws:s3:us-west-2:1:accesspoint", "alias", HR_EUNSUPPORTED},
        {"my-bucket.1", NULL, 0},
        {"Old_Style.Bucket", NULL, 0},
        {"ap-abc123-s3alias", NULL, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hr_error e = {0};
        check_eq(s3_bucket_check(cases[i].name, "s3://shown", &e), cases[i].code);
        if (cases[i].part) {
            check_has(e.text, "s3://shown: ");
            check_has(e.text, cases[i].part);
        }
    }
}

static void regions_in_host_names(void)
{
    static const char *const cases[][2] = {
        {"bkt.s3.eu-west-1.amazonaws.com", "eu-west-1"},
        {"bkt.s3-eu-west-1.amazonaws.com", "eu-west-1"},
        {"s3.cn-north-1.amazonaws.com.cn", "cn-north-1"},
        {"b.s3.dualstack.us-west-2.amazonaws.com", "us-west-2"},
        {"my.s3.bucket.s3.ap-south-1.amazonaws.com", "ap-south-1"},
        {"bkt.s3.amazonaws.com", NULL},
        {"s3-1.amazonaws.com", NULL},
        {"s3.eu-west-1.example.com", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = 0;
        const char *found = s3_region_of_host(cases[i][0], strlen(cases[i][0]), &n);
        if (!check(!found == !cases[i][1]) || !found)
            continue;
        check(n == strlen(cases[i][1]) && !memcmp(found, cases[i][1], n));
    }
    check(s3_region_ok("us-east-1", 9) && s3_region_ok("default", 7));
    check(!s3_region_ok("", 0) && !s3_region_ok("a.b", 3) && !s3_region_ok("a/b", 3));
    check(!s3_region_ok("-a", 2) && !s3_region_ok("A", 1));
}

static void no_memory_is_an_error(void)
{
    struct s3_place p = {
        .bucket = "bkt", .endpoint = "http://h:1/p", .scheme = "https", .suffix = "amazonaws.com"};
    for (uint64_t n = 1;; n++) {
        struct s3_address a;
        struct hr_error e = {0};
        mem_fail_at(n, true);
        int rc = s3_address_init(&a, &p, "x", &e);
        mem_fail_at(0, false);
        if (rc == 0) {
            s3_address_dispose(&a);
            break;
        }
        check_eq(rc, HR_ENOMEM);
    }
    check_eq(mem_live(), 0);
}

static void a_bucket_in_the_endpoint_is_seen(void)
{
    check(s3_endpoint_names("http://h:9000/data", "data"));
    check(s3_endpoint_names("https://h/x/data/", "data"));
    check(!s3_endpoint_names("http://data", "data"));
    check(!s3_endpoint_names("http://h/mydata", "data"));
    check(!s3_endpoint_names("data", "data"));
}

int main(void)
{
    RUN(amazon_s_own_endpoints);
    RUN(names_that_certificates_do_not_cover_go_into_the_path);
    RUN(endpoints_of_the_user);
    RUN(endpoints_that_are_none_are_refused_without_their_secrets);
    RUN(names_that_cannot_be_buckets);
    RUN(regions_in_host_names);
    RUN(no_memory_is_an_error);
    RUN(a_bucket_in_the_endpoint_is_seen);
    return t_done();
}
