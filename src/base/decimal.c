/* The C locale is asked for at each call and not kept: glibc answers with a constant object, so this costs nanoseconds
 * and needs no global. */
#include "base/decimal.h"

#include <locale.h>
#include <stdint.h>
#include <stdlib.h>

double decimal_read(const char *text, char **end)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain) { /* possible only where the C locale is no constant */
        if (end)
            *end = (char *)(uintptr_t)text;
        return 0;
    }
    double value = strtod_l(text, end, plain);
    freelocale(plain);
    return value;
}
