/* Objects of an Azure store: ranges, ends, versions, names, listings. */
#include "base/mem.h"
#include "wire/azure.h"
#include "wire/keys.h"

static bool is_big(const struct got *g, uint64_t first, uint64_t n)
{
    return g->r.rc == 0 && g->r.size == n && g->r.object_size == BIG &&
           liar_bytes(g->data, first, n, 0);
}

static void ranges_and_ends_are_exact(void)
{
    static const struct {
        int64_t offset;
        uint64_t length, first, size;
    } cases[] = {{0, 0, 0, BIG},           {10, 10, 10, 10},
                 {BIG - 5, 5, BIG - 5, 5}, {-7, 0, BIG - 7, 7},
                 {-BIG, 0, 0, BIG},        {-2 * BIG, 0, 0, BIG},
                 {-1, 0, BIG - 1, 1},      {-100000, 0, 200000, 100000}};
    struct store *s = open_container("plain", KEY);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct got g = read_range(s, "big", cases[i].offset, cases[i].length);
        if (!check(is_big(&g, cases[i].first, cases[i].size)))
            printf("# case %zu: %d %s\n", i, g.r.rc, g.r.error.text);
        check_eq(g.asked, 1);
        free(g.data);
    }
    struct got g = read_range(s, "big", BIG - 5, 10);
    check_eq(g.r.rc, HR_EDATA);
    free(g.data);
    g = read_range(s, "empty", -10, 0);
    check_eq(g.r.rc, 0);
    check_eq(g.r.size, 0);
    check_eq(g.asked, 1);
    free(g.data);
    g = read_range(s, "empty", 0, 0);
    check_eq(g.r.rc, 0);
    free(g.data);
    store_unref(s);
}

static void a_cut_body_is_continued_with_a_signed_condition(void)
{
    struct store *s = open_container("short", KEY);
    struct got g = read_range(s, "big", 1000, 200000);
    if (!check(is_big(&g, 1000, 200000)))
        printf("# %s\n", g.r.error.text);
    free(g.data);
    g = read_range(s, "big", -100000, 0);
    check(is_big(&g, BIG - 100000, 100000));
    free(g.data);
    store_unref(s);
}

static void an_object_that_changes_between_two_answers_is_an_error(void)
{
    struct store *s = open_container("changing", KEY);
    struct got g = read_range(s, "big", -10, 0);
    check_eq(g.r.rc, HR_ESTORE);
    check_has(g.r.error.text, "changed");
    free(g.data);
    store_unref(s);
}

struct end {
    struct got got;
    pthread_mutex_t lock;
    pthread_cond_t done;
    int calls;
};

static void *end_room(void *arg, uint64_t size)
{
    return got_room(&((struct end *)arg)->got, size);
}

static void end_done(void *arg, const struct store_result *r)
{
    struct end *x = arg;
    pthread_mutex_lock(&x->lock);
    x->got.r = *r;
    x->calls++;
    pthread_cond_signal(&x->done);
    pthread_mutex_unlock(&x->lock);
}

static void wait_end(struct end *x)
{
    pthread_mutex_lock(&x->lock);
    while (!x->calls)
        pthread_cond_wait(&x->done, &x->lock);
    pthread_mutex_unlock(&x->lock);
}

enum { ENDS = 64 };

static void start_ends(struct store *s, struct end *ends, uint64_t *tickets)
{
    for (int i = 0; i < ENDS; i++) {
        ends[i] = (struct end){.lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};
        struct store_sink sink = {end_room, &ends[i]};
        struct store_range range = {.offset = -50 - i};
        check_eq(store_start(s, i % 4 ? "big" : "empty", range, &sink, end_done, &ends[i],
                             &tickets[i], NULL),
                 0);
    }
}

static void expect_ends(struct end *ends, bool closed)
{
    for (int i = 0; i < ENDS; i++) {
        wait_end(&ends[i]);
        const struct got *g = &ends[i].got;
        uint64_t n = 50 + (uint64_t)i;
        bool canceled =
            (i % 3 == 0 && g->r.rc == HR_ECANCELED) || (closed && g->r.rc == HR_ECLOSED);
        bool right = i % 4 ? is_big(g, BIG - n, n) : g->r.rc == 0 && g->r.size == 0;
        if (!check(canceled || right))
            printf("# %d: %d %s\n", i, g->r.rc, g->r.error.text);
        check_eq(ends[i].calls, 1);
        free(g->data);
    }
}

