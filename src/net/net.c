/* The network threads of a process as one object, and how it ends.
 *
 * There is no global here: api/ owns one `struct net` and hands it to every store. The user who
 * leaves last waits until the closed clients have ended their transfers, and joins the threads:
 * so none is left that could meet the exit handlers of a process that ends. Where the last one
 * leaves on a network thread itself (a `done` that closes a store) nobody can wait: the threads
 * are let go, and the last of them frees. */
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
        error_set(e, HR_EINVAL, "net_threads = %d; it must be 1 to %d", o->threads,
                  NET_THREADS_MAX);
        return NULL;
    }
    struct net *n = mem_zalloc(sizeof *n);
    if (!n) {
        error_nomem(e, sizeof *n, "the network threads");
        return NULL;
    }
    n->pid = getpid();
    n->threads = threads;
    n->trace = o->trace && o->log;
    n->log = o->log;
    n->log_arg = o->log_arg;
    atomic_init(&n->refs, 1);
    atomic_init(&n->owners, 1);
    pthread_mutex_init(&n->synced.lock, NULL);
    pthread_cond_init(&n->synced.drained, NULL);
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
    pthread_cond_destroy(&n->synced.drained);
    pthread_mutex_destroy(&n->synced.lock);
    curl_unload(&n->curl);
    mem_free(n);
}

static void end_loops(struct net *n, int running, bool inside)
{
    pthread_t threads[NET_THREADS_MAX]; /* let go, a thread may free the net */
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

static bool on_loop(const struct net *n, int running)
{
    for (int i = 0; i < running; i++)
        if (pthread_equal(n->loops[i].thread, pthread_self()))
            return true;
    return false;
}

void net_unref(struct net *n)
{
    if (!n || net_forked(n) || atomic_fetch_sub(&n->refs, 1) != 1)
        return;
    pthread_mutex_lock(&n->synced.lock);
    int running = n->synced.running ? n->threads : 0;
    bool inside = on_loop(n, running), later = inside && n->synced.clients;
    n->synced.abandoned = later;
    while (!inside && n->synced.clients)
        pthread_cond_wait(&n->synced.drained, &n->synced.lock);
    pthread_mutex_unlock(&n->synced.lock);
    if (later)
        return;
    end_loops(n, running, inside);
    net_disown(n);
}

static int start_threads(struct net *n, struct hr_error *e)
{
    int started = 0, rc = curl_load(&n->curl, e);
    TRY(rc);
    while (rc == 0 && started < n->threads) {
        atomic_fetch_add(&n->owners, 1);
        rc = loop_start(&n->loops[started], n, started, e);
        if (rc < 0)
            atomic_fetch_sub(&n->owners, 1);
        else
            started++;
    }
    if (rc < 0) {
        end_loops(n, started, false);
        curl_unload(&n->curl);
    }
    return rc;
}

int net_join(struct net *n, struct hr_error *e)
{
    pthread_mutex_lock(&n->synced.lock);
    int rc = n->synced.running ? 0 : start_threads(n, e);
    if (rc == 0) {
        n->synced.running = true;
        n->synced.clients++;
    }
    pthread_mutex_unlock(&n->synced.lock);
    return rc;
}

void net_leave(struct net *n)
{
    pthread_mutex_lock(&n->synced.lock);
    bool last = --n->synced.clients == 0, end = last && n->synced.abandoned;
    if (last)
        pthread_cond_broadcast(&n->synced.drained);
    pthread_mutex_unlock(&n->synced.lock);
    if (end) {
        end_loops(n, n->threads, true);
        net_disown(n);
    }
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

void net_say(struct net *n, int level, const char *text)
{
    net_log(n, level, "%s", text);
}
