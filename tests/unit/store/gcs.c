/* What options and environment mean to GCS stores; nothing is asked of anybody. */
#include "store/gcs_options.h"

#include <unistd.h>

#include "base/mem.h"
#include "store/store.h"
#include "t.h"

static struct arena arena;
static struct gcs_options o;
static struct hr_error e;

static int read_options(const char *json)
{
    arena_dispose(&arena);
    arena_init(&arena);
    e = (struct hr_error){0};
    return gcs_options_read(&o, json, &(struct store_env){NULL, NULL}, "gs://b", &arena, &e);
}

static void every_spelling_of_a_credential_is_known(void)
{
    check_eq(read_options("{\"token\": \"anon\"}"), 0);
    check_eq(o.anonymous, MAYBE_YES);
    check_eq(read_options("{\"google_skip_signature\": true}"), 0);
    check_eq(o.anonymous, MAYBE_YES);
    check_eq(read_options("{\"token\": \"google_default\"}"), 0);
    check_eq(o.anonymous, MAYBE_NO);
    check(!o.metadata_only);
    check_eq(read_options("{\"token\": \"cloud\"}"), 0);
    check(o.metadata_only);
    check_eq(read_options("{\"token\": \"~/key.json\"}"), 0);
    check_str(o.file, "~/key.json");
    check_eq(read_options("{\"google_service_account\": \"key.json\"}"), 0);
    check_str(o.file, "key.json");
    check_eq(read_options("{\"token\": {\"type\": \"service_account\"}}"), 0);
    check_str(o.text, "{\"type\": \"service_account\"}");
    check_eq(read_options("{\"service_account_key\": \"{}\"}"), 0);
    check_str(o.text, "{}");
    check_eq(read_options("{\"token\": \"ya29.abc\"}"), 0);
    check_str(o.bearer, "ya29.abc");
    check_eq(read_options("{\"key\": \"GOOG1E\", \"secret\": \"s\"}"), 0);
    check_str(o.id, "GOOG1E");
}

