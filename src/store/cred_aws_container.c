/* The credential service beside a container: ECS (a path on a link-local address), EKS pod
 * identity, Greengrass and others (a whole URL). A token goes with the request, so over plain http
 * only this machine and the two known addresses are asked; the token's file is read each time,
 * since its contents change. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/hash.h"
#include "store/cred_aws_in.h"

#define ECS "http://169.254.170.2"

static bool allowed_host(const char *host)
{
    static const char *const known[] = {"localhost", "169.254.170.2", "169.254.170.23"};
    struct in_addr v4;
    struct in6_addr v6, pods;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcasecmp(host, known[i]))
            return true;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, host, &v6) == 1 &&
           (IN6_IS_ADDR_LOOPBACK(&v6) ||
            (inet_pton(AF_INET6, "fd00:ec2::23", &pods) == 1 && !memcmp(&v6, &pods, sizeof v6)));
}

/* The host of an http URL into `host`; false where libcurl might see another one. */
static bool host_of(const char *url, char *host, size_t room)
{
    const char *from = url + 7, *end = from + strcspn(from, "/?#");
    if (memchr(from, '@', (size_t)(end - from)) || memchr(from, '\\', (size_t)(end - from)) ||
        memchr(from, '%', (size_t)(end - from)))
        return false;
    if (*from == '[') {
        const char *close = memchr(from, ']', (size_t)(end - from));
        if (!close)
            return false;
        end = close;
        from++;
    } else {
        const char *colon = memchr(from, ':', (size_t)(end - from));
        end = colon ? colon : end;
    }
    if ((size_t)(end - from) >= room)
        return false;
    memcpy(host, from, (size_t)(end - from));
    host[end - from] = 0;
    return true;
}

static int check_url(const char *url, struct hr_error *e)
{
    char host[128];
    if (!strncasecmp(url, "https://", 8))
        return 0;
    if (!strncasecmp(url, "http://", 7) && host_of(url, host, sizeof host) && allowed_host(host))
        return 0;
    return error_set(e, HR_EINVAL,
                     "AWS_CONTAINER_CREDENTIALS_FULL_URI: %.120s: over plain http only this "
                     "machine, 169.254.170.2, 169.254.170.23 and [fd00:ec2::23] may be asked",
                     url);
}

/* Into *token; empty: there is none. */
static int read_token(const struct aws_user *u, struct buf *token, struct hr_error *e)
{
    const char *path = aws_env(u, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    const char *text = aws_env(u, "AWS_CONTAINER_AUTHORIZATION_TOKEN");
    int rc = path ? secret_read(path, token) : text ? buf_puts(token, text) : 0;
    if (rc < 0 && path)
        return error_set(e, HR_ESTORE, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: %s: %s", path,
                         strerror(-rc));
    if (rc < 0)
        return error_nomem(e, strlen(text), "a token");
    while (token->size && strchr(" \t\r\n", token->data[token->size - 1]))
        token->data[--token->size] = 0;
    if (token->size && strpbrk(token->data, "\r\n"))
        return error_set(e, HR_EINVAL, "%s: more than one line",
                         path ? path : "AWS_CONTAINER_AUTHORIZATION_TOKEN");
    return 0;
}

struct container {
    struct aws *aws;
    struct arena arena;
    struct buf url, token, body;
};

static int fetch(void *arg, struct cred_value *v, struct buf *why, struct hr_error *e)
{
    struct container *c = arg;
    const char *url = c->url.data, *token = c->token.size ? c->token.data : NULL;
    static const struct aws_json_names names = {
        "AccessKeyId", "SecretAccessKey", "Token", "Expiration", false, false};
    const char *headers[] = {"Accept", "application/json", token ? "Authorization" : NULL, token,
                             NULL};
    struct meta_ask ask = {
        .url = url, .headers = headers, .neighbour = strncasecmp(url, "https:", 6) != 0};
    struct json *answer;
    int status;
    (void)why;
    TRY(meta_request(c->aws->meta, &ask, &status, &c->body, e));
    TRY(json_parse(&c->arena, c->body.data, c->body.size, url, &answer, e));
    return aws_json_value(answer, &names, url, v, e);
}

/* Who has another token may be somebody else. */
static int ask(struct container *c, struct cred_value *v, struct buf *why, struct hr_error *e)
{
    const struct aws_user *u = &c->aws->user;
    const char *path = aws_env(u, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    const uint64_t who = path ? 0 : hash_bytes(c->token.data, c->token.size, 0);
    const char *key = arena_printf(&c->arena, "container %s %s %llx", c->url.data, path ? path : "",
                                   (unsigned long long)who);
    return key ? shared_ask(c->aws->shared, key, &c->aws->seen_container, fetch, c, v, why, e)
               : error_nomem(e, c->url.size, "a request");
}

int aws_container(struct aws *a, struct cred_value *v, struct buf *why, struct hr_error *e)
{
    const char *relative = aws_env(&a->user, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *full = aws_env(&a->user, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
    struct container c = {.aws = a};
    if (!relative && !full) {
        buf_puts(why, "no AWS_CONTAINER_CREDENTIALS_… is set");
        return 0;
    }
    if (!relative)
        TRY(check_url(full, e));
    arena_init(&c.arena);
    if (relative)
        buf_puts(&c.url, relative[0] == '/' ? ECS : ECS "/");
    buf_puts(&c.url, relative ? relative : full);
    int rc =
        c.url.failed ? error_nomem(e, c.url.size, "a request") : read_token(&a->user, &c.token, e);
    if (rc == 0)
        rc = ask(&c, v, why, e);
    secret_wipe(&c.token);
    secret_wipe(&c.body);
    buf_dispose(&c.url);
    arena_dispose(&c.arena);
    return rc;
}
