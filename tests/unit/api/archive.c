/* The opened archive: what its report says, threads that share it, processes that are forked from it. */
#include "api/archive.h"
#include "api/runtime.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/thread.h"
#include "store/memory.h"
#include "t.h"
#include <sys/wait.h>
#include <unistd.h>

static struct hr_error e;

static void put(const char *key, const char *text)
{
    if (memory_put("archive", key, text, strlen(text), &e) < 0)
        exit(1);
}

#define V2(shape, chunks, dtype)                                                                   \
    "{\"zarr_format\": 2, \"shape\": " shape ", \"chunks\": " chunks ", \"dtype\": " dtype         \
    ", \"order\": \"C\", \"fill_value\": 0, \"filters\": null, \"compressor\": null}"

static void put_all(void)
{
    put(".zgroup", "{\"zarr_format\": 2}");
    put(".zattrs", "{\"title\": \"A \\\"test\\\"\"}");
    put("ocean/.zgroup", "{\"zarr_format\": 2}");
    put("ocean/salt/.zarray", V2("[4, 6]", "[2, 3]", "\"<f4\""));
    put("ocean/salt/.zattrs", "{\"_ARRAY_DIMENSIONS\": [\"y\", \"x\"], \"units\": \"1\"}");
    put("ocean.d/.zarray", V2("[4]", "[2]", "\"<i8\""));
    put("bad/.zarray", V2("[4]", "[2]", "\"<q9\""));
}

static struct hr_archive *open_archive(void)
{
    struct hr_archive *a = NULL;
    if (hr_open("memory://archive", NULL, &a, &e) < 0)
        printf("# %s\n", e.text);
    return a;
}

static void one_array_is_the_same_node_as_in_the_whole_report(void)
{
    struct hr_archive *a = open_archive();
    char *all = NULL, *one = NULL;
    if (check(a != NULL)) {
        check_eq(hr_archive_array_json(a, "/ocean/salt/", &one, &e), 0);
        check_eq(hr_archive_json(a, &all, &e), 0);
        check(one && all && strstr(all, one));
        hr_free(one);
        one = NULL;
        check_eq(hr_archive_array_json(a, "bad", &one, &e), 0); /* its problem is a member */
        check(one && strstr(one, "q9"));
        hr_free(one);
        one = NULL;
        check_eq(hr_archive_array_json(a, "ocean/slat", &one, &e), HR_ENOENT);
        check_has(e.text, "did you mean \"ocean/salt\"");
        check_eq(hr_archive_array_json(a, NULL, &one, &e), HR_EINVAL);
    }
    hr_free(one);
    hr_free(all);
    hr_archive_unref(a);
}

static void the_report_is_json_in_order_of_path(void)
{
    static const char *const order[] = {"", "bad", "ocean", "ocean/salt", "ocean.d"};
    struct hr_archive *a = open_archive();
    struct arena arena;
    struct json *doc = NULL;
    char *text = NULL;
    arena_init(&arena);
    if (check(a && hr_archive_json(a, &text, &e) == 0) &&
        check(json_parse(&arena, text, strlen(text), "report", &doc, &e) == 0)) {
        const struct json *nodes = json_get(doc, "nodes");
        check_str(json_str(json_get(json_get(doc, "attributes"), "title")), "A \"test\"");
        check_str(json_str(json_get(doc, "format")), "zarr v2");
        check(json_get(doc, "complete") && json_get(doc, "complete")->boolean);
        check_eq(nodes->size, 5);
        for (uint32_t i = 0; i < nodes->size && i < 5; i++)
            check_str(json_str(json_get(&nodes->items[i], "path")), order[i]);
        check_has(json_str(json_get(&nodes->items[1], "error")), "q9");
        check(json_is(json_get(&nodes->items[3], "error"), JSON_NULL));
        int64_t n = 0;
        check(json_int64(json_get(&nodes->items[3], "bytes"), &n) && n == 96);
        check(json_int64(json_get(&nodes->items[3], "n_chunks"), &n) && n == 4);
        check_str(json_str(&json_get(&nodes->items[3], "dims")->items[1]), "x");
    }
    hr_free(text);
    arena_dispose(&arena);
    hr_archive_unref(a);
}

static void using_a_bad_array_is_the_error(void)
{
    struct hr_archive *a = open_archive();
    const struct array *x;
    check_eq(archive_array(a, "ocean/salt", &x, &e), 0);
    check(archive_array(a, "bad", &x, &e) < 0);
    check_has(e.text, "memory://archive");
    check_has(e.text, "q9");
    check_eq(archive_array(a, "ocean/slat", &x, &e), HR_ENOENT);
    check_has(e.text, "did you mean \"ocean/salt\"?");
    check(archive_find(a, "bad", &x, &e) < 0);
    check_eq(archive_find(a, "ocean/nothing", &x, &e), 0);
    check(!x);
    hr_archive_unref(a);
}

static void what_cannot_be_opened_says_why(void)
{
    struct hr_archive *a = NULL;
    check_eq(hr_open("memory://empty", NULL, &a, &e), HR_ENOENT);
    check_has(e.text, "memory://empty");
    check(hr_open("nfs://x/y", NULL, &a, &e) == HR_EUNSUPPORTED);
    check_eq(hr_open(NULL, NULL, &a, &e), HR_EINVAL);
    check(!a);
}

