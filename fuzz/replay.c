/* Runs a fuzz target over its corpus, so that each input that once mattered is a regression test in every build and under
 * every sanitizer. Each input is run whole and cut short at up to 64 places, because truncation is the commonest damage;
 * from a heap block of exactly its size, so that a read beyond the end is seen. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CUTS 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void run(const uint8_t *data, size_t n)
{
    uint8_t *exact = malloc(n ? n : 1);
    if (!exact)
        abort();
    if (n)
        memcpy(exact, data, n);
    LLVMFuzzerTestOneInput(exact, n);
    free(exact);
}

static uint8_t *file_read(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) || (*n = (size_t)ftell(f)) == (size_t)-1)
        return NULL;
    rewind(f);
    uint8_t *data = malloc(*n + 1);
    if (data && fread(data, 1, *n, f) != *n) {
        free(data);
        data = NULL;
    }
    fclose(f);
    return data;
}

static int is_input(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

int main(int argc, char **argv)
{
    int tests = 0, failed = 0;
    for (int i = 1; i < argc; i++) {
        struct dirent **entries;
        int count = scandir(argv[i], &entries, is_input, alphasort);
        if (count <= 0) {
            printf("not ok %d - %s holds inputs\n", ++tests, argv[i]);
            failed++;
            continue;
        }
        for (int j = 0; j < count; j++) {
            char path[4096];
            snprintf(path, sizeof(path), "%s/%s", argv[i], entries[j]->d_name);
            size_t n = 0;
            uint8_t *data = file_read(path, &n);
            printf("# %s\n", entries[j]->d_name); /* the last one before a crash */
            fflush(stdout);
            if (data) {
                run(data, n);
                for (size_t cut = 0; cut < CUTS && cut < n; cut++)
                    run(data, n <= CUTS ? cut : n / CUTS * cut);
            }
            failed += !data;
            printf("%s %d - replays %s\n", data ? "ok" : "not ok", ++tests, entries[j]->d_name);
            free(data);
            free(entries[j]);
        }
        free(entries);
    }
    printf("1..%d\n", tests);
    return failed ? 1 : 0;
}
