/* libcurl easy handles: options, callbacks, recycling. Internal to the room (transfer.h).
 *
 * HTTP/1.1 on many connections: one HTTP/2 connection to a large store is slower than several of
 * HTTP/1.1. No redirects (headers with secrets would follow), no decoding (sizes are checked in
 * stored bytes), no signals, no environment. Own timers bound everything; libcurl's connect
 * time-out is set as well because it divides that time among the addresses of a host. QUICK_EXIT
 * keeps a cancel from waiting for a name server. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "net/hosts.h"
#include "net/tries.h"

#define HEAD_MAX (64u << 10)

/* libcurl allocates it anew for each transfer. From 128 KiB on glibc gives such blocks back to the
 * kernel at once, and 256 KiB buffers then cost 50 page faults a GET, a third of its CPU time. */
#define RECEIVE_BUFFER (120L << 10)

static size_t on_header(char *data, size_t size, size_t count, void *arg)
{
    struct easy *h = arg;
    struct transfer *t = h->t;
    size_t n = size * count;
    if (!t) /* hedge.h */
        return 0;
    if (t->now.replied) /* trailers of a chunked body */
        return n;
    if (t->hedge && !hedge_answered(t, h, n > 9 && data[9] == '2'))
        return 0;
    t->now.progress_ns = t->lane->loop->now;
    if (!t->now.first_byte_ns)
        t->now.first_byte_ns = clock_ns();
    if (n > 5 && !memcmp(data, "HTTP/", 5))
        buf_clear(&h->head);
    if (h->head.size + n > HEAD_MAX) {
        transfer_fault(t, OUTCOME_RETRY, CAUSE_WRONG, HR_ESTORE, "more than 64 KiB of headers");
        return 0;
    }
    if (buf_add(&h->head, data, n) < 0) {
        transfer_fault(t, OUTCOME_FINAL, CAUSE_NONE, HR_ENOMEM,
                       "no memory for the reply's headers");
        return 0;
    }
    if (data[0] != '\r' && data[0] != '\n')
        return n;
    reply_parse(&t->now.reply, h->head.data, h->head.size);
    if (t->now.reply.status / 100 == 1)
        return n;
    t->now.replied = true;
    transfer_answered(t);
    return body_head(t) ? n : 0;
}

static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
    struct transfer *t = ((struct easy *)arg)->t;
    size_t n = size * count;
    if (!t)
        return 0;
    t->now.progress_ns = t->lane->loop->now;
    return body_bytes(t, data, n) ? n : 0;
}

bool easy_reused(const struct easy *h)
{
    long connects = 1;
    h->lane->loop->net->curl.easy_getinfo(h->curl, CURLINFO_NUM_CONNECTS, &connects);
    return connects == 0;
}

static int on_sending(void *arg, char *ip, char *local_ip, int port, int local_port)
{
    struct easy *h = arg;
    struct transfer *t = h->t;
    struct loop *l = h->lane->loop;
    (void)ip, (void)local_ip, (void)port;
    if (!t)
        return CURL_PREREQFUNC_ABORT;
    if (!strncmp(h->wire.url.data, "http:", 5) && easy_reused(h) &&
        !probe_clean(&l->probe, local_port)) {
        if (!t->hedge)
            transfer_fault(t, OUTCOME_RETRY, CAUSE_STALE, HR_ESTORE,
                           "the kept connection is closed or holds stray bytes");
        return CURL_PREREQFUNC_ABORT;
    }
    try_connected(h);
    h->sent_ns = clock_ns();
    if (t->now.easy != h)
        return CURL_PREREQFUNC_OK;
    t->phase = PHASE_WAITING;
    t->now.sent_ns = h->sent_ns;
    uint64_t late = hedge_due(t, h->sent_ns),
             at = h->sent_ns + t->lane->client->config.policy.first_byte_ms * 1000000ull;
    timers_set(&l->timers, &t->timer, late < at ? late : at);
    return CURL_PREREQFUNC_OK;
}