static void *look_up(void *arg)
{
    struct hr_error mine;
    const struct array *x = NULL;
    for (int i = 0; i < 200; i++)
        if (archive_array(arg, i % 2 ? "ocean/salt" : "ocean.d", &x, &mine) < 0 || !x->n_chunks)
            return NULL;
    return arg;
}

static void threads_share_an_archive(void)
{
    struct hr_archive *a = open_archive();
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        check_eq(thread_start(&threads[i], "look-up", look_up, a), 0);
    for (int i = 0; i < 4; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        check(result == a);
    }
    hr_archive_unref(a);
}

static void a_forked_child_is_told_to_open_it_again(void)
{
    struct hr_archive *a = open_archive(), *again = NULL;
    const struct array *x;
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        bool good =
            archive_array(a, "ocean.d", &x, &e) == HR_EFORK && strstr(e.text, "open it again");
        hr_archive_unref(a);
        good = good && hr_open("memory://archive", NULL, &again, &e) == 0 &&
               archive_array(again, "ocean.d", &x, &e) == 0;
        _exit(good ? 0 : 1);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    check_eq(status, 0);
    check_eq(archive_array(a, "ocean.d", &x, &e), 0);
    hr_archive_unref(a);
}

/* Compared with each other or looked up one by one, 4 · 10^5 of them are 10^11 steps: minutes. */
static void time_goes_with_the_number_of_attributes(void)
{
    enum { N = 400000 };
    struct hr_archive *a = NULL;
    struct buf doc;
    char *text = NULL;
    buf_init(&doc);
    for (int i = 0; i < N; i++)
        buf_printf(&doc, "%c\"key_%d\": %d", i ? ',' : '{', i, i);
    buf_puts(&doc, "}");
    memory_put("many", ".zgroup", "{\"zarr_format\": 2}", 18, NULL);
    memory_put("many", ".zattrs", doc.data, doc.size, NULL);
    memory_put("many", "x/.zarray", V2("[4]", "[2]", "\"<f4\""),
               strlen(V2("[4]", "[2]", "\"<f4\"")), NULL);
    memory_put("many", "x/.zattrs", doc.data, doc.size, NULL);
    buf_dispose(&doc);
    if (check(hr_open("memory://many", NULL, &a, &e) == 0) &&
        check(hr_archive_json(a, &text, &e) == 0)) {
        char *at = text;
        int copies = 0;
        for (; (at = strstr(at, "\"key_399999\": 399999")); at++)
            copies++;
        check_eq(copies, 3); /* of the root, of the root as a node, of x */
    }
    hr_free(text);
    hr_archive_unref(a);
    memory_drop("many");
}

static void asking_again_for_an_array_costs_no_memory(void)
{
    struct hr_archive *a = open_archive();
    const struct array *x = NULL;
    check(archive_array(a, "ocean/salt", &x, &e) == 0);
    uint64_t before = mem_live();
    int failed = 0;
    for (int i = 0; i < 1000; i++)
        failed += archive_array(a, "/ocean/salt/", &x, &e) < 0;
    check_eq(failed, 0);
    check_eq(mem_live(), before);
    hr_archive_unref(a);
}

static void metadata_nested_or_sized_beyond_reason_is_refused(void)
{
    enum { DEEP = 10000, LARGE = 100000000 };
    struct hr_archive *a = NULL;
    struct buf doc;
    buf_init(&doc);
    buf_puts(&doc, "{\"a\":");
    for (int i = 0; i < DEEP; i++)
        buf_puts(&doc, i % 2 ? "[" : "{\"a\":");
    memory_put("deep", ".zgroup", "{\"zarr_format\": 2}", 18, NULL);
    memory_put("deep", ".zattrs", doc.data, doc.size, NULL);
    check_eq(hr_open("memory://deep", NULL, &a, &e), HR_EFORMAT);
    check_has(e.text, "nested deeper than 128 levels");
    memory_drop("deep");
    buf_clear(&doc);
    if (check(buf_reserve(&doc, LARGE) == 0)) {
        memset(doc.data, ' ', LARGE);
        memory_put("large", ".zgroup", "{\"zarr_format\": 2}", 18, NULL);
        memory_put("large", ".zattrs", doc.data, LARGE, NULL);
        check_eq(hr_open("memory://large", NULL, &a, &e), HR_EUNSUPPORTED);
        check_has(e.text, "100.0 MB");
        memory_drop("large");
    }
    buf_dispose(&doc);
}

int main(void)
{
    struct store_shared *kept; /* while the process lives */
    check_eq(runtime_shared(&kept, &e), 0);
    uint64_t live = mem_live();
    put_all();
    RUN(the_report_is_json_in_order_of_path);
    RUN(one_array_is_the_same_node_as_in_the_whole_report);
    RUN(using_a_bad_array_is_the_error);
    RUN(what_cannot_be_opened_says_why);
    RUN(time_goes_with_the_number_of_attributes);
    RUN(asking_again_for_an_array_costs_no_memory);
    RUN(metadata_nested_or_sized_beyond_reason_is_refused);
    RUN(threads_share_an_archive);
    RUN(a_forked_child_is_told_to_open_it_again);
    memory_drop("archive");
    check_eq(mem_live(), live);
    return t_done();
}
