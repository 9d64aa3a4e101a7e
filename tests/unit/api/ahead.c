/* Metadata read together: documents of a store that answers late, in another order, wrongly, or never. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/thread.h"
#include "headrace.h"
#include "t.h"

#define ARRAYS 40
#define TASKS  256

/* A store that collects what is asked until nothing more comes for a while, and then answers the last first. */
static struct {
    struct hr_store *store;
    pthread_t thread;
    atomic_int woken, most, asked, cancelled, interrupt, end;
    int silent_from; /* of `asked`: no answer from here on; 0: all are answered */
    const char *broken, *absurd;
} served;

static void on_wake(void *arg)
{
    (void)arg;
    atomic_store(&served.woken, 1);
}

static int on_wait(void *arg)
{
    (void)arg;
    return atomic_load(&served.interrupt);
}

static void write_array(char *out, size_t n)
{
    snprintf(
        out, n,
        "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[4],\"data_type\":\"float32\","
        "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[2]}},"
        "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":0,\"codecs\":[{\"name\":"
        "\"bytes\",\"configuration\":{\"endian\":\"little\"}}],\"dimension_names\":[\"time\"]}");
}

static void answer(const struct hr_task *t)
{
    static const char group[] = "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":{}}";
    char text[1000];
    if (t->kind == HR_TASK_LIST && !*t->key) {
        size_t n = 0;
        n += (size_t)snprintf(text, sizeof text, "zarr.json") + 1;
        for (int i = 0; i < ARRAYS; i++)
            n += (size_t)snprintf(text + n, sizeof text - n, "v%02d/", i) + 1;
        hr_store_answer(served.store, t->id, text, n);
    } else if (t->kind == HR_TASK_LIST) {
        hr_store_answer(served.store, t->id, "zarr.json", 10);
    } else if (served.broken && !strcmp(t->key, served.broken)) {
        hr_store_fail(served.store, t->id, HR_ESTORE, 0, "the disk is on fire");
    } else if (served.absurd && !strcmp(t->key, served.absurd)) {
        void *data = calloc(1, (size_t)65 << 20);
        hr_store_answer(served.store, t->id, data, (size_t)65 << 20);
        free(data);
    } else if (!strcmp(t->key, "zarr.json")) {
        hr_store_answer(served.store, t->id, group, sizeof group - 1);
    } else if (t->key[0] == 'v' && strstr(t->key, "/zarr.json")) {
        write_array(text, sizeof text);
        hr_store_answer(served.store, t->id, text, strlen(text));
    } else {
        hr_store_missing(served.store, t->id);
    }
}

static void *serve(void *unused)
{
    struct hr_task waiting[TASKS], t;
    char keys[TASKS][64];
    int n = 0, calm = 0, got = 0;
    (void)unused;
    while (!atomic_load(&served.end) && got != HR_ECLOSED) {
        got = n < TASKS ? hr_store_take(served.store, &t, 1) : 0;
        if (got == 1 && t.kind == HR_TASK_CANCEL) {
            atomic_fetch_add(&served.cancelled, 1);
            hr_store_missing(served.store, t.id); /* nobody waits for it any more */
        } else if (got == 1) {
            int number = atomic_fetch_add(&served.asked, 1) + 1;
            if (served.silent_from && number >= served.silent_from)
                continue;
            snprintf(keys[n], sizeof keys[n], "%s", t.key);
            t.key = keys[n];
            waiting[n++] = t;
            calm = 0;
        } else if (++calm < 5) {
            usleep(1000);
        } else {
            if (n > atomic_load(&served.most))
                atomic_store(&served.most, n);
            while (n)
                answer(&waiting[--n]);
            usleep(1000);
        }
    }
    return NULL;
}

static void begin(void)
{
    struct hr_store_options o = HR_STORE_OPTIONS;
    o.url = "test://store";
    o.wake = on_wake;
    o.interrupted = on_wait;
    o.concurrency = TASKS;
    served.woken = served.most = served.asked = served.cancelled = served.interrupt = served.end =
        0;
    served.silent_from = 0;
    served.broken = served.absurd = NULL;
    check_eq(hr_store_new(&o, &served.store, NULL), 0);
}