/* Asynchronous reads of ends, some of which are canceled, and the store closed, at any moment. */
static void ends_may_be_canceled_at_any_moment(void)
{
    static struct end ends[24][ENDS];
    uint64_t tickets[ENDS];
    struct net *net = net_new(&(struct net_options){0}, NULL);
    struct store *s = open_with(net, "az://plain", KEY);
    for (int round = 0; round < 24; round++) {
        bool close_now = round >= 6;
        start_ends(s, ends[round], tickets);
        usleep((useconds_t)(round % 12 * 3000));
        for (int i = 0; i < ENDS; i += 3)
            store_cancel(s, tickets[i]);
        if (close_now)
            store_unref(s);
        expect_ends(ends[round], close_now);
        if (close_now)
            s = open_with(net, "az://plain", KEY);
    }
    store_unref(s);
    net_unref(net);
}

/* ---- keys and listings ----------------------------------------------------------------------- */

/* The service takes "." and ".." out of names, so that another object would answer. */
static bool has_dots(const char *key)
{
    return !strncmp(key, "./", 2) || strstr(key, "/./") || strstr(key, "/../");
}

static void every_byte_of_a_key_arrives_as_it_is(void)
{
    char sas[512], options[640], key[512], want[600];
    ask_mock("_sas/plain/60/rl", sas, sizeof sas);
    for (int way = 0; way < 2; way++) {
        snprintf(options, sizeof options, way ? "\"sas_token\": \"%s\"" : "%.0s" KEY, sas);
        struct store *s = open_with(NULL, "az://plain/a b=c/%41+", options);
        for (size_t i = 0; i < AWKWARD_KEYS; i++) {
            snprintf(key, sizeof key, "%s/echo", awkward_keys[i].key);
            snprintf(want, sizeof want, "a b=c/%%41+/%s", key);
            struct got g = read_range(s, key, 0, strlen(want));
            if (has_dots(key))
                check_eq(g.r.rc, HR_EINVAL);
            else if (!check_eq(g.r.rc, 0))
                printf("# %s\n", g.r.error.text);
            else
                check(!memcmp(g.data, want, strlen(want)));
            free(g.data);
        }
        store_unref(s);
    }
}

static void names_of_a_listing_are_exact_and_all_there(void)
{
    static const char *const prefixes[] = {"c&d \xc3\xa9=+", "single"};
    for (size_t i = 0; i < 2; i++) {
        struct store *s = open_with(NULL, "az://list-names/a b", KEY);
        struct hr_error e = {0};
        char *names;
        size_t size;
        static const char want[] = "a%20b\0\xef\xbf\xbe&\0sub & dir/\0last";
        if (check_eq(store_list(s, prefixes[i], &names, &size, &e), 0))
            check(size == sizeof want && !memcmp(names, want, size));
        else
            printf("# %s\n", e.text);
        mem_free(names);
        store_unref(s);
    }
}

static void listings_that_are_not_whole_are_errors(void)
{
    static const char *const cases[][2] = {{"list-cut", "ends early"},
                                           {"list-error", "InternalError"},
                                           {"list-endless", "does not say where"},
                                           {"list-round", "does not say where"},
                                           {"list-html", "XML"},
                                           {"noperm", "SAS"},
                                           {"empty404", "nothing that could be listed"},
                                           {"gone", "ContainerNotFound"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct store *s = open_container(cases[i][0], KEY);
        struct hr_error e = {0};
        char *names;
        size_t size;
        check(store_list(s, "x", &names, &size, &e) < 0);
        check(names == NULL);
        check_has(e.text, cases[i][0]);
        check_has(e.text, cases[i][1]);
        store_unref(s);
    }
}

int main(int argc, char **argv)
{
    if (!azure_begin(argc, argv))
        return 77;
    RUN(ranges_and_ends_are_exact);
    RUN(a_cut_body_is_continued_with_a_signed_condition);
    RUN(an_object_that_changes_between_two_answers_is_an_error);
    RUN(ends_may_be_canceled_at_any_moment);
    RUN(every_byte_of_a_key_arrives_as_it_is);
    RUN(names_of_a_listing_are_exact_and_all_there);
    RUN(listings_that_are_not_whole_are_errors);
    server_stop(&mock);
    return t_done();
}
