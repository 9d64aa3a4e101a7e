/* Fingerprints are saved in loader states: the values are frozen with the order version. */
#include "base/hash.h"
#include "t.h"

static uint64_t fields(uint64_t a, const char *b, const char *c)
{
    struct hash h;
    hash_init(&h, 0);
    hash_u64(&h, a);
    hash_string(&h, b);
    hash_string(&h, c);
    return hash_value(&h);
}

static void fingerprints_are_frozen(void)
{
    check(hash_bytes("", 0, 0) ==
          0x2d06800538d394c2); /* XXH3's published value of the empty string */
    check(fields(7, "time", "t2m") == 0x4fc33f04b6a8ad46);
}

static void fields_do_not_collide_by_joining(void)
{
    struct hash a, b;
    check(fields(1, "ab", "c") != fields(1, "a", "bc"));
    check(fields(1, "", "abc") != fields(1, "abc", ""));
    hash_init(&a, 0);
    hash_init(&b, 0);
    hash_u64(&a, 8);
    hash_u64(&a, 0x6867666564636261); /* "abcdefgh" */
    hash_data(&b, "abcdefgh", 8);
    check(hash_value(&a) != hash_value(&b));
}

static void the_seed_and_the_order_count(void)
{
    struct hash a, b;
    check(hash_bytes("x", 1, 0) != hash_bytes("x", 1, 1));
    hash_init(&a, 0);
    hash_init(&b, 0);
    hash_u64(&a, 1);
    hash_u64(&a, 2);
    hash_u64(&b, 2);
    hash_u64(&b, 1);
    check(hash_value(&a) != hash_value(&b));
    hash_init(&a, 5);
    check(hash_value(&a) != hash_value(&b));
}

static void no_bytes_need_no_pointer(void)
{
    struct hash h;
    hash_init(&h, 0);
    hash_data(&h, NULL, 0);
    check(hash_bytes(NULL, 0, 3) == hash_bytes("", 0, 3));
}

int main(void)
{
    RUN(fingerprints_are_frozen);
    RUN(fields_do_not_collide_by_joining);
    RUN(the_seed_and_the_order_count);
    RUN(no_bytes_need_no_pointer);
    return t_done();
}
