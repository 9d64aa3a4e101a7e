/* A credential that renews itself: who is asked, how often, what those who need it see. The
 * provider is a script of this test; its values live for a second or two. */
#include "store/cred.h"

#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/thread.h"
#include "net/net.h"
#include "t.h"

struct script {
    _Atomic int asked, at_once, most_at_once, ready, released, stopped;
    _Atomic int fail;     /* code of an error, 0: none */
    _Atomic int life_s;   /* of a value; 0: for ever */
    _Atomic int takes_ms; /* a fetch */
    _Atomic int configured;
    char log[512];
};

static int fetch(void *arg, struct cred_value *v, struct buf *why, struct hr_error *e)
{
    struct script *s = arg;
    int n = atomic_fetch_add(&s->asked, 1) + 1, now = atomic_fetch_add(&s->at_once, 1) + 1;
    if (now > atomic_load(&s->most_at_once))
        atomic_store(&s->most_at_once, now);
    for (int i = 0; i < atomic_load(&s->takes_ms) && !atomic_load(&s->stopped); i++)
        usleep(1000);
    atomic_fetch_sub(&s->at_once, 1);
    if (atomic_load(&s->fail))
        return error_set(e, atomic_load(&s->fail), "the service is down");
    if (!atomic_load(&s->configured)) {
        buf_puts(why, "X_KEY is not set");
        return 0;
    }
    char id[16];
    snprintf(id, sizeof id, "id%d", n);
    int life = atomic_load(&s->life_s);
    int rc = cred_value_set(v, id, "hush", NULL, life ? time(NULL) + life : 0, e);
    return rc < 0 ? rc : 1;
}

static int nothing(void *arg, struct cred_value *v, struct buf *why, struct hr_error *e)
{
    (void)arg, (void)v, (void)why, (void)e;
    return 0;
}

static void ready(void *arg)
{
    atomic_fetch_add(&((struct script *)arg)->ready, 1);
}
static void release(void *arg)
{
    atomic_fetch_add(&((struct script *)arg)->released, 1);
}
static void stop(void *arg)
{
    atomic_store(&((struct script *)arg)->stopped, 1);
}
static void keep_log(void *arg, int level, const char *text)
{
    (void)level;
    snprintf(((struct script *)arg)->log, sizeof((struct script *)arg)->log, "%s", text);
}

static struct cred *begin(struct script *s, bool anonymous, size_t n_late)
{
    static const struct cred_provider chain[] = {{"nothing at all", nothing}, {"script", fetch}};
    struct cred_config c = {.chain = chain,
                            .n = 2,
                            .arg = s,
                            .release = release,
                            .stop = stop,
                            .ready = ready,
                            .ready_arg = s,
                            .what = "s3://bucket",
                            .anonymous = anonymous,
                            .n_late = n_late,
                            .log = keep_log,
                            .log_arg = s};
    return cred_new(&c, NULL);
}

static struct cred *start(struct script *s, bool anonymous)
{
    return begin(s, anonymous, 0);
}

static struct cred *start_late(struct script *s)
{
    return begin(s, true, 1);
}

/* As a request does: until there is one, or an error. */
static int get(struct cred *c, struct cred_use *use, struct hr_error *e)
{
    for (int i = 0; i < 5000; i++) {
        int rc = cred_get(c, use, e);
        if (rc != NET_WAIT)
            return rc;
        usleep(1000);
    }
    return NET_WAIT;
}

static void end(struct cred *c, struct script *s)
{
    cred_close(c);
    for (int i = 0; i < 5000 && !atomic_load(&s->released); i++)
        usleep(1000);
    check_eq(atomic_load(&s->released), 1);
}

static void it_is_fetched_when_first_needed_and_kept(void)
{
    struct script s = {.configured = 1};
    struct cred *c = start(&s, false);
    struct cred_use use;
    check_eq(s.asked, 0);
    check_eq(cred_get(c, &use, NULL), NET_WAIT);
    for (int i = 0; i < 3; i++) {
        check_eq(get(c, &use, NULL), 0);
        check_str(use.value->id, "id1");
        check_eq(use.generation, 1);
        cred_done(&use);
    }
    check_eq(s.asked, 1);
    check(s.ready >= 1);
    check(!cred_tried(c));
    end(c, &s);
}

