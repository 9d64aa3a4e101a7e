/* See workers.h. A thread owns a reference to the memory of the pool besides those of the users:
 * the users' count reaching zero tells the threads to end once the queue is empty, the last of all
 * frees it. If a thread cannot be started, those that run do the work; if not even the first can,
 * the pushing thread does it itself: slow, but it ends. */
#include "run/workers.h"
#include "base/mem.h"

#include <stdio.h>

struct workers {
    int users, holders; /* atomic: references; references and threads */
    unsigned n;
    struct {
        pthread_mutex_t mutex;
        pthread_cond_t work;
        struct task *head, *tail;
        unsigned started, idle, waiting; /* waiting: tasks in the queue */
        bool ending;
    } synced;
};

int workers_new(unsigned n, struct workers **out, struct hr_error *e)
{
    struct workers *p = mem_zalloc(sizeof *p);
    if (!p)
        return error_nomem(e, sizeof *p, "the workers");
    p->users = p->holders = 1;
    p->n = n ? n : 1;
    pthread_mutex_init(&p->synced.mutex, NULL);
    if (cond_init_monotonic(&p->synced.work)) {
        mem_free(p);
        return error_nomem(e, sizeof *p, "the workers");
    }
    *out = p;
    return 0;
}

static void let_go(struct workers *p)
{
    if (__atomic_sub_fetch(&p->holders, 1, __ATOMIC_ACQ_REL))
        return;
    pthread_mutex_destroy(&p->synced.mutex);
    pthread_cond_destroy(&p->synced.work);
    mem_free(p);
}

struct workers *workers_ref(struct workers *p)
{
    __atomic_add_fetch(&p->users, 1, __ATOMIC_RELAXED);
    return p;
}

void workers_unref(struct workers *p)
{
    if (!p || __atomic_sub_fetch(&p->users, 1, __ATOMIC_ACQ_REL))
        return;
    pthread_mutex_lock(&p->synced.mutex);
    p->synced.ending = true;
    pthread_cond_broadcast(&p->synced.work);
    pthread_mutex_unlock(&p->synced.mutex);
    let_go(p);
}

unsigned workers_count(const struct workers *p)
{
    return p->n;
}

static struct task *take_locked(struct workers *p)
{
    struct task *t = p->synced.head;
    p->synced.head = t->next;
    if (!p->synced.head)
        p->synced.tail = NULL;
    p->synced.waiting--;
    return t;
}

static bool worker_init(struct worker *w, struct workers *p, unsigned number)
{
    *w = (struct worker){.pool = p, .number = number, .codec = codec_context_new()};
    scatter_init(&w->scatter);
    cells_scratch_init(&w->cells);
    return w->codec != NULL;
}

static void worker_dispose(struct worker *w)
{
    codec_context_free(w->codec);
    scatter_dispose(&w->scatter);
    cells_scratch_dispose(&w->cells);
    mem_free(w->order);
    mem_free(w->runs);
    mem_free(w->spans);
    mem_free(w->joined);
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    struct workers *p = w->pool;
    pthread_mutex_lock(&p->synced.mutex);
    for (;;) {
        while (!p->synced.head && !p->synced.ending) {
            p->synced.idle++;
            cond_wait_until(&p->synced.work, &p->synced.mutex, 0);
            p->synced.idle--;
        }
        if (!p->synced.head)
            break;
        struct task *t = take_locked(p);
        pthread_mutex_unlock(&p->synced.mutex);
        t->run(t, w);
        pthread_mutex_lock(&p->synced.mutex);
    }
    pthread_mutex_unlock(&p->synced.mutex);
    worker_dispose(w);
    mem_free(w);
    let_go(p);
    return NULL;
}

/* One more thread, or false. */
static bool start_worker(struct workers *p, unsigned number)
{
    pthread_t t;
    char name[16];
    struct worker *w = mem_alloc(sizeof *w);
    if (!w)
        return false;
    if (!worker_init(w, p, number)) {
        worker_dispose(w);
        mem_free(w);
        return false;
    }
    __atomic_add_fetch(&p->holders, 1, __ATOMIC_RELAXED);
    snprintf(name, sizeof name, "headrace-%u", number % 1000);
    if (thread_start(&t, name, worker_main, w)) {
        worker_dispose(w);
        mem_free(w);
        let_go(p);
        return false;
    }
    pthread_detach(t);
    return true;
}

/* No thread at all could be started: the queue is worked off here. */
static void work_off(struct workers *p)
{
    struct worker w;
    worker_init(&w, p, 0);
    pthread_mutex_lock(&p->synced.mutex);
    while (p->synced.head) {
        struct task *t = take_locked(p);
        pthread_mutex_unlock(&p->synced.mutex);
        t->run(t, &w);
        pthread_mutex_lock(&p->synced.mutex);
    }
    pthread_mutex_unlock(&p->synced.mutex);
    worker_dispose(&w);
}

void workers_push(struct workers *p, struct task *t, bool first)
{
    pthread_mutex_lock(&p->synced.mutex);
    t->next = first ? p->synced.head : NULL;
    if (first) {
        p->synced.head = t;
        p->synced.tail = p->synced.tail ? p->synced.tail : t;
    } else {
        *(p->synced.tail ? &p->synced.tail->next : &p->synced.head) = t;
        p->synced.tail = t;
    }
    p->synced.waiting++;
    unsigned number = p->synced.started;
    bool more = p->synced.waiting > p->synced.idle && number < p->n;
    if (more)
        p->synced.started++;
    else if (p->synced.idle)
        pthread_cond_signal(&p->synced.work);
    pthread_mutex_unlock(&p->synced.mutex);
    if (!more || start_worker(p, number))
        return;
    pthread_mutex_lock(&p->synced.mutex);
    bool alone = --p->synced.started == 0;
    pthread_cond_signal(&p->synced.work);
    pthread_mutex_unlock(&p->synced.mutex);
    if (alone)
        work_off(p);
}
