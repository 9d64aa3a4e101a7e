#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "store/store.h"
#include "t.h"

static char root[64];

static char *path_of(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static void put(const char *name, const char *text)
{
    int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    check(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static void fresh_root(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    if (*root)
        check_eq(system(command), 0);
    snprintf(root, sizeof root, "/tmp/headrace-file-XXXXXX");
    check(mkdtemp(root) != NULL);
    mkdir(path_of("a"), 0755);
    mkdir(path_of("a/c"), 0755);
    put("zarr.json", "{}");
    put("a/c/0", "0123456789");
}

static struct store *open_root(void)
{
    struct store *s = NULL;
    check_eq(store_open(root, NULL, &s, NULL), 0);
    return s;
}

static void *room(void *arg, uint64_t size)
{
    (void)size;
    return arg;
}

static int get(struct store *s, const char *key, int64_t offset, uint64_t length, char *text,
               struct store_result *r)
{
    struct store_sink sink = {room, text};
    memset(text, 0, 64);
    return store_read(s, key, (struct store_range){offset, length}, &sink, r);
}

static void check_get(struct store *s, const char *key, int64_t offset, uint64_t length,
                      const char *want)
{
    char text[64];
    struct store_result r;
    check_eq(get(s, key, offset, length, text, &r), STORE_OK);
    check_str(text, want);
    check_eq(r.size, strlen(want));
}

static void check_fails(struct store *s, const char *key, int code, const char *part)
{
    char text[64];
    struct store_result r;
    check_eq(get(s, key, 0, 0, text, &r), code);
    check_eq(r.error.code, code < 0 ? code : 0);
    if (part)
        check_has(r.error.text, part);
}

static void whole_files_and_ranges_are_read(void)
{
    fresh_root();
    struct store *s = open_root();
    char text[64];
    struct store_result r;
    check_get(s, "a/c/0", 0, 0, "0123456789");
    check_get(s, "a/c/0", 3, 4, "3456");
    check_get(s, "a/c/0", 0, 10, "0123456789");
    check_get(s, "a/c/0", -3, 0, "789");
    check_get(s, "a/c/0", -30, 0, "0123456789");
    check_eq(get(s, "a/c/0", 3, 4, text, &r), 0);
    check_eq(r.object_size, 10);
    put("empty", "");
    check_get(s, "empty", 0, 0, "");
    check_get(s, "empty", -5, 0, "");
    check(store_blocking(s) && store_local(s) && !store_remote(s));
    check_str(store_url(s), root);
    store_unref(s);
}

static void ranges_beyond_the_end_are_errors(void)
{
    fresh_root();
    struct store *s = open_root();
    char text[64];
    struct store_result r;
    check_eq(get(s, "a/c/0", 5, 6, text, &r), HR_EDATA);
    check_has(r.error.text, "10 bytes");
    check_has(r.error.text, "a/c/0");
    check_eq(get(s, "a/c/0", 100, 1, text, &r), HR_EDATA);
    check_eq(get(s, "a/c/0", 5, 0, text, &r), HR_EINVAL);
    check_eq(get(s, "a/c/0", INT64_MAX, UINT64_MAX, text, &r), HR_EINVAL);
    check_eq(get(s, "a/c/0", INT64_MIN, 0, text, &r), HR_EINVAL);
    store_unref(s);
}

static void absent_keys_are_missing(void)
{
    fresh_root();
    struct store *s = open_root();
    check_fails(s, "a/c/1", STORE_MISSING, NULL);
    check_fails(s, "b/c/0", STORE_MISSING, NULL);
    check_fails(s, "zarr.json/c/0", STORE_MISSING, NULL); /* a part of the key is a file */
    int fd;
    uint64_t size;
    check_eq(store_open_file(s, "a/c/1", &fd, &size, NULL), STORE_MISSING);
    check_eq(fd, -1);
    store_unref(s);
}

static void a_vanished_root_is_an_error_not_missing_keys(void)
{
    char command[160], aside[80];
    fresh_root();
    struct store *s = open_root();
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    check_eq(system(command), 0);
    check_fails(s, "a/c/0", HR_ESTORE, "disappeared");
    mkdir(root, 0755); /* another directory of that name is not it */
    check_fails(s, "a/c/0", HR_ESTORE, "disappeared");
    store_unref(s);
    fresh_root();
    s = open_root();
    snprintf(aside, sizeof aside, "%s.aside", root);
    check_eq(rename(root, aside), 0);
    check_get(s, "a/c/0", 0, 0, "0123456789"); /* what is there is the archive that was opened */
    check_fails(s, "a/c/1", HR_ESTORE, "disappeared");
    check_eq(rename(aside, root), 0);
    check_fails(s, "a/c/1", STORE_MISSING, NULL);
    store_unref(s);
}

static void dangling_links_are_errors_not_missing_keys(void)
{
    fresh_root();
    struct store *s = open_root();
    check_eq(symlink("../.git/annex/objects/x", path_of("a/c/1")), 0);
    check_eq(symlink("/nowhere", path_of("gone")), 0);
    check_eq(symlink("a", path_of("alias")), 0);
    check_fails(s, "a/c/1", HR_ESTORE, "fetch");
    check_fails(s, "gone/c/0", HR_ESTORE, "gone");
    check_get(s, "alias/c/0", 0, 0, "0123456789"); /* links are followed */
    check_fails(s, "alias/c/2", STORE_MISSING, NULL);
    store_unref(s);
}

static void what_is_no_file_is_an_error(void)
{
    fresh_root();
    struct store *s = open_root();
    check_eq(mkfifo(path_of("fifo"), 0644), 0);
    check_fails(s, "a/c", HR_ESTORE, "directory");
    check_fails(s, "fifo", HR_ESTORE, "regular");
    store_unref(s);
}

static void unreadable_files_are_errors(void)
{
    fresh_root();
    if (geteuid() == 0)
        SKIP("root reads everything");
    struct store *s = open_root();
    chmod(path_of("a/c/0"), 0);
    check_fails(s, "a/c/0", HR_ESTORE, "ermission");
    chmod(path_of("a/c"), 0);
    check_fails(s, "a/c/1", HR_ESTORE, "ermission");
    chmod(path_of("a/c"), 0755);
    store_unref(s);
}

static void keys_cannot_leave_the_root(void)
{
    fresh_root();
    struct store *s = open_root();
    const char *const keys[] = {"../x",        "a/../../x", "..", "/etc/passwd", "a//c/0", "a/c/0/",
                                "./zarr.json", "a/./c/0",   ""};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        check_fails(s, keys[i], HR_EINVAL, NULL);
    char *names;
    size_t size;
    check_eq(store_list(s, "..", &names, &size, NULL), HR_EINVAL);
    put("..data", "fine");
    check_get(s, "..data", 0, 0, "fine");
    store_unref(s);
}

static void names_are_listed_in_order(void)
{
    fresh_root();
    struct store *s = open_root();
    char *names;
    size_t size;
    put("a/zarr.json", "{}");
    check_eq(symlink("a", path_of("alias")), 0);
    check_eq(store_list(s, "", &names, &size, NULL), 0);
    check(size == 20 && !memcmp(names, "a/\0alias/\0zarr.json\0", 20));
    mem_free(names);
    check_eq(store_list(s, "a", &names, &size, NULL), 0);
    check(size == 13 && !memcmp(names, "c/\0zarr.json\0", 13));
    mem_free(names);
    check_eq(store_list(s, "nothing/here", &names, &size, NULL), 0);
    check_eq(size, 0);
    mem_free(names);
    store_unref(s);
}

static void files_are_opened_for_workers(void)
{
    fresh_root();
    struct store *s = open_root();
    int fd;
    uint64_t size;
    char c;
    check_eq(store_open_file(s, "a/c/0", &fd, &size, NULL), 0);
    check_eq(size, 10);
    check(pread(fd, &c, 1, 4) == 1 && c == '4');
    check_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    close(fd);
    store_unref(s);
}

static void *refuse(void *arg, uint64_t size)
{
    *(uint64_t *)arg = size;
    return NULL;
}

static void a_refused_room_says_the_size(void)
{
    fresh_root();
    struct store *s = open_root();
    uint64_t asked = 0;
    struct store_sink sink = {refuse, &asked};
    struct store_result r;
    check_eq(store_read(s, "a/c/0", (struct store_range){0}, &sink, &r), HR_ENOMEM);
    check_eq(asked, 10);
    check_eq(r.object_size, 10);
    store_unref(s);
}

static void paths_and_urls_mean_the_same(void)
{
    char url[128];
    struct store *s;
    fresh_root();
    mkdir(path_of("with space"), 0755);
    put("with space/k", "x");
    snprintf(url, sizeof url, "file://%s/with%%20space", root);
    check_eq(store_open(url, NULL, &s, NULL), 0);
    check_get(s, "k", 0, 0, "x");
    store_unref(s);
    snprintf(url, sizeof url, "FILE://localhost%s/with%%20space/", root);
    check_eq(store_open(url, "{}", &s, NULL), 0);
    store_unref(s);
}

static void what_cannot_be_opened_says_why(void)
{
    struct store *s;
    struct hr_error e;
    char path[128];
    fresh_root();
    snprintf(path, sizeof path, "%s/none", root);
    check_eq(store_open(path, NULL, &s, &e), HR_ENOENT);
    check_has(e.text, path);
    snprintf(path, sizeof path, "%s/zarr.json", root);
    check_eq(store_open(path, NULL, &s, &e), HR_EUNSUPPORTED);
    check_has(e.text, "directories");
    check_eq(store_open(root, "{\"headers\": {}}", &s, &e), HR_EINVAL);
    check_eq(store_open("file://host/x", NULL, &s, &e), HR_EINVAL);
    check_eq(store_open("file:///%zz", NULL, &s, &e), HR_EINVAL);
    check(s == NULL);
}

static void files_that_are_no_directory_are_told_apart(void)
{
    struct store *s;
    struct hr_error e;
    fresh_root();
    put("cells.h5ad", "\x89HDF\r\n\x1a\n and more");
    check_eq(store_open(path_of("cells.h5ad"), NULL, &s, &e), HR_EUNSUPPORTED);
    check_has(e.text, "headrace cells chunk");
    check_eq(store_open(path_of("zarr.json"), NULL, &s, &e), HR_EUNSUPPORTED);
    check_has(e.text, "archives are directories");
}

static void a_relative_root_survives_chdir(void)
{
    struct store *s;
    char cwd[256];
    fresh_root();
    check(getcwd(cwd, sizeof cwd) != NULL);
    check_eq(chdir(root), 0);
    check_eq(store_open("a", NULL, &s, NULL), 0);
    check_eq(chdir("/"), 0);
    check_get(s, "c/0", 0, 0, "0123456789");
    check_fails(s, "c/1", STORE_MISSING, NULL);
    check_eq(chdir(cwd), 0);
    store_unref(s);
}

static void counters_add_up(void)
{
    fresh_root();
    struct store *s = open_root();
    struct buf b;
    buf_init(&b);
    check_get(s, "a/c/0", 0, 0, "0123456789");
    check_fails(s, "a/c/1", STORE_MISSING, NULL);
    check_fails(s, "a/c", HR_ESTORE, NULL);
    store_stats_json(s, &b);
    check_str(b.data, "{\"requests\": 3, \"bytes\": 10, \"missing\": 1, \"failed\": 1}");
    buf_dispose(&b);
    store_unref(s);
}

static void running_out_of_memory_leaks_nothing(void)
{
    fresh_root();
    for (uint64_t n = 1; n < 12; n++) {
        struct store *s = NULL;
        char *names = NULL;
        size_t size;
        uint64_t live = mem_live();
        mem_fail_at(n, false);
        int rc = store_open(root, "{}", &s, NULL);
        if (rc == 0)
            rc = store_list(s, "", &names, &size, NULL);
        mem_fail_at(0, false);
        check(rc == 0 || rc == HR_ENOMEM);
        mem_free(names);
        store_unref(s);
        check_eq(mem_live(), live);
    }
}

int main(void)
{
    RUN(whole_files_and_ranges_are_read);
    RUN(ranges_beyond_the_end_are_errors);
    RUN(absent_keys_are_missing);
    RUN(a_vanished_root_is_an_error_not_missing_keys);
    RUN(dangling_links_are_errors_not_missing_keys);
    RUN(what_is_no_file_is_an_error);
    RUN(unreadable_files_are_errors);
    RUN(keys_cannot_leave_the_root);
    RUN(names_are_listed_in_order);
    RUN(files_are_opened_for_workers);
    RUN(a_refused_room_says_the_size);
    RUN(paths_and_urls_mean_the_same);
    RUN(what_cannot_be_opened_says_why);
    RUN(files_that_are_no_directory_are_told_apart);
    RUN(a_relative_root_survives_chdir);
    RUN(counters_add_up);
    RUN(running_out_of_memory_leaks_nothing);
    fresh_root();
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command) == 0 ? t_done() : 1;
}