static void credentials_that_contradict_are_refused(void)
{
    static const struct {
        const char *options, *part;
    } cases[] = {
        {"{\"key\": \"K\"}", "key without secret"},
        {"{\"secret\": \"HIDDEN\"}", "secret without key"},
        {"{\"token\": \"anon\", \"service_account\": \"f\"}", "service_account or anon"},
        {"{\"token\": \"anon\", \"anon\": false}", "contradict"},
        {"{\"access_token\": \"HIDDEN\", \"service_account_key\": \"HIDDEN\"}", "not both"},
        {"{\"access_token\": \"HIDDEN HIDDEN\"}", "no token"},
        {"{\"token\": \"HIDDEN\"}", "access_token"},
        {"{\"token\": 5}", "must be a string or an object"},
        {"{\"requester_pays\": true}", "project"},
        {"{\"requester_pays\": 1}", "requester_pays"},
        {"{\"requester_pays\": \"My Project\"}", "no ID of a project"},
        {"{\"access\": \"all\"}", "read_only"},
        {"{\"projct\": \"x\"}", "did you mean \"project\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_eq(read_options(cases[i].options), HR_EINVAL);
        check_has(e.text, cases[i].part);
        check_has(e.text, "gs://b");
        check(!strstr(e.text, "HIDDEN"));
    }
    check_eq(read_options("{\"token\": \"browser\"}"), HR_EUNSUPPORTED);
    check_has(e.text, "gcloud auth");
}

static void the_project_that_pays_is_found(void)
{
    check_eq(read_options("{\"project\": \"p-1\"}"), 0);
    check(!o.payer);
    check_eq(read_options("{\"project\": \"p-1\", \"requester_pays\": true}"), 0);
    check_str(o.payer, "p-1");
    check_eq(read_options("{\"requester_pays\": \"p-2\"}"), 0);
    check_str(o.payer, "p-2");
    check_eq(read_options("{\"user_project\": \"example.com:p-3\"}"), 0);
    check_str(o.payer, "example.com:p-3");
    setenv("GOOGLE_CLOUD_PROJECT", "p-4", 1);
    check_eq(read_options("{\"requester_pays\": true}"), 0);
    check_str(o.payer, "p-4");
    unsetenv("GOOGLE_CLOUD_PROJECT");
}

static void an_emulator_is_asked_as_nobody(void)
{
    setenv("STORAGE_EMULATOR_HOST", "localhost:9", 1);
    check_eq(read_options(""), 0);
    check_str(o.endpoint, "http://localhost:9");
    check_eq(o.anonymous, MAYBE_YES);
    check_eq(read_options("{\"access_token\": \"t\"}"), 0);
    check_eq(o.anonymous, MAYBE_UNSAID);
    check_eq(read_options("{\"endpoint_url\": \"https://e\"}"), 0);
    check_str(o.endpoint, "https://e");
    check_eq(o.anonymous, MAYBE_UNSAID);
    setenv("STORAGE_EMULATOR_HOST", "https://localhost:9", 1);
    check_eq(read_options(""), 0);
    check_str(o.endpoint, "https://localhost:9");
    unsetenv("STORAGE_EMULATOR_HOST");
}

static void expect_refused(const char *url, const char *options, const char *part)
{
    struct store *s;
    check_eq(store_open(url, options, &s, &e), HR_EINVAL);
    check_has(e.text, part);
    check(!s);
}

static void stores_are_named_and_checked_when_opened(void)
{
    struct store *s;
    check_eq(store_open("gs://bucket/a/b//", "{\"token\": \"anon\"}", &s, &e), 0);
    check_str(store_url(s), "gs://bucket/a/b");
    check(store_remote(s) && !store_blocking(s));
    store_unref(s);
    check_eq(store_open("GCS://bucket_1.example.com", "{\"token\": \"anon\"}", &s, &e), 0);
    check_str(store_url(s), "gs://bucket_1.example.com");
    store_unref(s);
    expect_refused("gs://", NULL, "no name of a bucket");
    expect_refused("gs://Bucket/x", NULL, "no name of a bucket");
    expect_refused("gs://u:HIDDEN@b/x", NULL, "no name of a bucket");
    check(!strstr(e.text, "HIDDEN"));
    expect_refused("gs://bucket", "{\"endpoint_url\": \"http://far.example\"}", "in the clear");
    expect_refused("gs://bucket", "{\"endpoint_url\": \"http://u:p@h\"}", "ASCII");
    expect_refused(
        "gs://bucket",
        "{\"endpoint_url\": \"http://localhost\", \"allow_http\": false, \"anon\": true}",
        "allow_http");
    expect_refused("gs://bucket", "{\"headers\": {\"authorization\": \"Bearer HIDDEN\"}}", "anon");
    check(!strstr(e.text, "HIDDEN"));
}

static void running_out_of_memory_leaks_nothing(void)
{
    int opened = 0;
    uint64_t live = mem_live();
    for (uint64_t n = 1; n < 150; n++) {
        struct store *s = NULL;
        mem_fail_at(n, false);
        int rc = store_open("gs://bucket/x",
                            "{\"token\": {\"type\": \"x\"}, \"requester_pays\": \"p\"}", &s, NULL);
        mem_fail_at(0, false);
        if (!check(rc == 0 || rc == HR_ENOMEM))
            printf("# %d\n", rc);
        opened += rc == 0;
        store_unref(s);
        for (int i = 0; i < 2000 && mem_live() != live; i++) /* the network thread ends */
            usleep(1000);
        if (!check_eq(mem_live(), live))
            printf("# allocation %d, rc %d\n", (int)n, rc);
    }
    check(opened > 0);
}

int main(void)
{
    static const char *const clean[] = {"STORAGE_EMULATOR_HOST", "GOOGLE_CLOUD_PROJECT",
                                        "GCLOUD_PROJECT", "GOOGLE_SKIP_SIGNATURE"};
    for (size_t i = 0; i < sizeof clean / sizeof *clean; i++)
        unsetenv(clean[i]);
    arena_init(&arena);
    RUN(every_spelling_of_a_credential_is_known);
    RUN(credentials_that_contradict_are_refused);
    RUN(the_project_that_pays_is_found);
    RUN(an_emulator_is_asked_as_nobody);
    RUN(stores_are_named_and_checked_when_opened);
    RUN(running_out_of_memory_leaks_nothing);
    arena_dispose(&arena);
    return t_done();
}
