/* See judge.h. */
#include "net/judge.h"

#include <stdio.h>
#include <string.h>

#include "net/url.h"

static const char *status_text(int status)
{
    switch (status) {
    case 400:
        return " Bad Request";
    case 401:
        return " Unauthorized: the store wants credentials";
    case 403:
        return " Forbidden: the credentials do not suffice, or the link has expired";
    case 429:
        return " Too Many Requests";
    case 500:
        return " Internal Server Error";
    case 503:
        return " Service Unavailable";
    default:
        return "";
    }
}

/* Web servers say it in the page that comes with a 400: nginx, Apache, Go. */
static bool wants_tls(const struct net_reply *r)
{
    static const char *const words[] = {"plain HTTP request was sent to HTTPS",
                                        "HTTP request to an HTTPS",
                                        "speaking plain HTTP to an SSL"};
    for (size_t i = 0; r->head->status == 400 && i < sizeof words / sizeof *words; i++)
        if (memmem(r->body, r->body_size, words[i], strlen(words[i])))
            return true;
    return false;
}

static void say_status(struct transfer *t, enum outcome o, enum cause c, const struct net_saying *s)
{
    int status = t->now.reply.status;
    transfer_fault(t, o, c, HR_ESTORE, "status %d%s%s%s%s", status,
                   *s->code ? " " : status_text(status), s->code, s->hint ? "; " : "",
                   s->hint ? s->hint : "");
}

void judge_status(struct transfer *t)
{
    const struct net_config *c = &t->lane->client->config;
    const struct reply *r = &t->now.reply;
    const struct buf *body = &t->now.easy->body;
    struct net_reply reply = {.head = r,
                              .body = body->size ? body->data : "",
                              .body_size = body->size,
                              .key = t->key,
                              .mark = t->now.easy->wire.mark};
    struct net_saying say = {.code = ""};
    struct pin pin;
    if (r->status == 412 && t->now.resumed) {
        body_changed(t);
        return;
    }
    enum net_verdict verdict = c->judge(c->arg, &reply, &say);
    if (verdict == NET_AGAIN && retry_again_left(&t->retry)) {
        say_status(t, OUTCOME_RETRY, CAUSE_AGAIN, &say);
    } else if (verdict == NET_ABSENT) {
        if (t->object.seen || body_pinned(t, &pin))
            transfer_fault(t, OUTCOME_FINAL, CAUSE_NONE, HR_ESTORE,
                           "the object disappeared while the archive was being read (status %d)",
                           r->status);
        else
            transfer_fault(t, OUTCOME_FINAL, CAUSE_NONE, NET_MISSING, "missing (status %d)",
                           r->status);
    } else if (verdict == NET_THROTTLED || retry_throttled(r->status)) {
        say_status(t, OUTCOME_RETRY, CAUSE_THROTTLE, &say);
    } else if (verdict == NET_TEMPORARY || retry_status(r->status)) {
        say_status(t, OUTCOME_RETRY, CAUSE_SERVER, &say);
    } else if (r->status / 100 == 3 && !say.code[0]) {
        if (t->now.easy->gets && body_doubtful(t, "a redirect"))
            return;
        size_t n = 0;
        const char *to = reply_header(r, "location", &n);
        char location[256], shown[256];
        snprintf(location, sizeof location, "%.*s", (int)(n < 255 ? n : 255), to ? to : "");
        transfer_fault(
            t, OUTCOME_FINAL, CAUSE_NONE, HR_ESTORE,
            "status %d: a redirect to %s; redirects are not followed, open the archive there",
            r->status, *location ? url_redact(location, shown, sizeof shown) : "nowhere");
    } else {
        if (wants_tls(&reply))
            say.hint = "this port speaks https: write https:// before its name";
        say_status(t, OUTCOME_FINAL, CAUSE_NONE, &say);
    }
}

/* A certificate that was not believed: what to do depends on why, which libcurl says in words. */
static const char *certificate_hint(const char *text)
{
    if (strstr(text, "does not match"))
        return "is this the name that the server is meant to have?";
    if (strstr(text, "expired") || strstr(text, "not yet valid"))
        return "the server's certificate is over, or this machine's clock is wrong";
    return "name the right certificates by the storage option ca_file or SSL_CERT_FILE";
}

/* No way there: of the server, or of the proxy before it. */
static const char *connect_hint(const char *text, bool proxied)
{
    if (strstr(text, "CONNECT tunnel failed"))
        return " (the proxy refuses: give its user and password, or leave this host out by "
               "no_proxy; storage option "
               "proxy, or https_proxy)";
    return proxied ? " (through the proxy that the storage option proxy or https_proxy names)"
                   : "; is a server running there, and no firewall between?";
}

/* No reply: what libcurl says decides. */
void judge_silence(struct transfer *t, CURLcode code)
{
    struct easy *h = t->now.easy;
    const struct curl_api *curl = &t->lane->loop->net->curl;
    const char *text = h->error[0]        ? h->error
                       : code == CURLE_OK ? "an answer without headers"
                                          : curl->easy_strerror(code);
    enum cause c = t->phase == PHASE_CONNECTING && h->knows_sending ? CAUSE_CONNECT
                   : easy_reused(h)                                 ? CAUSE_STALE
                                                                    : CAUSE_RESET;
    bool proxied = t->lane->client->config.proxy != NULL;
    bool refused = strstr(text, "CONNECT tunnel failed") != NULL;
    const char *through =
        (c == CAUSE_CONNECT && proxied) || refused ? connect_hint(text, proxied) : "";
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
        transfer_fault(t, OUTCOME_RETRY, CAUSE_CONNECT, HR_ESTORE,
                       "%s; is the name right, and does this machine reach a name server?", text);
        break;
    case CURLE_COULDNT_RESOLVE_PROXY:
        transfer_fault(t, OUTCOME_RETRY, CAUSE_CONNECT, HR_ESTORE,
                       "%s; is the proxy's name right (storage option proxy, or https_proxy)?",
                       text);
        break;
    case CURLE_SSL_CONNECT_ERROR:
        transfer_fault(t, OUTCOME_RETRY, CAUSE_CONNECT, HR_ESTORE,
                       "%s; does this port speak https, and no old TLS?", text);
        break;
    case CURLE_COULDNT_CONNECT:
    case CURLE_PROXY:
        transfer_fault(t, OUTCOME_RETRY, CAUSE_CONNECT, HR_ESTORE, "%s%s", text,
                       connect_hint(text, proxied));
        break;
    case CURLE_GOT_NOTHING: /* as from a port of TLS that is spoken to without */
        transfer_fault(
            t, OUTCOME_RETRY, c, HR_ESTORE, "%s%s%s", text, through,
            t->lane->answered ? "" : "; is this a web server, or does this port speak https?");
        break;
    case CURLE_OK: /* a reply must have headers */
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL: /* not HTTP: as left over by a bad reply before */
        transfer_fault(t, OUTCOME_RETRY, c, HR_ESTORE, "%s%s", text, through);
        break;
    case CURLE_OUT_OF_MEMORY:
        transfer_fault(t, OUTCOME_FINAL, CAUSE_NONE, HR_ENOMEM, "libcurl: %s", text);
        break;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
        transfer_fault(t, OUTCOME_FINAL, CAUSE_NONE, HR_ESTORE, "%s; %s", text,
                       certificate_hint(text));
        break;
    default:
        transfer_fault(t, OUTCOME_FINAL, CAUSE_NONE, HR_ESTORE, "%s", text);
        break;
    }
}
