/* See lookup.h. */
#include "net/lookup.h"

#include <netdb.h>
#include <string.h>

#include "base/mem.h"

static void dispose(struct lookup *q)
{
    pthread_mutex_destroy(&q->synced.lock);
    mem_free(q);
}

static void ask(struct lookup *q)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_ADDRCONFIG},
                    *all = NULL;
    if (getaddrinfo(q->name, NULL, &hints, &all) != 0)
        return;
    for (const struct addrinfo *a = all; a && q->count < ADDRESSES_MAX; a = a->ai_next) {
        bool ip = a->ai_family == AF_INET || a->ai_family == AF_INET6;
        if (ip && a->ai_addrlen <= sizeof *q->found)
            memcpy(&q->found[q->count++], a->ai_addr, a->ai_addrlen);
    }
    freeaddrinfo(all);
}

static void *lookup_main(void *arg)
{
    struct lookup *q = arg;
    ask(q);
    pthread_mutex_lock(&q->synced.lock);
    bool abandoned = !q->synced.loop;
    if (!abandoned) {
        q->synced.posted = true;
        loop_post(q->synced.loop, &q->answer);
    }
    pthread_mutex_unlock(&q->synced.lock);
    if (abandoned)
        dispose(q);
    return NULL;
}

struct lookup *lookup_start(struct loop *l, const char *name, void *asker,
                            void (*deliver)(struct loop *l, struct mail *m))
{
    size_t n = strlen(name) + 1;
    struct lookup *q = mem_zalloc(sizeof *q + n);
    pthread_t thread;
    if (!q)
        return NULL;
    q->answer.deliver = deliver;
    q->asker = asker;
    q->synced.loop = l;
    memcpy(q->name, name, n);
    pthread_mutex_init(&q->synced.lock, NULL);
    if (thread_start(&thread, "hr-name", lookup_main, q) != 0) {
        dispose(q);
        return NULL;
    }
    pthread_detach(thread);
    return q;
}

void lookup_free(struct lookup *q)
{
    pthread_mutex_lock(&q->synced.lock); /* its thread has let go of the lock */
    pthread_mutex_unlock(&q->synced.lock);
    dispose(q);
}

void lookup_abandon(struct lookup *q)
{
    pthread_mutex_lock(&q->synced.lock);
    q->synced.loop = NULL;
    bool posted = q->synced.posted;
    pthread_mutex_unlock(&q->synced.lock);
    if (posted)
        dispose(q);
}
