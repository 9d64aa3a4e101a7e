/* Objects as bytes: whole, ranges and ends of them, where they go, and which version of them it was. */
#include "headrace.h"
#include "t.h"
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct hr_error e;
static char root[] = "/tmp/hr_objects_XXXXXX";

static void put(const char *name, const char *text)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        exit(1);
}

static struct hr_objects *open_objects(void)
{
    struct hr_objects *o = NULL;
    if (hr_objects_open(root, NULL, &o, &e) < 0)
        printf("# %s\n", e.text);
    return o;
}

static void any_part_of_an_object_is_read(void)
{
    struct hr_objects *o = open_objects();
    struct hr_object x = {0};
    if (!check(o != NULL))
        return;
    check_eq(hr_objects_read(o, "a.bin", 0, 0, &x, &e), 1);
    check(x.n == 10 && x.size == 10 && x.version && !memcmp(x.data, "0123456789", 10));
    hr_free(x.data);
    char into[4];
    x = (struct hr_object){.data = into, .n = sizeof into};
    check_eq(hr_objects_read(o, "a.bin", 3, 4, &x, &e), 1);
    check(x.n == 4 && x.size == 10 && !memcmp(into, "3456", 4));
    x = (struct hr_object){.data = into, .n = sizeof into};
    check_eq(hr_objects_read(o, "a.bin", -2, 0, &x, &e), 1);
    check(x.n == 2 && !memcmp(into, "89", 2));
    x = (struct hr_object){.data = into, .n = sizeof into};
    check_eq(hr_objects_read(o, "a.bin", 0, 5, &x, &e), HR_EINVAL);
    check_has(e.text, "a.bin: more bytes than the 4 that fit here");
    x = (struct hr_object){.data = into, .n = sizeof into};
    check_eq(hr_objects_read(o, "a.bin", 8, 4, &x, &e), HR_EDATA);
    x = (struct hr_object){0};
    check_eq(hr_objects_read(o, "b.bin", 0, 0, &x, &e), 0);
    check_eq(hr_objects_read(o, "../a", 0, 0, &x, &e), HR_EINVAL);
    hr_objects_unref(o);
}

static void what_is_written_anew_is_another_version(void)
{
    struct hr_objects *o = open_objects();
    struct hr_object x = {0};
    put("v.bin", "aaaa");
    check_eq(hr_objects_read(o, "v.bin", 0, 0, &x, &e), 1);
    uint64_t before = x.version;
    hr_free(x.data);
    x = (struct hr_object){0};
    check_eq(hr_objects_read(o, "v.bin", -1, 0, &x, &e), 1);
    check(x.version == before);
    hr_free(x.data);
    usleep(20000);
    put("v.bin", "bbbb");
    x = (struct hr_object){0};
    check_eq(hr_objects_read(o, "v.bin", 0, 0, &x, &e), 1);
    check(x.version != before);
    hr_free(x.data);
    hr_objects_unref(o);
}

static void names_are_listed(void)
{
    struct hr_objects *o = open_objects();
    char *names = NULL, sub[200];
    size_t n = 0;
    snprintf(sub, sizeof sub, "%s/deep", root);
    mkdir(sub, 0700);
    put("deep/x", "x");
    check_eq(hr_objects_list(o, "deep", &names, &n, &e), 0);
    check(n == 2 && !strcmp(names, "x"));
    hr_free(names);
    check_eq(hr_objects_list(o, "absent", &names, &n, &e), 0);
    check(n == 0);
    hr_free(names);
    hr_objects_unref(o);
}

static void a_forked_child_opens_its_own(void)
{
    struct hr_objects *o = open_objects();
    struct hr_object x = {0};
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        bool refused = hr_objects_read(o, "a.bin", 0, 0, &x, &e) == HR_EFORK;
        hr_objects_unref(o);
        struct hr_objects *own = open_objects();
        _exit(refused && own && hr_objects_read(own, "a.bin", 0, 0, &x, &e) == 1 ? 0 : 1);
    }
    check(waitpid(child, &status, 0) == child && status == 0);
    hr_objects_unref(o);
}

int main(void)
{
    if (!mkdtemp(root))
        return 1;
    put("a.bin", "0123456789");
    RUN(any_part_of_an_object_is_read);
    RUN(what_is_written_anew_is_another_version);
    RUN(names_are_listed);
    RUN(a_forked_child_opens_its_own);
    struct hr_objects *o = NULL;
    check_eq(hr_objects_open("/no/such/place", NULL, &o, &e), HR_ENOENT);
    check_eq(hr_objects_open(NULL, NULL, &o, &e), HR_EINVAL);
    return t_done();
}
