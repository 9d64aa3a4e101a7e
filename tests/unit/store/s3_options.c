/* What users write: the spellings of s3fs and object_store, the environment, and what is wrong
 * with it. */
#include "store/s3_options.h"

#include "base/arena.h"
#include "base/mem.h"
#include "t.h"

static struct arena arena;
static struct s3_options o;
static struct hr_error e;

static int read_options(const char *json)
{
    e = (struct hr_error){0};
    return s3_options_read(&o, json, &(struct store_env){0}, "s3://b", &arena, &e);
}

static void the_spellings_of_all_clients_mean_the_same(void)
{
    static const char *const ways[] = {
        "{\"key\": \"I\", \"secret\": \"S\", \"token\": \"T\", \"endpoint_url\": \"http://h\"}",
        "{\"access_key_id\": \"I\", \"secret_access_key\": \"S\", \"session_token\": \"T\", "
        "\"endpoint\": \"http://h\"}",
        "{\"aws_access_key_id\": \"I\", \"aws_secret_access_key\": \"S\", "
        "\"aws_session_token\": \"T\", \"aws_endpoint\": \"http://h\"}",
        "{\"key\": \"I\", \"secret\": \"S\", \"token\": \"T\", "
        "\"client_kwargs\": {\"endpoint_url\": \"http://h\"}}",
        "{\"client_kwargs\": {\"aws_access_key_id\": \"I\", \"aws_secret_access_key\": \"S\", "
        "\"aws_session_token\": \"T\", \"endpoint_url\": \"http://h\"}, \"key\": null}",
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (!check_eq(read_options(ways[i]), 0))
            printf("# %s\n", e.text);
        check_str(o.id, "I");
        check_str(o.secret, "S");
        check_str(o.token, "T");
        check_str(o.endpoint, "http://h");
        check_eq(o.anonymous, MAYBE_UNSAID);
    }
    static const char *const regions[] = {"region", "region_name", "aws_region", "default_region",
                                          "aws_default_region"};
    for (size_t i = 0; i < sizeof regions / sizeof *regions; i++) {
        char json[64];
        snprintf(json, sizeof json, "{\"%s\": \"eu-west-1\"}", regions[i]);
        check_eq(read_options(json), 0);
        check_str(o.region, "eu-west-1");
    }
}

static void styles(void)
{
    static const struct {
        const char *json;
        enum s3_style style;
    } cases[] = {
        {"", S3_STYLE_AUTO},
        {"{\"virtual_hosted_style_request\": true}", S3_STYLE_VIRTUAL},
        {"{\"aws_virtual_hosted_style_request\": false}", S3_STYLE_PATH},
        {"{\"addressing_style\": \"path\"}", S3_STYLE_PATH},
        {"{\"config_kwargs\": {\"s3\": {\"addressing_style\": \"virtual\"}}}", S3_STYLE_VIRTUAL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_eq(read_options(cases[i].json), 0);
        check_eq(o.style, cases[i].style);
    }
}

static void the_environment_fills_what_is_open(void)
{
    static const char *const set[][2] = {
        {"AWS_ENDPOINT_URL", "http://all"}, {"AWS_ENDPOINT_URL_S3", "http://s3"},
        {"AWS_REGION", "eu-west-3"},        {"AWS_REQUEST_PAYER", "requester"},
        {"AWS_SKIP_SIGNATURE", "true"},     {"AWS_CA_BUNDLE", "/etc/hosts"}};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        setenv(set[i][0], set[i][1], 1);
    check_eq(read_options("{}"), 0);
    check_str(o.endpoint, "http://s3");
    check_str(o.region, "eu-west-3");
    check_str(o.remote.ca_file, "/etc/hosts");
    check_eq(o.requester_pays, MAYBE_YES);
    check_eq(o.anonymous, MAYBE_YES);
    check_eq(read_options("{\"endpoint_url\": \"http://mine\", \"region\": \"us-west-2\", "
                          "\"requester_pays\": false, \"anon\": false}"),
             0);
    check_str(o.endpoint, "http://mine");
    check_str(o.region, "us-west-2");
    check_eq(o.requester_pays, MAYBE_NO);
    check_eq(o.anonymous, MAYBE_NO);
    check_eq(read_options("{\"key\": \"a\", \"secret\": \"b\"}"), 0);
    check_eq(o.anonymous, MAYBE_UNSAID);
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        unsetenv(set[i][0]);
    setenv("AWS_DEFAULT_REGION", "eu-central-1", 1);
    check_eq(read_options(NULL), 0);
    check_str(o.region, "eu-central-1");
    unsetenv("AWS_DEFAULT_REGION");
}

static void mistakes_are_named(void)
{
    static const char *const cases[][2] = {
        {"{\"anonymous\": true}", "did you mean \"anon\""},
        {"{\"endpoint_ur\": \"x\"}", "did you mean \"endpoint_url\""},
        {"{\"acces_key_id\": \"x\"}", "did you mean \"access_key_id\""},
        {"{\"requester_pay\": true}", "did you mean \"requester_pays\""},
        {"{\"client_kwargs\": {\"endpoint\": \"x\"}}", "client_kwargs: unknown storage option"},
        {"{\"config_kwargs\": {\"s3\": {\"style\": \"x\"}}}", "config_kwargs"},
        {"{\"client_kwargs\": \"x\"}", "must be an object"},
        {"{\"anon\": \"yes\"}", "must be true or false"},
        {"{\"key\": \"I\"}", "key without secret"},
        {"{\"secret\": \"SECRET\"}", "secret without key"},
        {"{\"token\": \"SECRET\"}", "token without key and secret"},
        {"{\"anon\": true, \"key\": \"I\", \"secret\": \"SECRET\"}", "either anon or key"},
        {"{\"addressing_style\": \"dns\"}", "auto, path or virtual"},
        {"{\"region\": \"EU West\"}", "no name of a region"},
        {"{\"ca_file\": \"/nonexistent\"}", "cannot be read"},
        {"{\"connect_timeout\": 0}", "seconds"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!check_eq(read_options(cases[i][0]), HR_EINVAL))
            printf("# %s\n", cases[i][0]);
        check_has(e.text, cases[i][1]);
        check_has(e.text, "s3://b: ");
        check(!strstr(e.text, "SECRET"));
    }
}

int main(void)
{
    static const char *const clean[] = {
        "AWS_PROFILE",        "AWS_ENDPOINT_URL",  "AWS_ENDPOINT_URL_S3", "AWS_REGION",
        "AWS_DEFAULT_REGION", "AWS_REQUEST_PAYER", "AWS_SKIP_SIGNATURE",  "AWS_NO_SIGN_REQUEST",
        "AWS_CA_BUNDLE",      "AWS_ENDPOINT",      "AWS_S3_ENDPOINT"};
    for (size_t i = 0; i < sizeof clean / sizeof *clean; i++)
        unsetenv(clean[i]);
    setenv("AWS_CONFIG_FILE", "/nonexistent", 1);
    setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent", 1);
    arena_init(&arena);
    RUN(the_spellings_of_all_clients_mean_the_same);
    RUN(styles);
    RUN(the_environment_fills_what_is_open);
    RUN(mistakes_are_named);
    arena_dispose(&arena);
    check_eq(mem_live(), 0);
    return t_done();
}
