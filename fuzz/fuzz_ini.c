/* Files of ~/.aws: any text is parsed without reading past it; what is found is what ini_get and
 * ini_nested give back; faults show no text of the file beyond its section names. Each value is
 * then divided into words, and no word is longer than the text it comes from. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/ini.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_words(const char *value, struct arena *a)
{
    char **words;
    size_t n, total = 0;
    if (ini_words(value, a, &words, &n, NULL) < 0)
        return;
    if (words[n])
        __builtin_trap();
    for (size_t i = 0; i < n; i++)
        total += strlen(words[i]);
    if (total > strlen(value))
        __builtin_trap();
}

static void check_section(const struct ini *ini, const struct ini_section *s, struct arena *a)
{
    if (ini_section(ini, NULL, s->name) != s)
        __builtin_trap();
    for (const struct ini_value *v = s->values; v; v = v->next) {
        size_t size = 0;
        if (ini_get(s, v->name) != v->value)
            __builtin_trap();
        const char *inner = ini_nested(s, v->name, "endpoint_url", &size);
        if (inner && (inner < v->value || inner + size > v->value + strlen(v->value)))
            __builtin_trap();
        check_words(v->value, a);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct ini ini;
    struct arena a;
    struct hr_error e = {0};
    char *text = malloc(n ? n : 1); /* exactly as large, so that a sanitizer sees one byte more */
    if (!text)
        return 0;
    memcpy(text, data, n);
    arena_init(&a);
    if (ini_parse(&ini, text, n, "f", &a, &e) == 0) {
        for (const struct ini_section *s = ini.sections; s; s = s->next)
            check_section(&ini, s, &a);
        ini_section(&ini, "profile", "dev");
    } else if (!e.text[0]) {
        __builtin_trap();
    }
    arena_dispose(&a);
    free(text);
    return 0;
}
