/* See hook.h. */
#include "run/hook.h"

#include <stddef.h>

#include "base/mem.h"
#include "run/news.h"

#define MOST_TENSORS 256

static int call(const struct driver *d, struct hr_batch *b, struct hr_error *e)
{
    void *data[MOST_TENSORS];
    int n = b->layout->n;
    if (n > MOST_TENSORS)
        return error_set(e, HR_EUNSUPPORTED, "a hook for more than %d tensors", MOST_TENSORS);
    for (int i = 0; i < n; i++)
        data[i] = batch_data(b, i);
    int rc = d->fixed.c.hook(data, b->rows, b->ids, b->epoch, d->fixed.c.hook_arg);
    if (!rc)
        return 0;
    return error_set(e, HR_EINVAL, "the native hook returned %d for step %lld of epoch %lld", rc,
                     (long long)b->step, (long long)b->epoch);
}

static void let_go(struct driver *d, struct finished *f)
{
    batch_dispose(f->batch);
    driver_unref(d);
    mem_free(f);
}

static void run(struct task *t, struct worker *w)
{
    struct finished *f = (struct finished *)((char *)t - offsetof(struct finished, task));
    struct driver *d = f->driver;
    struct hr_error e = {0};
    bool dead = false;
    (void)w;
    int rc = call(d, f->batch, &e);
    pthread_mutex_lock(&d->synced.mutex);
    f->hooked = false;
    f->failed = rc < 0;
    f->error = e;
    if (f->orphan && !(dead = d->synced.dead)) {
        f->next = NULL;
        *(d->synced.taken ? &d->synced.last_taken->next : &d->synced.taken) = f;
        d->synced.last_taken = f;
        d->synced.news_left = true;
    } else if (!f->orphan && d->synced.waiting) {
        pthread_cond_signal(&d->synced.ready);
    }
    news_unlock(d);
    if (dead)
        let_go(d, f);
    driver_unref(d);
}

void hook_begin(struct driver *d, struct finished *f)
{
    f->driver = driver_ref(d); /* the task's */
    f->hooked = true;
    f->task.run = run;
}

void hook_queue(struct driver *d, struct finished *f)
{
    workers_push(d->fixed.c.workers, &f->task, true);
}

void hook_empty_ring(struct driver *d, struct finished **first, struct finished **last)
{
    for (struct finished *f = d->synced.finished, *next; f; f = next) {
        next = f->next;
        f->next = NULL;
        f->orphan = f->hooked;
        if (f->orphan)
            continue;
        *(*first ? &(*last)->next : first) = f;
        *last = f;
    }
    d->synced.finished = d->synced.last_finished = NULL;
}
