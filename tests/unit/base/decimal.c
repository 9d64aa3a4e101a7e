#include "base/decimal.h"
#include "t.h"

#include <locale.h>

static void text_is_read_as_in_the_c_locale(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE"};
    bool comma = false;
    for (size_t i = 0; i < 3 && !comma; i++)
        comma = setlocale(LC_NUMERIC, names[i]) != NULL;
    char *end;
    const char *text = "1.5,7";
    check(decimal_read(text, &end) == 1.5 && end == text + 3);
    check(decimal_read("-2e3", NULL) == -2000);
    setlocale(LC_NUMERIC, "C");
    if (!comma)
        printf("# no locale with a decimal comma is installed: read in the C locale only\n");
}

static void text_without_a_number_is_told_by_its_end(void)
{
    char *end;
    const char *text = "h";
    decimal_read(text, &end);
    check(end == text);
}

int main(void)
{
    RUN(text_is_read_as_in_the_c_locale);
    RUN(text_without_a_number_is_told_by_its_end);
    return t_done();
}
