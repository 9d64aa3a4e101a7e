/* Connection strings, URLs and endpoints of Azure, as users paste them: whatever the text, what comes of it is part of it,
 * and an error shows neither a key nor a signature. The first byte says which of the three it is. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/azure.h"
#include "store/azure_address.h"

#define SECRET "c2VjcmV0" /* of the corpus: what stands behind AccountKey= and sig= */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_part(const char *part, const char *text)
{
    if (part && strlen(part) > strlen(text))
        __builtin_trap();
}

/* Secrets stand behind names or in a query; what is pasted anywhere else is shown. */
static void check_error(int rc, const struct hr_error *e, const char *open)
{
    if (rc < 0 && (!e->text[0] || strpbrk(e->text, "\r\n")))
        __builtin_trap();
    const char *secret = strstr(open, SECRET), *query = strchr(open, '?');
    bool shown = secret && (!query || secret < query);
    if (rc < 0 && !shown && strstr(e->text, SECRET))
        __builtin_trap();
}

static void connection(const char *text, struct arena *a)
{
    struct azure_connection c;
    struct hr_error e = {0};
    int rc = azure_connection_parse(text, &c, a, &e);
    check_error(rc, &e, "");
    if (rc < 0 || c.development)
        return;
    check_part(c.account, text);
    check_part(c.key, text);
    check_part(c.sas, text);
    if (!c.account && !c.endpoint)
        __builtin_trap();
}

static void url(const char *text, struct arena *a)
{
    struct azure_url u;
    struct hr_error e = {0};
    int64_t end;
    azure_sas_end(text, &end);
    bool web = azure_url_is(text);
    if (!web && strncmp(text, "az://", 5) && strncmp(text, "abfss://", 8))
        return;
    int rc = azure_url_parse(text, &u, a, &e);
    check_error(rc, &e, text);
    if (rc < 0)
        return;
    check_part(u.container, text);
    check_part(u.prefix, text);
    check_part(u.sas, text);
    if (!u.container || !u.prefix || (*u.prefix && u.prefix[strlen(u.prefix) - 1] == '/'))
        __builtin_trap();
}

static void place(const char *text, struct arena *a)
{
    struct azure_place p;
    struct hr_error e = {0};
    int rc = azure_place_parse(text, &p, a, &e);
    check_error(rc, &e, text);
    if (rc == 0 && (strncmp(p.origin, p.tls ? "https://" : "http://", p.tls ? 8 : 7) ||
                    (*p.root && p.root[0] != '/')))
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct arena a;
    char *text = n ? malloc(n) : NULL; /* the first byte makes room for the last */
    if (!text)
        return 0;
    memcpy(text, data + 1, n - 1);
    text[n - 1] = 0;
    arena_init(&a);
    (data[0] == 'c' ? connection : data[0] == 'u' ? url : place)(text, &a);
    arena_dispose(&a);
    free(text);
    return 0;
}
