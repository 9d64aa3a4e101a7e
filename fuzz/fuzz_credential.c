/* JSON that brings credentials: answers of token endpoints and metadata services, Google's key files. Whatever the text, there
 * is a whole credential or an error in one line, and no error shows what stands behind a secret's name. The first byte says
 * which kind it is. Endpoints that a key file names are not asked: requests end at once. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/cred_aws_in.h"
#include "store/cred_azure_in.h"
#include "store/cred_gcs_in.h"

#define SECRET "c2VjcmV0" /* of the corpus */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A type or an endpoint is shown, whatever it says. */
static void check_error(int rc, const struct hr_error *e)
{
    bool names = strstr(e->text, "of type \"") || strstr(e->text, "://");
    if (rc == 0 || (rc < 0 && (!e->text[0] || strpbrk(e->text, "\r\n"))))
        __builtin_trap();
    if (rc < 0 && !names && strstr(e->text, SECRET))
        __builtin_trap();
}

static void check_header(const char *s) /* it becomes part of a request's head */
{
    if (!s || !*s || strpbrk(s, "\r\n"))
        __builtin_trap();
}

static void google_answer(const struct buf *body, struct arena *a)
{
    struct cred_value v = {.id = NULL};
    struct hr_error e = {0};
    (void)a;
    int rc = gcs_token_answer(body, "http://here", &v, &e);
    check_error(rc, &e);
    if (rc > 0)
        check_header(v.token);
    cred_value_clear(&v);
}

static void azure_answer(const struct buf *body, struct arena *a)
{
    struct cred_value v = {.id = NULL};
    struct hr_error e = {0};
    int rc = azure_token(a, body, "http://here", &v, &e);
    check_error(rc, &e);
    if (rc > 0)
        check_header(v.token);
    cred_value_clear(&v);
    error_set(&e, HR_ESTORE, "refused");
    azure_refusal(a, body, "http://here", HR_ESTORE, &e);
    if (!e.text[0] || strpbrk(e.text, "\r\n"))
        __builtin_trap();
}

static void aws_answer(const struct buf *body, struct arena *a)
{
    static const struct aws_json_names names = {
        "AccessKeyId", "SecretAccessKey", "Token", "Expiration", false, false};
    struct cred_value v = {.id = NULL};
    struct hr_error e = {0};
    struct json *answer;
    if (json_parse(a, body->data, body->size, "here", &answer, NULL) < 0)
        return;
    int rc = aws_json_value(answer, &names, "here", &v, &e);
    check_error(rc, &e);
    if (rc > 0 && (!v.id || !*v.id || !v.secret || !*v.secret))
        __builtin_trap();
    cred_value_clear(&v);
}

static void key_file(const struct buf *body, struct arena *a)
{
    static struct meta *meta; /* stopped: whatever is asked ends at once */
    struct gcs g = {.meta = meta};
    struct cred_value v = {.id = NULL};
    struct hr_error e = {0};
    (void)a;
    if (!meta && meta_new(&(struct meta_config){.net = NULL}, &meta, NULL) < 0)
        return; /* libcurl is not installed */
    meta_stop(meta);
    g.meta = meta;
    int rc = gcs_json(&g, body->data, body->size, "key.json", &v, &e);
    check_error(rc, &e);
    cred_value_clear(&v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct arena a;
    struct buf body;
    if (!n)
        return 0;
    buf_init(&body);
    arena_init(&a);
    buf_puts(&body, "");
    buf_add(&body, data + 1, n - 1);
    (data[0] == 'g'   ? google_answer
     : data[0] == 'z' ? azure_answer
     : data[0] == 'a' ? aws_answer
                      : key_file)(&body, &a);
    buf_dispose(&body);
    arena_dispose(&a);
    return 0;
}
