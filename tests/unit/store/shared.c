/* What stores learn once for all: one asks, all have it. */
#include "store/shared.h"

#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/thread.h"
#include "t.h"

struct service {
    _Atomic int asked, takes_ms;
    int life_s; /* of what it gives; 0: for ever */
    int rc;     /* SHARED_VALUE, or what it is instead */
};

static int ask(void *arg, struct cred_value *v, struct buf *why, struct hr_error *e)
{
    struct service *s = arg;
    char id[16];
    snprintf(id, sizeof id, "id%d", atomic_fetch_add(&s->asked, 1) + 1);
    usleep((unsigned)atomic_load(&s->takes_ms) * 1000);
    if (s->rc < 0)
        return error_set(e, s->rc, "broken");
    if (s->rc != SHARED_VALUE) {
        buf_puts(why, "no answer");
        return s->rc;
    }
    TRY(cred_value_set(v, id, "hush", NULL, s->life_s ? time(NULL) + s->life_s : 0, e));
    return SHARED_VALUE;
}

struct asker {
    struct store_shared *shared;
    struct service *service;
    uint64_t seen;
    int rc;
    char id[16], why[64];
};

static void *run(void *arg)
{
    struct asker *a = arg;
    struct cred_value v = {.id = NULL};
    struct buf why;
    buf_init(&why);
    a->rc = shared_ask(a->shared, "here", &a->seen, ask, a->service, &v, &why, NULL);
    snprintf(a->id, sizeof a->id, "%s", v.id ? v.id : "");
    snprintf(a->why, sizeof a->why, "%s", why.data ? why.data : "");
    cred_value_clear(&v);
    buf_dispose(&why);
    return NULL;
}

static void of_many_at_once_one_asks(void)
{
    struct service service = {.takes_ms = 50, .rc = SHARED_VALUE};
    struct store_shared *s = shared_new(NULL);
    struct asker all[16];
    pthread_t threads[16];
    for (int i = 0; i < 16; i++) {
        all[i] = (struct asker){.shared = s, .service = &service};
        check_eq(pthread_create(&threads[i], NULL, run, &all[i]), 0);
    }
    for (int i = 0; i < 16; i++) {
        pthread_join(threads[i], NULL);
        check_eq(all[i].rc, 1);
        check_str(all[i].id, "id1");
    }
    check_eq(service.asked, 1);
    shared_unref(s);
}

static void who_comes_back_wants_a_newer_one_and_others_have_it_too(void)
{
    struct service service = {.rc = SHARED_VALUE};
    struct store_shared *s = shared_new(NULL);
    struct asker a = {.shared = s, .service = &service}, b = a;
    run(&a);
    run(&b);
    check_eq(service.asked, 1);
    run(&a);
    check_str(a.id, "id2");
    run(&b);
    check_str(b.id, "id2");
    check_eq(service.asked, 2);
    shared_unref(s);
}

static void what_ends_soon_is_not_handed_on(void)
{
    struct service service = {.rc = SHARED_VALUE, .life_s = 1};
    struct store_shared *s = shared_new(NULL);
    struct asker a = {.shared = s, .service = &service}, b = a;
    run(&a);
    usleep(1100000);
    run(&b);
    check_eq(b.rc, 1);
    check_str(b.id, "id2");
    shared_unref(s);
}

static void silence_is_believed_and_failure_is_not(void)
{
    struct service service = {.rc = SHARED_SILENT};
    struct store_shared *s = shared_new(NULL);
    struct asker a = {.shared = s, .service = &service}, b = a;
    run(&a);
    check_eq(a.rc, 0);
    check_str(a.why, "no answer");
    run(&b);
    check_eq(b.rc, 0);
    check_str(b.why, "no answer a moment ago");
    check_eq(service.asked, 1);
    shared_unref(s);
    s = shared_new(NULL);
    service = (struct service){.rc = HR_ESTORE};
    a.shared = b.shared = s;
    run(&a);
    run(&b);
    check(a.rc == HR_ESTORE && b.rc == HR_ESTORE);
    check_eq(service.asked, 2);
    service.rc = SHARED_VALUE; /* it is there, so later silence is a fault that passes */
    run(&a);
    service.rc = SHARED_SILENT;
    run(&a);
    check_eq(a.rc, 0);
    run(&a);
    check_eq(service.asked, 5);
    shared_unref(s);
}

static void facts_are_of_a_place(void)
{
    struct store_shared *s = shared_new(NULL);
    char out[16] = "";
    check(!shared_noted(s, "region", "a", out, sizeof out));
    shared_note(s, "region", "a", "eu-west-3");
    shared_note(s, "region", "b", "us-east-1");
    shared_note(s, "region", "a", "eu-west-1");
    check(shared_noted(s, "region", "a", out, sizeof out));
    check_str(out, "eu-west-1");
    check(!shared_noted(s, "private", "a", out, sizeof out));
    check(!shared_noted(s, "region", "a", out, 4));
    shared_note(NULL, "region", "a", "x");
    check(!shared_noted(NULL, "region", "a", out, sizeof out));
    for (int i = 0; i < 3000; i++) { /* bounded */
        char place[16];
        snprintf(place, sizeof place, "p%d", i);
        shared_note(s, "region", place, "x");
    }
    check(shared_noted(s, "region", "p2999", out, sizeof out));
    shared_unref(s);
}

static void no_memory_is_an_error_or_nothing(void)
{
    for (uint64_t n = 1; n <= 6; n++) {
        struct service service = {.rc = SHARED_VALUE};
        struct store_shared *s = shared_new(NULL);
        struct asker a = {.shared = s, .service = &service};
        mem_fail_at(n, false);
        run(&a);
        mem_fail_at(0, false);
        check(a.rc == HR_ENOMEM || a.rc == 1);
        shared_note(s, "region", "a", "x");
        shared_unref(s);
    }
}

int main(void)
{
    uint64_t live = mem_live();
    RUN(of_many_at_once_one_asks);
    RUN(who_comes_back_wants_a_newer_one_and_others_have_it_too);
    RUN(what_ends_soon_is_not_handed_on);
    RUN(silence_is_believed_and_failure_is_not);
    RUN(facts_are_of_a_place);
    RUN(no_memory_is_an_error_or_nothing);
    check_eq(mem_live(), live);
    return t_done();
}