static int open_it(struct hr_archive **a, struct hr_error *e)
{
    *a = NULL;
    check_eq(pthread_create(&served.thread, NULL, serve, NULL), 0);
    return hr_open_store(served.store, a, e);
}

static void end(struct hr_archive *a)
{
    hr_archive_unref(a);
    atomic_store(&served.end, 1);
    pthread_join(served.thread, NULL);
    hr_store_unref(served.store);
}

static int count(const char *text, const char *part)
{
    int n = 0;
    for (; text && (text = strstr(text, part)); text += strlen(part))
        n++;
    return n;
}

static void all_arrays_are_asked_for_together_and_answers_come_in_any_order(void)
{
    struct hr_archive *a;
    struct hr_error e = {0};
    char *json = NULL;
    begin();
    check_eq(open_it(&a, &e), 0);
    check_eq(hr_archive_json(a, &json, &e), 0);
    check_eq(count(json, "\"kind\": \"array\""), ARRAYS);
    check(served.most >= ARRAYS / 2);
    check_eq(served.cancelled, 0);
    hr_free(json);
    end(a);
}

static void one_that_fails_is_the_error_and_the_others_are_let_go(void)
{
    struct hr_archive *a;
    struct hr_error e = {0};
    char *json = NULL;
    begin();
    served.broken = "v03/zarr.json";
    check_eq(open_it(&a, &e), 0);
    int rc = hr_archive_json(a, &json, &e);
    check_eq(rc, HR_ESTORE);
    check_has(e.text, "v03/zarr.json");
    check_has(e.text, "on fire");
    hr_free(json);
    end(a);
}

static void a_document_beyond_all_size_is_refused(void)
{
    struct hr_archive *a;
    struct hr_error e = {0};
    char *json = NULL;
    begin();
    served.absurd = "v05/zarr.json";
    check_eq(open_it(&a, &e), 0);
    check_eq(hr_archive_json(a, &json, &e), 0); /* its siblings can be read */
    check(json && strstr(json, "\"v05/zarr.json: a metadata document of 68.2 MB; at most"));
    hr_free(json);
    end(a);
}

static void *interrupt_soon(void *arg)
{
    (void)arg;
    usleep(300000);
    atomic_store(&served.interrupt, 1);
    return NULL;
}

static void *close_soon(void *arg)
{
    (void)arg;
    usleep(300000);
    hr_store_close(served.store);
    return NULL;
}

/* From the `silent_from`-th question on nothing is answered: from the first document, from in the midst of the arrays. */
static void stuck(int silent_from, void *(*helper)(void *), int code)
{
    struct hr_archive *a;
    struct hr_error e = {0};
    pthread_t other;
    char *json = NULL;
    begin();
    served.silent_from = silent_from;
    check_eq(pthread_create(&other, NULL, helper, NULL), 0);
    uint64_t start = clock_ns();
    int rc = open_it(&a, &e);
    if (rc == 0)
        rc = hr_archive_json(a, &json, &e);
    check_eq(rc, code);
    check_has(e.text, "test://store");
    check(clock_ns() - start < 10000000000ull);
    pthread_join(other, NULL);
    hr_free(json);
    end(a);
}

static void waiting_for_them_can_be_interrupted(void)
{
    stuck(1, interrupt_soon, HR_ECANCELED);
    stuck(12, interrupt_soon, HR_ECANCELED);
}

static void a_store_that_closes_meanwhile_is_an_error(void)
{
    stuck(1, close_soon, HR_ECLOSED);
    stuck(12, close_soon, HR_ECLOSED);
}

int main(void)
{
    RUN(all_arrays_are_asked_for_together_and_answers_come_in_any_order);
    RUN(one_that_fails_is_the_error_and_the_others_are_let_go);
    RUN(a_document_beyond_all_size_is_refused);
    RUN(waiting_for_them_can_be_interrupted);
    RUN(a_store_that_closes_meanwhile_is_an_error);
    return t_done();
}
