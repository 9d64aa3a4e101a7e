/* See loop.h. One turn: deliver mail, fire deadlines, let libcurl work, take what has finished,
 * wait.
 *
 * What has finished is read between perform and poll, always: reading it after poll lets a
 * finished transfer sleep through the whole poll time-out, which looks like a slow network. A
 * handle added late in a turn is no problem, since libcurl then makes poll return at once. */
#include "net/loop.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "net/hosts.h"
#include "net/tries.h"

#define CONNECTIONS_MAX 320L /* kept open per loop: a little over what may be in flight */

void loop_post(struct loop *l, struct mail *m)
{
    m->next = NULL;
    pthread_mutex_lock(&l->synced.lock);
    bool wake = !l->synced.first && !pthread_equal(pthread_self(), l->thread);
    *l->synced.last = m;
    l->synced.last = &m->next;
    if (wake) /* under the lock: the loop cannot end in between */
        l->net->curl.multi_wakeup(l->multi);
    pthread_mutex_unlock(&l->synced.lock);
}

static bool deliver_mail(struct loop *l) /* false: time to end */
{
    pthread_mutex_lock(&l->synced.lock);
    struct mail *m = l->synced.first;
    l->synced.first = NULL;
    l->synced.last = &l->synced.first;
    bool quit = l->synced.quit;
    pthread_mutex_unlock(&l->synced.lock);
    bool any = m;
    while (m) {
        struct mail *next = m->next; /* m may be freed by its delivery */
        m->deliver(l, m);
        m = next;
    }
    return any || !quit;
}

static bool has_mail(struct loop *l)
{
    pthread_mutex_lock(&l->synced.lock);
    bool any = l->synced.first || l->synced.quit;
    pthread_mutex_unlock(&l->synced.lock);
    return any;
}

static void take_finished(struct loop *l)
{
    const struct curl_api *curl = &l->net->curl;
    CURLMsg *m;
    int left;
    while ((m = curl->multi_info_read(l->multi, &left)))
        if (m->msg == CURLMSG_DONE) {
            void *easy = NULL;
            CURLcode code = m->data.result; /* the message dies with the handle's removal */
            curl->easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &easy);
            transfer_ended(easy, code);
        }
}

static int poll_time(const struct loop *l)
{
    uint64_t next = timers_next(&l->timers), warm = warm_next(l), now = clock_ns();
    next = next < warm ? next : warm;
    if (next == UINT64_MAX)
        return INT_MAX;
    uint64_t ms = next > now ? (next - now + 999999) / 1000000 : 0;
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

static void *run(void *arg)
{
    struct loop *l = arg;
    struct net *n = l->net;
    const struct curl_api *curl = &n->curl;
    int running;
    l->now = clock_ns();
    while (deliver_mail(l)) {
        struct timer *t;
        while ((t = timers_due(&l->timers, l->now)))
            transfer_timer(t);
        curl->multi_perform(l->multi, &running);
        l->now = clock_ns();
        tries_drop_losers(l);
        warm_tend(l);
        transfer_pump_widened(l); /* first: lanes may go with what has finished */
        take_finished(l);
        if (!has_mail(l))
            curl->multi_poll(l->multi, NULL, 0, poll_time(l), NULL);
        l->now = clock_ns();
    }
    curl->multi_cleanup(l->multi);
    timers_dispose(&l->timers);
    hosts_dispose(l); /* from here on no lookup posts */
    pthread_mutex_destroy(&l->synced.lock);
    net_disown(n);
    return NULL;
}

/* glibc gives the end of a thread's heap back to the kernel as soon as 128 KiB are free there, and
 * libcurl's receive buffers lie there for as long as a transfer: dozens of page faults a GET.
 * A block of this size that comes and goes teaches it that larger ones do, for good. */
#define COMES_AND_GOES ((size_t)8 << 20)
static void keep_heap(void)
{
    mem_free(mem_alloc(COMES_AND_GOES));
}

int loop_start(struct loop *l, struct net *n, int number, struct hr_error *e)
{
    *l = (struct loop){.net = n};
    l->synced.last = &l->synced.first;
    l->multi = n->curl.multi_init();
    if (!l->multi)
        return error_nomem(e, 0, "a network loop");
    keep_heap();
    n->curl.multi_setopt(l->multi, CURLMOPT_MAXCONNECTS, CONNECTIONS_MAX);
    pthread_mutex_init(&l->synced.lock, NULL);
    char name[16];
    snprintf(name, sizeof name, "hr-net-%d", number);
    int rc = thread_start(&l->thread, name, run, l);
    if (rc == 0)
        return 0;
    n->curl.multi_cleanup(l->multi);
    pthread_mutex_destroy(&l->synced.lock);
    return error_set(e, HR_ENOMEM, "no network thread could be started: %s", strerror(-rc));
}

void loop_quit(struct loop *l)
{
    pthread_mutex_lock(&l->synced.lock);
    l->synced.quit = true;
    l->net->curl.multi_wakeup(l->multi);
    pthread_mutex_unlock(&l->synced.lock);
}
