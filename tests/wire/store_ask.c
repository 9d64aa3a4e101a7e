/* A store as other languages see it: opens the URL of its first argument with the options of its
 * second, and answers the commands on standard input, a line each. Names and bytes in hexadecimal.
 *
 *     read KEY OFFSET LENGTH     "bytes SIZE HEX", "missing" or "error TEXT"
 *     list PREFIX                "names NAME NAME …" or "error TEXT" */
#include "base/mem.h"
#include "wire/wire.h"

static void unhex(char *text)
{
    size_t n = 0;
    for (unsigned c; sscanf(text + 2 * n, "%2x", &c) == 1; n++)
        text[n] = (char)c;
    text[n] = 0;
}

static void put_hex(const char *data, size_t n)
{
    for (size_t i = 0; i < n; i++)
        printf("%02x", (unsigned char)data[i]);
}

static void answer_read(struct store *s, const char *key, long long offset,
                        unsigned long long length)
{
    struct got g = read_range(s, key, offset, length);
    if (g.r.rc == 0) {
        printf("bytes %llu ", (unsigned long long)g.r.object_size);
        put_hex(g.data, g.r.size);
        putchar('\n');
    } else if (g.r.rc == STORE_MISSING) {
        puts("missing");
    } else {
        printf("error %s\n", g.r.error.text);
    }
    free(g.data);
}

static void answer_list(struct store *s, const char *prefix)
{
    char *names;
    size_t size;
    struct hr_error e = {0};
    if (store_list(s, prefix, &names, &size, &e) < 0) {
        printf("error %s\n", e.text);
        return;
    }
    printf("names");
    for (size_t at = 0; at < size; at += strlen(names + at) + 1) {
        putchar(' ');
        put_hex(names + at, strlen(names + at));
    }
    putchar('\n');
    mem_free(names);
}

int main(int argc, char **argv)
{
    char line[8192], key[8192];
    struct store *s;
    struct hr_error e = {0};
    long long offset;
    unsigned long long length;
    if (argc < 2 || store_open(argv[1], argc > 2 ? argv[2] : NULL, &s, &e) < 0) {
        printf("error %s\n", e.text);
        return 1;
    }
    while (fgets(line, sizeof line, stdin)) {
        key[0] = 0;
        if (sscanf(line, "read %8191s %lld %llu", key, &offset, &length) == 3) {
            unhex(key);
            answer_read(s, key, offset, length);
        } else if (!strncmp(line, "list", 4)) {
            sscanf(line, "list %8191s", key);
            unhex(key);
            answer_list(s, key);
        }
        fflush(stdout);
    }
    store_unref(s);
    return mem_live() ? 1 : 0;
}