static void it_is_renewed_in_the_background_and_the_old_one_serves(void)
{
    struct script s = {.configured = 1, .life_s = 2, .takes_ms = 20};
    struct cred *c = start(&s, false);
    struct cred_use use;
    check_eq(get(c, &use, NULL), 0);
    cred_done(&use);
    uint64_t until = clock_ns() + 5000000000ull, waited = 0, last = 0;
    while (clock_ns() < until) {
        int rc = cred_get(c, &use, NULL);
        waited += rc == NET_WAIT;
        if (rc == 0) {
            check(use.value->until > time(NULL) - 1);
            check(use.generation >= last);
            last = use.generation;
            cred_done(&use);
        }
        usleep(500);
    }
    check_eq(waited, 0);
    check(s.asked >= 3 && s.asked <= 12);
    check_eq(s.most_at_once, 1);
    end(c, &s);
}

static void a_failed_renewal_matters_once_the_old_one_is_over(void)
{
    struct script s = {.configured = 1, .life_s = 2};
    struct cred *c = start(&s, false);
    struct cred_use use;
    struct hr_error e = {0};
    check_eq(get(c, &use, NULL), 0);
    time_t until = use.value->until;
    cred_done(&use);
    atomic_store(&s.fail, HR_ESTORE);
    int rc = 0;
    while ((rc = cred_get(c, &use, &e)) == 0 && time(NULL) < until + 5) {
        cred_done(&use);
        usleep(2000);
    }
    check(time(NULL) + 1 >= until); /* time() lags by a tick */
    rc = rc == NET_WAIT ? get(c, &use, &e) : rc;
    check_eq(rc, HR_ESTORE);
    check_str(e.text, "s3://bucket: credentials from script: the service is down");
    check(s.asked <= 4);
    end(c, &s);
}

static void a_refused_one_is_renewed_once(void)
{
    struct script s = {.configured = 1, .life_s = 100};
    struct cred *c = start(&s, false);
    struct cred_use use;
    check_eq(get(c, &use, NULL), 0);
    uint64_t first = use.generation;
    cred_done(&use);
    check(!cred_refused(c, first)); /* fetched a moment ago */
    usleep(1100000);
    check(cred_refused(c, first));
    check(cred_refused(c, first)); /* others that used it too */
    check_eq(get(c, &use, NULL), 0);
    check_eq(use.generation, first + 1);
    check_str(use.value->id, "id2");
    check(cred_refused(c, first));
    check(!cred_refused(c, use.generation));
    cred_done(&use);
    check_eq(s.asked, 2);
    end(c, &s);
    struct script lasting = {.configured = 1};
    c = start(&lasting, false);
    check_eq(get(c, &use, NULL), 0);
    usleep(1100000);
    check(!cred_refused(c, use.generation)); /* nothing to renew */
    cred_done(&use);
    end(c, &lasting);
}

static void an_expired_one_is_an_error_not_a_loop(void)
{
    struct script s = {.configured = 1, .life_s = -10};
    struct cred *c = start(&s, false);
    struct cred_use use;
    struct hr_error e = {0};
    check_eq(get(c, &use, &e), HR_ESTORE);
    check_has(e.text, "script: they have expired");
    for (int i = 0; i < 100; i++)
        check_eq(cred_get(c, &use, &e), HR_ESTORE);
    check_eq(s.asked, 1);
    end(c, &s);
}

static void without_any_the_error_lists_who_was_asked(void)
{
    struct script s = {0};
    struct cred *c = start(&s, false);
    struct cred_use use;
    struct hr_error e = {0};
    check_eq(get(c, &use, &e), HR_ESTORE);
    check_str(e.text,
              "s3://bucket: no credentials; looked at: nothing at all; script (X_KEY is not set)");
    end(c, &s);
}

