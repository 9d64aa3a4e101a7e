/* The workers of a process: every task runs once, urgent ones first, and ending waits for nobody. */
#include <unistd.h>

#include "base/mem.h"
#include "run/workers.h"
#include "t.h"

struct note {
    struct task task;
    int number, *count, *order;
    struct workers *again; /* push a copy from inside the task */
    int hold_ms;
    struct worker *ran_on;
};

static void note_run(struct task *t, struct worker *w)
{
    struct note *n = (struct note *)t;
    usleep((useconds_t)n->hold_ms * 1000);
    n->ran_on = w;
    struct workers *again = n->again;
    n->again = NULL;
    if (n->order)
        n->order[1 + n->order[0]++] = n->number;       /* one worker */
    __atomic_fetch_add(n->count, 1, __ATOMIC_ACQ_REL); /* the note may be gone from here on */
    if (again)
        workers_push(again, t, false);
}

static void wait_for(int *count, int n)
{
    for (int i = 0; i < 5000 && __atomic_load_n(count, __ATOMIC_ACQUIRE) < n; i++)
        usleep(1000);
    check_eq(__atomic_load_n(count, __ATOMIC_ACQUIRE), n);
}

static void every_task_runs_once(void)
{
    enum { N = 2000 };
    struct workers *p = NULL;
    static struct note notes[N];
    int count = 0;
    check_eq(workers_new(3, &p, NULL), 0);
    check_eq(workers_count(p), 3);
    for (int i = 0; i < N; i++) {
        notes[i] = (struct note){.task.run = note_run, .count = &count};
        workers_push(p, &notes[i].task, i % 5 == 0);
    }
    wait_for(&count, N);
    bool good = true;
    for (int i = 0; i < N; i++)
        good &= notes[i].ran_on && notes[i].ran_on->codec;
    check(good);
    workers_unref(p);
}

static void urgent_tasks_go_before_those_that_wait(void)
{
    struct workers *p = NULL;
    int count = 0, order[7] = {0};
    struct note notes[6];
    check_eq(workers_new(1, &p, NULL), 0);
    for (int i = 0; i < 6; i++)
        notes[i] =
            (struct note){.task.run = note_run, .number = i, .count = &count, .order = order};
    notes[0].hold_ms = 100;
    workers_push(p, &notes[0].task, false);
    usleep(30000); /* it runs, the others wait */
    workers_push(p, &notes[1].task, false);
    workers_push(p, &notes[2].task, false);
    workers_push(p, &notes[3].task, true);
    workers_push(p, &notes[4].task, false);
    workers_push(p, &notes[5].task, true);
    wait_for(&count, 6);
    static const int want[6] = {0, 5, 3, 1, 2, 4};
    check(!memcmp(order + 1, want, sizeof want));
    workers_unref(p);
}

static void a_task_may_push_itself(void)
{
    struct workers *p = NULL;
    int count = 0;
    struct note n = {.task.run = note_run, .count = &count};
    check_eq(workers_new(2, &p, NULL), 0);
    n.again = p;
    workers_push(p, &n.task, false);
    wait_for(&count, 2);
    workers_unref(p);
}

static void slow_tasks_run_side_by_side(void)
{
    struct workers *p = NULL;
    int count = 0;
    struct note notes[4];
    check_eq(workers_new(4, &p, NULL), 0);
    uint64_t start = clock_ns();
    for (int i = 0; i < 4; i++) {
        notes[i] = (struct note){.task.run = note_run, .count = &count, .hold_ms = 200};
        workers_push(p, &notes[i].task, false);
    }
    wait_for(&count, 4);
    check(clock_ns() - start < 700000000);
    workers_unref(p);
}

static void the_last_reference_does_not_wait_but_work_is_done(void)
{
    struct workers *p = NULL;
    int count = 0;
    usleep(100000); /* earlier pools end */
    uint64_t before = mem_live();
    struct note notes[3];
    check_eq(workers_new(1, &p, NULL), 0);
    for (int i = 0; i < 3; i++) {
        notes[i] = (struct note){.task.run = note_run, .count = &count, .hold_ms = 50};
        workers_push(p, &notes[i].task, false);
    }
    uint64_t start = clock_ns();
    workers_unref(p);
    check(clock_ns() - start < 40000000);
    wait_for(&count, 3);
    for (int i = 0; i < 1000 && mem_live() > before; i++)
        usleep(1000);
    check_eq(mem_live(), before);
}

static void without_memory_for_threads_the_pusher_does_the_work(void)
{
    struct workers *p = NULL;
    int count = 0;
    struct note n = {.task.run = note_run, .count = &count};
    check_eq(workers_new(2, &p, NULL), 0);
    mem_fail_at(1, true);
    workers_push(p, &n.task, false);
    mem_fail_at(0, false);
    check_eq(count, 1);
    workers_unref(p);
}

int main(void)
{
    RUN(every_task_runs_once);
    RUN(urgent_tasks_go_before_those_that_wait);
    RUN(a_task_may_push_itself);
    RUN(slow_tasks_run_side_by_side);
    RUN(the_last_reference_does_not_wait_but_work_is_done);
    RUN(without_memory_for_threads_the_pusher_does_the_work);
    return t_done();
}
