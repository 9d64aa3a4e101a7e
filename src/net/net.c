/* The network threads of a process as one object, and how it ends.
 *
 * There is no global here: api/ owns one `struct net` and hands it to every store. `refs` counts users, each client one;
 * when the last goes, nothing is in flight any more and the loops are told to end. That last one may go on a loop thread
 * (in a `done` that closes a store), which cannot join itself: then the threads are let go and the last of them frees. */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/loop.h"

struct net *net_new(const struct net_options *o, struct hr_error *e)
{
    int threads = o->threads ? o->threads : 1;
    if (threads < 1 || threads > NET_THREADS_MAX) {
        error_set(e, HR_EINVAL, "net_threads = %d; it must be 1 to %d", o->threads, NET_THREADS_MAX);
        return NULL;
    }
    struct net *n = mem_zalloc(sizeof *n);
    if (!n) {
        error_nomem(e, sizeof *n, "the network threads");
        return NULL;
    }
    n->pid = getpid();
    n->threads = threads;
    n->log = o->log;
    n->log_arg = o->log_arg;
    atomic_init(&n->refs, 1);
    atomic_init(&n->owners, 1);
    pthread_mutex_init(&n->lock, NULL);
    return n;
}

struct net *net_ref(struct net *n)
{
    atomic_fetch_add(&n->refs, 1);
    return n;
}

bool net_forked(const struct net *n)
{
    return getpid() != n->pid;
}

void net_disown(struct net *n)
{
    if (atomic_fetch_sub(&n->owners, 1) != 1)
        return;
    pthread_mutex_destroy(&n->lock);
    curl_unload(&n->curl);
    mem_free(n);
}

static void end(struct net *n, int running, bool inside)
{
    pthread_t threads[NET_THREADS_MAX];
    for (int i = 0; i < running; i++)
        threads[i] = n->loops[i].thread;
    for (int i = 0; i < running; i++)
        loop_quit(&n->loops[i]);
    for (int i = 0; i < running; i++)
        if (inside)
            pthread_detach(threads[i]);
        else
            pthread_join(threads[i], NULL);
}

void net_unref(struct net *n)
{
    if (!n || net_forked(n) || atomic_fetch_sub(&n->refs, 1) != 1)
        return;
    int running = n->running ? n->threads : 0;
    bool inside = false;
    for (int i = 0; i < running; i++)
        inside |= pthread_equal(n->loops[i].thread, pthread_self()) != 0;
    end(n, running, inside);
    net_disown(n);
}

int net_begin(struct net *n, struct hr_error *e)
{
    int rc = 0, started = 0;
    pthread_mutex_lock(&n->lock);
    if (!n->running) {
        rc = curl_load(&n->curl, e);
        while (rc == 0 && started < n->threads) {
            atomic_fetch_add(&n->owners, 1);
            rc = loop_start(&n->loops[started], n, started, e);
            if (rc < 0)
                atomic_fetch_sub(&n->owners, 1);
            else
                started++;
        }
        n->running = rc == 0;
        if (rc < 0 && n->curl.handle) {
            end(n, started, false);
            curl_unload(&n->curl);
        }
    }
    pthread_mutex_unlock(&n->lock);
    return rc;
}

void net_log(struct net *n, int level, const char *format, ...)
{
    if (!n->log)
        return;
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    n->log(n->log_arg, level, text);
}
