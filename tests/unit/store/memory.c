#include "store/memory.h"

#include "base/mem.h"
#include "store/store.h"
#include "t.h"

static char text[64];

static void *room(void *arg, uint64_t size)
{
    (void)arg;
    return size < sizeof text ? text : NULL;
}

static int get(struct store *s, const char *key, int64_t offset, uint64_t length)
{
    struct store_sink sink = {room, NULL};
    struct store_result r;
    memset(text, 0, sizeof text);
    return store_read(s, key, (struct store_range){offset, length}, &sink, &r);
}

static void what_was_put_is_read(void)
{
    struct store *s;
    check_eq(memory_put("one", "a/c/0", "0123456789", 10, NULL), 0);
    check_eq(memory_put("one", "empty", NULL, 0, NULL), 0);
    check_eq(store_open("memory://one", NULL, &s, NULL), 0);
    check_eq(get(s, "a/c/0", 0, 0), 0);
    check_str(text, "0123456789");
    check_eq(get(s, "a/c/0", 2, 3), 0);
    check_str(text, "234");
    check_eq(get(s, "a/c/0", -2, 0), 0);
    check_str(text, "89");
    check_eq(get(s, "empty", 0, 0), 0);
    check_eq(get(s, "a/c/0", 8, 3), HR_EDATA);
    check_eq(get(s, "a/c/1", 0, 0), STORE_MISSING);
    check_eq(memory_put("one", "a/c/0", "new", 3, NULL), 0);
    check_eq(get(s, "a/c/0", 0, 0), 0);
    check_str(text, "new");
    memory_delete("one", "a/c/0");
    check_eq(get(s, "a/c/0", 0, 0), STORE_MISSING);
    memory_drop("one");
    check_eq(get(s, "empty", 0, 0), STORE_MISSING);
    store_unref(s);
}

static void names_below_a_prefix_are_listed(void)
{
    struct store *s;
    char *names;
    size_t size;
    const char *const keys[] = {"zarr.json", "a/zarr.json", "a/c/0/0",
                                "a/c/0/1",   "a/c/1/0",     "ab/x"};
    for (size_t i = 0; i < 6; i++)
        check_eq(memory_put("two", keys[i], "x", 1, NULL), 0);
    check_eq(store_open("memory://two", NULL, &s, NULL), 0);
    check_eq(store_list(s, "", &names, &size, NULL), 0);
    check(size == 17 && !memcmp(names, "a/\0ab/\0zarr.json\0", 17));
    mem_free(names);
    check_eq(store_list(s, "a/c", &names, &size, NULL), 0);
    check(size == 6 && !memcmp(names, "0/\0001/\0", 6));
    mem_free(names);
    check_eq(store_list(s, "none", &names, &size, NULL), 0);
    check_eq(size, 0);
    mem_free(names);
    store_unref(s);
    memory_drop("two");
}

static void unknown_names_are_no_empty_archives(void)
{
    struct store *s;
    check_eq(store_open("memory://nothing", NULL, &s, NULL), HR_ENOENT);
    check_eq(store_open("memory://nothing", "{\"x\": 1}", &s, NULL), HR_EINVAL);
}

static void running_out_of_memory_leaks_nothing(void)
{
    for (uint64_t n = 1; n < 14; n++) {
        struct store *s = NULL;
        uint64_t live = mem_live();
        mem_fail_at(n, false);
        int rc = memory_put("three", "k", "v", 1, NULL);
        if (rc == 0)
            rc = store_open("memory://three", NULL, &s, NULL);
        mem_fail_at(0, false);
        check(rc == 0 || rc == HR_ENOMEM);
        store_unref(s);
        memory_drop("three");
        check_eq(mem_live(), live);
    }
}

int main(void)
{
    RUN(what_was_put_is_read);
    RUN(names_below_a_prefix_are_listed);
    RUN(unknown_names_are_no_empty_archives);
    RUN(running_out_of_memory_leaks_nothing);
    return t_done();
}
