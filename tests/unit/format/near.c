/* Near names: what people mistype, and what is not near. */
#include "format/near.h"
#include "base/mem.h"
#include "t.h"

static const char *nearest(const char *wanted, const char *const *names)
{
    static char text[512];
    struct near x;
    struct buf b;
    near_init(&x, wanted);
    for (; *names; names++)
        near_offer(&x, *names);
    buf_init(&b);
    near_text(&x, &b);
    snprintf(text, sizeof text, "%s", b.data ? b.data : "");
    buf_dispose(&b);
    return text;
}
#define NEAREST(wanted, ...) nearest(wanted, (const char *const[]){__VA_ARGS__, NULL})

static void without_a_near_one_the_first_by_alphabet_are_named(void)
{
    static const char *const names[] = {"u10", "lat", "t2m", "lat", "lon", "time", "a"};
    struct near x;
    struct buf b;
    near_init(&x, "humidity");
    buf_init(&b);
    near_others(&x, &b);
    check_eq(b.size, 0);
    for (int i = 0; i < 3; i++)
        near_offer(&x, names[i]);
    near_others(&x, &b);
    check_str(b.data, "\"lat\", \"t2m\", \"u10\"");
    for (int i = 3; i < 7; i++)
        near_offer(&x, names[i]);
    b.size = 0;
    near_others(&x, &b);
    check_str(b.data, "\"a\", \"lat\", \"lon\", …");
    buf_dispose(&b);
}

static void slips_of_the_finger_are_near(void)
{
    check_str(NEAREST("tempreature", "pressure", "temperature"), "\"temperature\"");
    check_str(NEAREST("T2M", "t2m", "u10"), "\"t2m\"");
    check_str(NEAREST("u1", "u10", "v10"), "\"u10\"");
    check_str(NEAREST("lat", "lta"), "\"lta\"");
}

static void other_words_are_not(void)
{
    check_str(NEAREST("humidity", "temperature", "t"), "");
    check_str(NEAREST("", "a"), "");
    check_str(
        NEAREST("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "x"),
        "");
}

static void the_nearest_three_are_named_in_order(void)
{
    check_str(NEAREST("level1", "level234", "level12", "level2", "level1 ", "Level1"),
              "\"Level1\", \"level12\" or \"level2\"");
    check_str(NEAREST("salt", "a/b/salt", "salts"), "\"a/b/salt\" or \"salts\"");
    check_str(NEAREST("salt", "salts", "salts"), "\"salts\"");
}

int main(void)
{
    RUN(without_a_near_one_the_first_by_alphabet_are_named);
    RUN(slips_of_the_finger_are_near);
    RUN(other_words_are_not);
    RUN(the_nearest_three_are_named_in_order);
    return t_done();
}
