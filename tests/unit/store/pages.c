#include "store/pages.h"

#include "t.h"

/* Pages until the listing is found to go round: `tail` different places, then `circle` for ever. */
static int found_after(int tail, int circle, int most)
{
    struct pages p = {0};
    for (int i = 0; i < most; i++) {
        int place = i < tail ? i : tail + (i - tail) % circle;
        char text[32];
        int n = snprintf(text, sizeof text, "place %d", place);
        if (pages_go_round(&p, text, (size_t)n))
            return i;
    }
    return -1;
}

static void circles_of_any_length_are_found_soon(void)
{
    for (int tail = 0; tail < 40; tail++)
        for (int circle = 1; circle < 40; circle++) {
            int n = found_after(tail, circle, 100000);
            check(n >= tail + circle && n <= 3 * (tail + circle) + 3);
        }
}

static void listings_that_go_on_are_left_alone(void)
{
    check_eq(found_after(200000, 1, 200000), -1);
    struct pages p = {0};
    check(!pages_go_round(&p, "", 0));
    check(pages_go_round(&p, "", 0));
}

int main(void)
{
    RUN(circles_of_any_length_are_found_soon);
    RUN(listings_that_go_on_are_left_alone);
    return t_done();
}