static void or_it_is_anonymous_and_says_so(void)
{
    struct script s = {0};
    struct cred *c = start(&s, true);
    struct cred_use use;
    check_eq(get(c, &use, NULL), 0);
    check(!use.value->id && !use.value->secret && !use.value->token);
    check_str(cred_tried(c), "nothing at all; script (X_KEY is not set)");
    check_has(s.log, "s3://bucket: no credentials: anonymous access");
    cred_done(&use);
    end(c, &s);
}

/* The profile's file is moved away, the machine's service is silent: no reason to go on unsigned. */
static void once_somebody_never_nobody(void)
{
    struct script s = {.configured = 1, .life_s = 3};
    struct cred *c = start(&s, true);
    struct cred_use use;
    struct hr_error e = {0};
    check_eq(get(c, &use, NULL), 0);
    time_t until = use.value->until;
    cred_done(&use);
    atomic_store(&s.configured, 0);
    int rc = 0;
    while ((rc = cred_get(c, &use, &e)) == 0 && time(NULL) < until + 5) {
        check_str(use.value->id ? use.value->id : "nobody", "id1");
        cred_done(&use);
        usleep(2000);
    }
    check(s.asked >= 2); /* ahead of its end, in vain */
    check(time(NULL) + 1 >= until);
    rc = rc == NET_WAIT ? get(c, &use, &e) : rc;
    check_eq(rc, HR_ESTORE);
    check_str(e.text, "s3://bucket: the credentials cannot be renewed: they are no longer where "
                      "they were found; looked at: nothing at all; script (X_KEY is not set)");
    check(!cred_tried(c));
    check_str(s.log, "");
    atomic_store(&s.configured, 1); /* there again */
    for (int i = 0; i < 100 && (rc = get(c, &use, &e)) < 0; i++)
        usleep(100000);
    check_eq(rc, 0);
    cred_done(&use);
    end(c, &s);
}

/* A machine's metadata service, which is slow to say that it is not there. */
static void late_providers_are_asked_once_the_anonymous_are_refused(void)
{
    struct script s = {.configured = 1};
    struct cred *c = start_late(&s);
    struct cred_use use;
    check_eq(get(c, &use, NULL), 0);
    check(!use.value->id);
    check_eq(s.asked, 0);
    check(!cred_tried(c));
    check_has(s.log, "unsigned unless they are refused (looked at: nothing at all)");
    uint64_t first = use.generation;
    cred_done(&use);
    check(!cred_refused(c, first));
    check(!cred_denied(c, first + 1));
    check(cred_denied(c, first));
    check(cred_denied(c, first)); /* others that were under way */
    check_eq(get(c, &use, NULL), 0);
    check_str(use.value->id ? use.value->id : "nobody", "id1");
    check(cred_denied(c, first)); /* late in coming back */
    check(!cred_denied(c, use.generation));
    cred_done(&use);
    check_eq(get(c, &use, NULL), 0);
    check_eq(s.asked, 1);
    cred_done(&use);
    end(c, &s);
}

static void if_they_have_none_either_it_is_anonymous_for_good(void)
{
    struct script s = {0};
    struct cred *c = start_late(&s);
    struct cred_use use;
    check_eq(get(c, &use, NULL), 0);
    uint64_t first = use.generation;
    cred_done(&use);
    check(cred_denied(c, first));
    check_eq(get(c, &use, NULL), 0);
    check(!use.value->id && use.generation != first);
    check(!cred_denied(c, use.generation));
    check_str(cred_tried(c), "nothing at all; script (X_KEY is not set)");
    cred_done(&use);
    end(c, &s);
    struct script broken = {.fail = HR_ESTORE};
    struct hr_error e = {0};
    c = start_late(&broken);
    check_eq(get(c, &use, NULL), 0);
    check(cred_denied(c, use.generation));
    cred_done(&use);
    check_eq(get(c, &use, &e), HR_ESTORE);
    check_has(e.text, "credentials from script: the service is down");
    end(c, &broken);
}

