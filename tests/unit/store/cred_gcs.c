/* Google's JSON credentials and the answers of token endpoints, as far as nobody is asked. */
#include "store/cred_gcs_in.h"

#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "t.h"

static struct gcs g;
static struct cred_value v;
static struct hr_error e;

static int read_json(const char *text)
{
    e = (struct hr_error){0};
    v = (struct cred_value){0};
    return gcs_json(&g, text, strlen(text), "key.json", &v, &e);
}

static void what_is_no_credential_is_named_and_not_shown(void)
{
    static const struct {
        const char *text;
        int rc;
        const char *part;
    } cases[] = {
        {"", HR_EINVAL, "this is not JSON"},
        {"HIDDEN", HR_EINVAL, "this is not JSON"},
        {"{\"private_key\": \"HIDDEN", HR_EINVAL, "this is not JSON"},
        {"[\"HIDDEN\"]", HR_EINVAL, "no \"type\""},
        {"{\"type\": 5}", HR_EINVAL, "no \"type\""},
        {"{\"type\": \"external_account\", \"x\": \"HIDDEN\"}", HR_EUNSUPPORTED,
         "\"external_account\" are not supported"},
        {"{\"type\": \"impersonated_service_account\"}", HR_EUNSUPPORTED,
         "\"impersonated_service_account\" are not supported"},
        {"{\"type\": \"service_account\"}", HR_EINVAL, "\"client_email\" is missing"},
        {"{\"private_key\": \"HIDDEN\"}", HR_EINVAL, "\"client_email\" is missing"},
        {"{\"private_key\": \"HIDDEN\", \"client_email\": \"a@b\"}", HR_EINVAL, "RSA"},
        {"{\"type\": \"authorized_user\", \"client_secret\": \"HIDDEN\"}", HR_EINVAL,
         "\"client_id\" is missing"},
        {"{\"refresh_token\": \"HIDDEN\", \"client_id\": \"c\"}", HR_EINVAL,
         "\"client_secret\" is missing"},
        {"{\"type\": \"authorized_user\", \"token_uri\": \"http://127.0.0.1.far.example/\"}",
         HR_EINVAL, "https://"},
        {"{\"type\": \"service_account\", \"token_uri\": \"http://localhost@far.example/\"}",
         HR_EINVAL, "https://"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_eq(read_json(cases[i].text), cases[i].rc);
        check_has(e.text, "key.json");
        check_has(e.text, cases[i].part);
        check(!strstr(e.text, "HIDDEN") && !v.token);
    }
}

static int read_answer(const char *text)
{
    struct buf body;
    buf_init(&body);
    buf_puts(&body, text);
    e = (struct hr_error){0};
    v = (struct cred_value){0};
    int rc = gcs_token_answer(&body, "https://t/token", &v, &e);
    buf_dispose(&body);
    return rc;
}

static void answers_of_token_endpoints_are_checked(void)
{
    int64_t now = (int64_t)time(NULL);
    check_eq(read_answer("{\"access_token\": \"t\", \"expires_in\": 30}"), 1);
    check_str(v.token, "t");
    check(v.until >= now + 30 && v.until <= now + 32);
    cred_value_clear(&v);
    check_eq(read_answer("{\"access_token\": \"t\"}"), 1);
    check(v.until >= now + 3600);
    cred_value_clear(&v);
    static const char *const wrong[] = {
        "",
        "<html>HIDDEN</html>",
        "[]",
        "{\"id_token\": \"HIDDEN\"}",
        "{\"access_token\": \"\"}",
        "{\"access_token\": \"HIDDEN\\r\\nX-Y: z\"}",
        "{\"access_token\": \"HIDDEN\", \"expires_in\": \"soon\"}",
        "{\"access_token\": \"HIDDEN\", \"expires_in\": -1}",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        check_eq(read_answer(wrong[i]), HR_ESTORE);
        check_has(e.text, "https://t/token");
        check(!strstr(e.text, "HIDDEN") && !v.token);
    }
}

static void the_environment_is_copied(void)
{
    struct gcs_env env;
    struct arena arena;
    arena_init(&arena);
    setenv("CLOUDSDK_CONFIG", "/etc/sdk", 1);
    setenv("GCE_METADATA_ROOT", "root", 1);
    setenv("GOOGLE_APPLICATION_CREDENTIALS", "", 1);
    check_eq(gcs_env_read(&env, &arena, &e), 0);
    setenv("CLOUDSDK_CONFIG", "/other", 1);
    check_str(env.gcloud_file, "/etc/sdk/application_default_credentials.json");
    check_str(env.metadata, "root");
    check(!env.application_file && !env.no_metadata);
    unsetenv("CLOUDSDK_CONFIG");
    setenv("GCE_METADATA_HOST", "host", 1);
    setenv("HOME", "/home/me", 1);
    setenv("NO_GCE_CHECK", "True", 1);
    check_eq(gcs_env_read(&env, &arena, &e), 0);
    check_str(env.gcloud_file, "/home/me/.config/gcloud/application_default_credentials.json");
    check_str(env.metadata, "host");
    check(env.no_metadata);
    arena_dispose(&arena);
}

static void ready(void *arg)
{
    (void)arg;
}

/* A chain that is given all there is needs neither network nor libcurl. */
static void what_is_given_is_used_alone(void)
{
    static const struct gcs_env env = {.key = "{}"};
    struct gcs_config c = {.bearer = "token", .env = &env, .what = "gs://b", .ready = ready};
    struct cred_use use;
    struct cred *cred = NULL;
    for (uint64_t n = 1; n < 20 && !cred; n++) {
        uint64_t live = mem_live();
        mem_fail_at(n, false);
        int rc = cred_gcs_new(&c, &cred, &e);
        mem_fail_at(0, false);
        check_eq(rc, rc ? HR_ENOMEM : 0);
        if (rc)
            check_eq(mem_live(), live);
    }
    if (!check(cred != NULL))
        return;
    int rc;
    while ((rc = cred_get(cred, &use, &e)) == NET_WAIT)
        usleep(1000);
    if (check_eq(rc, 0)) {
        check_str(use.value->token, "token");
        check_eq(use.value->until, 0);
        cred_done(&use);
    }
    cred_close(cred);
}

int main(void)
{
    RUN(what_is_no_credential_is_named_and_not_shown);
    RUN(answers_of_token_endpoints_are_checked);
    RUN(the_environment_is_copied);
    RUN(what_is_given_is_used_alone);
    return t_done();
}
