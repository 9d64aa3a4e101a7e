/* Answers of token services, and what is made of what is given. */
#include "store/cred_azure.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/cred_azure_in.h"
#include "t.h"

/* The answer of a service: rc, the token and its end in *v. */
static int answer(const char *json, struct cred_value *v, struct hr_error *e)
{
    struct arena a;
    struct buf body;
    arena_init(&a);
    buf_init(&body);
    buf_puts(&body, json);
    *v = (struct cred_value){.id = NULL};
    int rc = azure_token(&a, &body, "where", v, e);
    buf_dispose(&body);
    arena_dispose(&a);
    return rc;
}

static void answers_say_how_long_a_token_is_valid(void)
{
    static const struct {
        const char *json;
        int64_t until; /* > 0: Unix seconds; else: -so many seconds from now */
    } cases[] = {
        {"{\"access_token\": \"T\", \"expires_in\": 3599}", -3599},
        {"{\"access_token\": \"T\", \"expires_in\": \"3599\", \"expires_on\": \"1\"}", -3599},
        {"{\"access_token\": \"T\", \"expires_on\": \"4102444800\"}", 4102444800},
        {"{\"access_token\": \"T\", \"expires_on\": 4102444800, \"expires_in\": \"\"}", 4102444800},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cred_value v;
        int64_t now = (int64_t)time(NULL), until = cases[i].until;
        check_eq(answer(cases[i].json, &v, NULL), 1);
        check_str(v.token, "T");
        check(azure_kind_of(&v) == AZURE_BEARER);
        check(until > 0 ? v.until == until
                        : v.until + until - now >= 0 && v.until + until - now < 3);
        cred_value_clear(&v);
    }
}

static void answers_without_a_token_or_an_end_are_errors(void)
{
    static const char *const cases[][2] = {
        {"{\"expires_in\": 3599}", "access_token"},
        {"{\"access_token\": \"\", \"expires_in\": 3599}", "access_token"},
        {"{\"access_token\": \"SECRET\\r\\nX: y\", \"expires_in\": 3599}", "access_token"},
        {"{\"access_token\": \"SECRET\"}", "how long"},
        {"{\"access_token\": \"SECRET\", \"expires_in\": -1}", "how long"},
        {"{\"access_token\": \"SECRET\", \"expires_in\": 0}", "how long"},
        {"{\"access_token\": \"SECRET\", \"expires_on\": \"09/14/2017 00:00:00 PM +00:00\"}",
         "how long"},
        {"<html>", "where"},
        {"", "where"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cred_value v;
        struct hr_error e = {0};
        check(answer(cases[i][0], &v, &e) < 0);
        check_has(e.text, cases[i][1]);
        check(!strstr(e.text, "SECRET"));
        check(!v.token);
    }
}

static void refusals_are_one_clean_line(void)
{
    struct arena a;
    struct buf body;
    struct hr_error e = {0};
    arena_init(&a);
    buf_init(&body);
    buf_puts(&body, "{\"error\": \"invalid_client\", \"error_description\": \"AADSTS7000215: wrong "
                    "\\u00e9\\r\\n"
                    "Trace ID: 1\"}");
    check_eq(azure_refusal(&a, &body, "https://login/x", HR_ESTORE, &e), HR_ESTORE);
    check_str(e.text, "invalid_client: AADSTS7000215: wrong ?? (https://login/x)");
    buf_clear(&body);
    buf_puts(&body, "{\"error\": {\"code\": 1}}");
    error_set(&e, HR_ESTORE, "as before");
    check_eq(azure_refusal(&a, &body, "x", HR_ESTORE, &e), HR_ESTORE);
    check_str(e.text, "as before");
    check_eq(azure_refusal(&a, &body, "x", HR_ECLOSED, &e), HR_ECLOSED);
    check_str(e.text, "as before");
    buf_dispose(&body);
    arena_dispose(&a);
}

/* ---- what is given --------------------------------------------------------------------------- */

static void ready(void *arg)
{
    (void)arg;
}

static int take(const struct azure_login *given, const struct azure_login *found, bool anonymous,
                struct cred_value *v, struct hr_error *e)
{
    struct azure_config c = {.account = "acc",
                             .given = *given,
                             .found = *found,
                             .anonymous = anonymous,
                             .what = "az://here",
                             .ready = ready};
    struct cred *cred = NULL;
    struct cred_use use = {.value = NULL};
    int rc = cred_azure_new(&c, &cred, e);
    if (rc < 0)
        return rc;
    while ((rc = cred_get(cred, &use, e)) == NET_WAIT)
        usleep(1000);
    if (rc == 0)
        cred_value_set(v, use.value->id, use.value->secret, use.value->token, 0, NULL);
    cred_done(&use);
    cred_close(cred);
    return rc;
}

static void the_first_of_what_is_given_is_taken(void)
{
    static const struct {
        struct azure_login given, found;
        enum azure_kind kind;
        const char *secret, *token;
    } cases[] = {
        {{.token = "T", .key = "K", .sas = "S"}, {.key = "F"}, AZURE_BEARER, NULL, "T"},
        {{.key = "K", .sas = "S"}, {.token = "F"}, AZURE_KEY, "K", NULL},
        {{.sas = "?sig=S"}, {.key = "F"}, AZURE_SAS, NULL, "sig=S"},
        {{.client = "me"}, {.token = "T", .key = "F"}, AZURE_BEARER, NULL, "T"},
        {{.client = "me"}, {.key = "F", .sas = "S"}, AZURE_KEY, "F", NULL},
        {{.key = NULL}, {.sas = "S", .imds = "http://127.0.0.1:9"}, AZURE_SAS, NULL, "S"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cred_value v = {.id = NULL};
        struct hr_error e = {0};
        if (!check_eq(take(&cases[i].given, &cases[i].found, true, &v, &e), 0))
            printf("# %s\n", e.text);
        check(azure_kind_of(&v) == cases[i].kind);
        check(cases[i].secret ? v.secret && !strcmp(v.secret, cases[i].secret) : !v.secret);
        check(cases[i].token ? v.token && !strcmp(v.token, cases[i].token) : !v.token);
        cred_value_clear(&v);
    }
}

static void identities_given_in_part_are_errors_where_they_stay_so(void)
{
    struct cred_value v = {.id = NULL};
    struct hr_error e = {0};
    const struct azure_login none = {.key = NULL};
    check(take(&(struct azure_login){.client_secret = "SECRET"}, &none, true, &v, &e) < 0);
    check_has(e.text, "AZURE_CLIENT_ID");
    check(!strstr(e.text, "SECRET"));
    check(take(&(struct azure_login){.token_file = "/none", .client = "c"}, &none, true, &v, &e) <
          0);
    check_has(e.text, "AZURE_TENANT_ID");
    check(take(&(struct azure_login){.token_file = "/none", .client = "c", .tenant = "t"}, &none,
               true, &v, &e) < 0);
    check_has(e.text, "No such file");
}

static void nothing_leaks(void)
{
    for (int i = 0; i < 3000 && mem_live(); i++) /* the threads that fetched let go of it */
        usleep(1000);
    check_eq(mem_live(), 0);
}

int main(void)
{
    RUN(answers_say_how_long_a_token_is_valid);
    RUN(answers_without_a_token_or_an_end_are_errors);
    RUN(refusals_are_one_clean_line);
    RUN(the_first_of_what_is_given_is_taken);
    RUN(identities_given_in_part_are_errors_where_they_stay_so);
    RUN(nothing_leaks);
    return t_done();
}
