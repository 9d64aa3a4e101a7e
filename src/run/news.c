/* See news.h. */
#include "run/news.h"

#include "base/mem.h"
#include "run/hook.h"
#include "run/turn.h"

void news_unlock(struct driver *d)
{
    bool ask = d->synced.news_left && !d->synced.turning && !d->synced.asked && !d->synced.dead;
    d->synced.news_left = false;
    if (ask) {
        d->synced.asked = true;
        driver_ref(d);
    }
    pthread_mutex_unlock(&d->synced.mutex);
    if (ask)
        workers_push(d->fixed.c.workers, &d->turn_task, true);
}

void driver_news(struct job *j, enum message_kind kind, bool may_turn)
{
    struct driver *d = j->driver;
    j->message = kind;
    j->next = NULL;
    pthread_mutex_lock(&d->synced.mutex);
    *(d->synced.done ? &d->synced.last_done->next : &d->synced.done) = j;
    d->synced.last_done = j;
    bool mine = may_turn && !d->synced.turning;
    d->synced.turning |= mine;
    d->synced.news_left = !mine;
    news_unlock(d);
    if (mine)
        turn(d);
}

/* The last reference of a batch is gone. Open batches that are given up have no owner and do not
 * come here. */
void news_released(struct batch_owner *o, struct hr_batch *b)
{
    struct driver *d = (struct driver *)o;
    if (driver_foreign(d))
        return; /* another process's locks: the memory goes with this one */
    batch_dispose(b);
    pthread_mutex_lock(&d->synced.mutex);
    d->synced.held_batches--;
    if (!d->synced.dead) {
        d->synced.released++;
        d->synced.news_left = true;
    }
    news_unlock(d);
    driver_unref(d);
}

void news_drop(struct driver *d, struct finished *f)
{
    if (f->batch) {
        batch_dispose(f->batch);
        driver_unref(d);
    }
    mem_free(f);
}

bool news_take(struct driver *d, struct news *m)
{
    pthread_mutex_lock(&d->synced.mutex);
    *m = (struct news){.done = d->synced.done,
                       .taken = d->synced.taken,
                       .released = d->synced.released,
                       .starts = d->synced.starts,
                       .epoch = d->synced.start_epoch,
                       .step = d->synced.start_step,
                       .closed = d->synced.closed,
                       .explain = d->synced.explain};
    d->synced.done = d->synced.last_done = NULL;
    d->synced.taken = d->synced.last_taken = NULL;
    d->synced.released = 0;
    d->synced.explain = false;
    if (m->closed) { /* nobody will take these */
        struct finished *last = m->taken;
        while (last && last->next)
            last = last->next;
        hook_empty_ring(d, &m->taken, &last);
    }
    d->synced.stats = d->turn.stats;
    bool some = m->done || m->taken || m->released || m->explain || m->starts != d->turn.start ||
                m->closed != d->turn.closing;
    if (d->turn.dead || !some) {
        d->synced.dead = d->turn.dead;
        d->synced.turning = false;
        some = false;
    }
    pthread_mutex_unlock(&d->synced.mutex);
    for (struct finished *f = some ? NULL : m->taken, *next; f; f = next) { /* hooks ended late */
        next = f->next;
        news_drop(d, f);
    }
    return some;
}
