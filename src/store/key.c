/* See key.h. */
#include "store/key.h"

#include <string.h>

int key_check(const char *key, bool plain, const char *store, struct hr_error *e)
{
    const char *p = key;
    for (;;) {
        size_t n = strcspn(p, "/");
        if ((n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
            return error_set(
                e, HR_EINVAL,
                "%s: the key \"%s\" has a \"%.*s\" segment and could lead out of the archive",
                store, key, (int)n, p);
        if (plain && n == 0)
            return error_set(
                e, HR_EINVAL,
                "%s: the key \"%s\" has an empty segment; keys are relative, as in a/b/c", store,
                key);
        if (!p[n])
            return 0;
        p += n + 1;
    }
}