/* As libcurl's own, but for the address (hosts.h). */
static curl_socket_t on_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
    struct easy *h = arg;
    union address_ip ip;
    h->warmed = false;
    if (purpose == CURLSOCKTYPE_IPCXN && a->addrlen <= sizeof ip) {
        memset(&ip, 0, sizeof ip);
        memcpy(&ip, &a->addr, a->addrlen);
        int ready = warm_take(h, &ip);
        h->warmed = ready >= 0;
        if (h->warmed)
            hosts_connected(h, &ip);
        else
            hosts_connect(h->lane->loop, h, &ip);
        memcpy(&a->addr, &ip, a->addrlen);
        h->peer = ip;
        if (h->warmed)
            return ready;
    }
    int fd = socket(a->family, a->socktype, a->protocol);
    if (fd >= 0)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fd;
}

static int on_socket_made(void *arg, curl_socket_t fd, curlsocktype purpose)
{
    struct easy *h = arg;
    (void)fd;
    return purpose == CURLSOCKTYPE_IPCXN && h->warmed ? CURL_SOCKOPT_ALREADY_CONNECTED
                                                      : CURL_SOCKOPT_OK;
}

static void set_options(struct easy *h, const struct curl_api *curl, const struct net_config *c)
{
    CURL *x = h->curl;
    curl->easy_setopt(x, CURLOPT_PRIVATE, h);
    curl->easy_setopt(x, CURLOPT_ERRORBUFFER, h->error);
    curl->easy_setopt(x, CURLOPT_NOSIGNAL, 1L);
    curl->easy_setopt(x, CURLOPT_NOPROGRESS, 1L);
    curl->easy_setopt(x, CURLOPT_HTTPGET, 1L);
    curl->easy_setopt(x, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl->easy_setopt(x, CURLOPT_HTTP09_ALLOWED, 0L);
    curl->easy_setopt(x, CURLOPT_FOLLOWLOCATION, 0L);
    curl->easy_setopt(x, CURLOPT_PATH_AS_IS, 1L);
    curl->easy_setopt(x, CURLOPT_BUFFERSIZE, RECEIVE_BUFFER);
    curl->easy_setopt(x, CURLOPT_TCP_KEEPALIVE, 1L);
    curl->easy_setopt(x, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl->easy_setopt(x, CURLOPT_QUICK_EXIT, 1L);
    curl->easy_setopt(x, CURLOPT_CONNECTTIMEOUT_MS, (long)c->policy.connect_ms);
    if (curl->easy_setopt(x, CURLOPT_PROTOCOLS_STR, "http,https") != CURLE_OK)
        curl->easy_setopt(x, (CURLoption)181 /* PROTOCOLS, before 7.85 */,
                          (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    curl->easy_setopt(x, CURLOPT_PROXY, c->proxy ? c->proxy : "");
    curl->easy_setopt(x, CURLOPT_NOPROXY,
                      c->no_proxy ? c->no_proxy : ""); /* NULL would read the environment */
    if (c->ca_file)
        curl->easy_setopt(x, CURLOPT_CAINFO, c->ca_file);
    curl->easy_setopt(x, CURLOPT_HEADERFUNCTION, on_header);
    curl->easy_setopt(x, CURLOPT_HEADERDATA, h);
    curl->easy_setopt(x, CURLOPT_WRITEFUNCTION, on_body);
    curl->easy_setopt(x, CURLOPT_WRITEDATA, h);
    if (!c->proxy) {
        curl->easy_setopt(x, CURLOPT_OPENSOCKETFUNCTION, on_socket);
        curl->easy_setopt(x, CURLOPT_OPENSOCKETDATA, h);
        curl->easy_setopt(x, CURLOPT_SOCKOPTFUNCTION, on_socket_made);
        curl->easy_setopt(x, CURLOPT_SOCKOPTDATA, h);
    }
    curl->easy_setopt(x, CURLOPT_PREREQDATA, h);
    h->knows_sending = curl->easy_setopt(x, CURLOPT_PREREQFUNCTION, on_sending) == CURLE_OK;
}

struct easy *easy_take(struct lane *lane, struct hr_error *e)
{
    struct easy *h = lane->idle;
    if (h) {
        lane->idle = h->next;
        return h;
    }
    const struct curl_api *curl = &lane->loop->net->curl;
    h = mem_zalloc(sizeof *h);
    if (h && !(h->curl = curl->easy_init())) {
        mem_free(h);
        h = NULL;
    }
    if (!h) {
        error_nomem(e, sizeof *h, "a transfer");
        return NULL;
    }
    h->lane = lane;
    h->gets = true;
    h->agent.data = (char *)"User-Agent: headrace";
    buf_init(&h->wire.url);
    buf_init(&h->wire.headers);
    buf_init(&h->head);
    buf_init(&h->body);
    set_options(h, curl, &lane->client->config);
    return h;
}

void easy_give(struct easy *h)
{
    const struct curl_api *curl = &h->lane->loop->net->curl;
    curl->slist_free_all(h->headers);
    h->headers = NULL;
    h->t = NULL;
    if (h->body.cap > NET_ERROR_BODY)
        buf_dispose(&h->body);
    h->next = h->lane->idle;
    h->lane->idle = h;
}

void easy_note_socket(struct easy *h)
{
    struct loop *l = h->lane->loop;
    curl_socket_t fd = CURL_SOCKET_BAD;
    long port = 0;
    l->net->curl.easy_getinfo(h->curl, CURLINFO_ACTIVESOCKET, &fd);
    l->net->curl.easy_getinfo(h->curl, CURLINFO_LOCAL_PORT, &port);
    if (fd != CURL_SOCKET_BAD)
        probe_note(&l->probe, (int)port, fd);
}

void easy_free(struct easy *h)
{
    const struct curl_api *curl = &h->lane->loop->net->curl;
    curl->easy_cleanup(h->curl);
    curl->slist_free_all(h->headers);
    curl->slist_free_all(h->resolve);
    buf_dispose(&h->wire.url);
    buf_dispose(&h->wire.headers);
    buf_dispose(&h->head);
    buf_dispose(&h->body);
    mem_free(h);
}

int net_wire_header(struct net_wire *w, const char *name, const char *value)
{
    buf_printf(&w->headers, "%s: %s", name, value);
    buf_putc(&w->headers, 0);
    return w->headers.failed ? -1 : 0;
}

static const char *range_text(const struct want *w, char *out, size_t n)
{
    unsigned long long first = w->first, length = w->length;
    if (w->kind == WANT_WHOLE)
        return NULL;
    if (w->kind == WANT_SUFFIX)
        snprintf(out, n, "bytes=-%llu", length);
    else
        snprintf(out, n, "bytes=%llu-%llu", first, first + length - 1);
    return out;
}

static int add_range(struct net_wire *w, const struct net_try *t)
{
    if (t->range)
        net_wire_header(w, "Range", t->range);
    return t->if_match ? net_wire_header(w, "If-Match", t->if_match) : 0;
}

static int add_headers(struct easy *h, const struct curl_api *curl)
{
    const struct buf *lines = &h->wire.headers;
    for (size_t at = 0; at < lines->size; at += strlen(lines->data + at) + 1) {
        struct curl_slist *longer = curl->slist_append(h->headers, lines->data + at);
        if (!longer)
            return -1;
        h->headers = longer;
    }
    return 0;
}

/* Handles are recycled, so all of it is set each time one has been other than a GET. */
static int set_method(struct easy *h, const struct curl_api *curl, const struct net_try *t)
{
    bool get = !strcmp(t->method, "GET");
    if (get && h->gets)
        return 0;
    h->gets = get;
    if (!strcmp(t->method, "HEAD"))
        return curl->easy_setopt(h->curl, CURLOPT_CUSTOMREQUEST, NULL) |
                       curl->easy_setopt(h->curl, CURLOPT_NOBODY, 1L)
                   ? -1
                   : 0;
    if (get) /* NOBODY goes with it */
        return curl->easy_setopt(h->curl, CURLOPT_HTTPGET, 1L) |
                       curl->easy_setopt(h->curl, CURLOPT_CUSTOMREQUEST, NULL)
                   ? -1
                   : 0;
    net_wire_header(&h->wire, "Expect", "");
    return curl->easy_setopt(h->curl, CURLOPT_NOBODY, 0L) |
                   curl->easy_setopt(h->curl, CURLOPT_POSTFIELDSIZE_LARGE,
                                     (curl_off_t)t->body_size) |
                   curl->easy_setopt(h->curl, CURLOPT_COPYPOSTFIELDS, t->body_size ? t->body : "") |
                   curl->easy_setopt(h->curl, CURLOPT_CUSTOMREQUEST, t->method)
               ? -1
               : 0;
}

/* The length of "https://host:port" where what follows can go out as it is; else 0. */
static size_t origin_of(const char *url)
{
    const char *at = strstr(url, "://");
    size_t n = at ? (size_t)(at - url) + 3 + strcspn(at + 3, "/?#") : 0;
    const unsigned char *c = (const unsigned char *)url + n;
    if (!n || *c != '/' || n + 2 > sizeof((struct easy *)0)->origin)
        return 0;
    while (*c > ' ' && *c < 127 && *c != '#')
        c++;
    return *c ? 0 : n;
}

/* For each request libcurl takes its URL apart and writes it anew, letter by letter, which costs as
 * much time as all that is done here. So it is told once what all requests have in common, and
 * the rest as a request target, which it does not look at. A proxy is sent the whole URL. */
static int set_url(struct easy *h, const struct curl_api *curl)
{
    const char *url = h->wire.url.data;
    size_t n = h->lane->client->config.proxy ? 0 : origin_of(url);
    CURLcode rc = curl->easy_setopt(h->curl, CURLOPT_REQUEST_TARGET, n ? url + n : NULL);
    if (rc != CURLE_OK)
        return -1;
    if (n && n == h->origin_size && !memcmp(url, h->origin, n))
        return 0;
    h->named = false;
    h->origin_size = n;
    memcpy(h->origin, url, n);
    memcpy(h->origin + n, "/", 2);
    return curl->easy_setopt(h->curl, CURLOPT_URL, n ? h->origin : url) == CURLE_OK ? 0 : -1;
}

int easy_prepare(struct easy *h, struct transfer *t, struct hr_error *e)
{
    const struct curl_api *curl = &h->lane->loop->net->curl;
    struct net_client *c = h->lane->client;
    char range[64];
    buf_clear(&h->wire.url);
    buf_clear(&h->wire.headers);
    buf_clear(&h->head);
    buf_clear(&h->body);
    h->error[0] = 0;
    h->t = t;
    h->sent_ns = 0;
    h->wire.mark = 0;
    struct net_try what = {.key = t->key,
                           .method = t->ask.method,
                           .query = t->ask.query,
                           .body = t->ask.body,
                           .body_size = t->ask.body_size,
                           .number = t->tries,
                           .range = range_text(&t->now.want, range, sizeof range)};
    if (what.range && t->now.resumed)
        what.if_match = t->object.etag;
    int rc = c->config.build(c->config.arg, &what, &h->wire, e);
    if (rc)
        return rc;
    if (set_method(h, curl, &what) < 0)
        return error_nomem(e, t->ask.body_size, "a request");
    if (add_range(&h->wire, &what) < 0 || h->wire.url.failed || add_headers(h, curl) < 0)
        return error_nomem(e, h->wire.url.size, "a request");
    h->agent.next = h->headers;
    if (set_url(h, curl) < 0 ||
        curl->easy_setopt(h->curl, CURLOPT_HTTPHEADER, &h->agent) != CURLE_OK ||
        curl->easy_setopt(h->curl, CURLOPT_FRESH_CONNECT, (long)t->fresh) != CURLE_OK)
        return error_nomem(e, h->wire.url.size, "a request");
    return 0;
}
