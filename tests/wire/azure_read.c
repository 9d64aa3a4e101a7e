/* What an Azure store gives, printed for tests in other languages. Arguments: a URL, storage options
 * as JSON, and then keys in hexadecimal, each answered by a line: "= " and the bytes in hexadecimal,
 * "missing", or "error: " and its text. A key "-" asks for a listing of the root instead, and one
 * that begins with '-' for the end of the rest of it, 4 bytes. */
#include "wire/wire.h"

static void show(const char *data, uint64_t n)
{
    printf("= ");
    for (uint64_t i = 0; i < n; i++)
        printf("%02x", (unsigned char)data[i]);
    printf("\n");
}

static void unhex(const char *hex, char *out, size_t room)
{
    size_t n = 0;
    unsigned byte;
    for (; n + 1 < room && sscanf(hex + 2 * n, "%2x", &byte) == 1; n++)
        out[n] = (char)byte;
    out[n] = 0;
}

static void list(struct store *s)
{
    struct hr_error e = {0};
    char *names;
    size_t size;
    if (store_list(s, "", &names, &size, &e) < 0)
        printf("error: %s\n", e.text);
    else
        show(names, size);
    mem_free(names);
}

static void get(struct store *s, const char *hex)
{
    char key[1024];
    bool end = *hex == '-';
    unhex(hex + end, key, sizeof key);
    struct got g = read_range(s, key, end ? -4 : 0, 0);
    if (g.r.rc < 0)
        printf("error: %s\n", g.r.error.text);
    else if (g.r.rc == STORE_MISSING)
        printf("missing\n");
    else
        show(g.data, g.r.size);
    free(g.data);
}

int main(int argc, char **argv)
{
    static const struct net_policy quick = QUICK;
    struct store *s;
    struct hr_error e = {0};
    if (argc < 3)
        return 2;
    if (store_open_with(argv[1], argv[2], &(struct store_env){NULL, &quick}, &s, &e) < 0) {
        printf("error: %s\n", e.text);
        return 0;
    }
    for (int i = 3; i < argc; i++) {
        if (!strcmp(argv[i], "-"))
            list(s);
        else
            get(s, argv[i]);
    }
    store_unref(s);
    return 0;
}
