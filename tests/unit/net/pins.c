#include "net/pins.h"

#include "base/keyed.h"
#include "t.h"

static void a_pin_tells_versions_apart(void)
{
    struct pin p = {.key = 1, .etag = 7, .size = 100};
    check(pin_matches(&p, 7, 100));
    check(!pin_matches(&p, 8, 100));
    check(!pin_matches(&p, 7, 101));
    check(pin_matches(&p, 0, 100)); /* this reply does not say */
    check(pin_matches(&p, 7, 0));
    p.etag = 0;
    check(pin_matches(&p, 9, 100));
}

static void what_is_pinned_is_found_and_replaced(void)
{
    struct pins t = {0};
    check(!pins_find(&t, 5));
    for (uint64_t i = 0; i < 3000; i++)
        pins_add(&t, &(struct pin){.key = keyed_word(1, i), .etag = i + 1, .size = i});
    size_t right = 0;
    for (uint64_t i = 0; i < 3000; i++) {
        const struct pin *p = pins_find(&t, keyed_word(1, i));
        right += p && p->etag == i + 1 && p->size == i;
    }
    check(right >= 2990); /* a doubled table may forget one that finds no place */
    pins_add(&t, &(struct pin){.key = keyed_word(1, 2999), .etag = 99, .size = 1});
    check_eq(pins_find(&t, keyed_word(1, 2999))->etag, 99);
    pins_add(&t, &(struct pin){.key = 0, .etag = 3, .size = 1}); /* a fingerprint may be 0 */
    check_eq(pins_find(&t, 0)->etag, 3);
    pins_dispose(&t);
}

static void the_table_is_bounded(void)
{
    struct pins t = {0};
    for (uint64_t i = 0; i < 400000; i++)
        pins_add(&t, &(struct pin){.key = keyed_word(1, i), .etag = i + 1, .size = i});
    check(t.cap * sizeof *t.slots <= 3u << 19);
    check_eq(pins_find(&t, keyed_word(1, 399999))->etag, 400000);
    pins_dispose(&t);
}

int main(void)
{
    RUN(a_pin_tells_versions_apart);
    RUN(what_is_pinned_is_found_and_replaced);
    RUN(the_table_is_bounded);
    return t_done();
}