static void closing_stops_a_fetch_and_leaves_what_is_in_use(void)
{
    struct script s = {.configured = 1, .takes_ms = 60000};
    struct cred *c = start(&s, false);
    struct cred_use use;
    check_eq(cred_get(c, &use, NULL), NET_WAIT);
    uint64_t from = clock_ns();
    end(c, &s);
    check(clock_ns() - from < 1000000000ull);
    check_eq(s.ready, 0);
    struct script quick = {.configured = 1};
    c = start(&quick, false);
    check_eq(get(c, &use, NULL), 0);
    end(c, &quick);
    check_str(use.value->secret, "hush");
    cred_done(&use);
}

/* Many requests at once, values that run out, a refusal now and then, and then the end. */
static void *crowd(void *arg)
{
    struct cred *c = arg;
    struct cred_use use;
    for (int i = 0; i < 3000; i++) {
        int rc = cred_get(c, &use, NULL);
        if (rc == 0) {
            if (!use.value->id || strncmp(use.value->id, "id", 2))
                return "a value that is none";
            if (i % 500 == 499)
                cred_refused(c, use.generation);
            cred_done(&use);
        }
        usleep(500);
    }
    return NULL;
}

static void a_crowd_sees_whole_values_and_one_fetch_at_a_time(void)
{
    struct script s = {.configured = 1, .life_s = 1, .takes_ms = 3};
    struct cred *c = start(&s, false);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        check_eq(pthread_create(&threads[i], NULL, crowd, c), 0);
    for (int i = 0; i < 4; i++) {
        void *fault;
        pthread_join(threads[i], &fault);
        check_str(fault ? fault : "", "");
    }
    check_eq(s.most_at_once, 1);
    check(s.asked > 1);
    end(c, &s);
}

static void closing_at_any_moment_is_safe(void)
{
    for (int i = 0; i < 200; i++) {
        struct script s = {.configured = 1, .life_s = i % 2};
        struct cred *c = start(&s, false);
        struct cred_use use;
        check_eq(cred_get(c, &use, NULL), NET_WAIT);
        usleep((unsigned)(i % 10) * 30);
        end(c, &s);
    }
}

static void no_memory_is_an_error(void)
{
    struct cred_value v;
    for (uint64_t n = 1; n <= 3; n++) {
        struct hr_error e = {0};
        mem_fail_at(n, false);
        check_eq(cred_value_set(&v, "a", "b", "c", 0, &e), HR_ENOMEM);
        mem_fail_at(0, false);
        check(!v.id && !v.secret && !v.token);
    }
    for (uint64_t n = 1; n <= 4; n++) {
        struct script s = {.configured = 1};
        struct cred *c = start(&s, false);
        struct cred_use use;
        struct hr_error e = {0};
        mem_fail_at(n, true);
        int rc = get(c, &use, &e);
        mem_fail_at(0, false);
        check(rc == HR_ENOMEM);
        end(c, &s);
    }
}

int main(void)
{
    uint64_t live = mem_live();
    RUN(it_is_fetched_when_first_needed_and_kept);
    RUN(it_is_renewed_in_the_background_and_the_old_one_serves);
    RUN(a_failed_renewal_matters_once_the_old_one_is_over);
    RUN(a_refused_one_is_renewed_once);
    RUN(an_expired_one_is_an_error_not_a_loop);
    RUN(without_any_the_error_lists_who_was_asked);
    RUN(or_it_is_anonymous_and_says_so);
    RUN(late_providers_are_asked_once_the_anonymous_are_refused);
    RUN(if_they_have_none_either_it_is_anonymous_for_good);
    RUN(once_somebody_never_nobody);
    RUN(closing_stops_a_fetch_and_leaves_what_is_in_use);
    RUN(a_crowd_sees_whole_values_and_one_fetch_at_a_time);
    RUN(closing_at_any_moment_is_safe);
    RUN(no_memory_is_an_error);
    check_eq(mem_live(), live);
    return t_done();
}
