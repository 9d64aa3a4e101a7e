/* The un-shuffle for one vector width: a template, included by planes.c once per instruction set with
 *
 *   SUFFIX, TARGET        name ending and function attribute
 *   V, WIDTH              vector type and its bytes
 *   LOAD(p) STORE(p, v) STREAM(p, v)
 *   LO8 HI8 LO16 HI16 LO32 HI32 LO64 HI64 (a, b)   interleave units within each 128-bit lane
 *   SPREAD2 SPREAD4 SPREAD8 SPREAD16 (q)           put the lanes of q[0..n) into memory order
 *
 * Interleaving twice as wide units per level turns n planes of WIDTH items into n vectors whose lane l holds items
 * 16·l/… of the result: all lanes 0 come first in memory, then all lanes 1, which SPREAD arranges. */

#define JOIN2(a, b) a##b
#define JOIN(a, b)  JOIN2(a, b)
#define NAME(x)     JOIN(x, SUFFIX)

#define STORE_ALL(n)                                                                               \
    if (stream)                                                                                    \
        for (int j = 0; j < n; j++)                                                                \
            STREAM(dst + j * WIDTH, q[j]);                                                         \
    else                                                                                           \
        for (int j = 0; j < n; j++)                                                                \
        STORE(dst + j * WIDTH, q[j])

/* Single items up to the first vector border of dst, then no more streaming unless that was reached. */
#define HEAD(n)                                                                                    \
    if (stream && (uintptr_t)dst % n == 0)                                                         \
        for (; count && (uintptr_t)dst % WIDTH; from++, count--, dst += n)                         \
            single(p, n, from, dst);                                                               \
    else                                                                                           \
        stream = false
#define TAIL(n)                                                                                    \
    for (; count; from++, count--, dst += n)                                                       \
    single(p, n, from, dst)

TARGET static void NAME(items2)(const uint8_t *const *p, size_t from, size_t count, uint8_t *dst,
                                bool stream)
{
    HEAD(2);
    for (; count >= WIDTH; from += WIDTH, count -= WIDTH, dst += 2 * WIDTH) {
        V a = LOAD(p[0] + from), b = LOAD(p[1] + from);
        V q[2] = {LO8(a, b), HI8(a, b)};
        SPREAD2(q);
        STORE_ALL(2);
    }
    TAIL(2);
}

TARGET static void NAME(items4)(const uint8_t *const *p, size_t from, size_t count, uint8_t *dst,
                                bool stream)
{
    HEAD(4);
    for (; count >= WIDTH; from += WIDTH, count -= WIDTH, dst += 4 * WIDTH) {
        V a = LOAD(p[0] + from), b = LOAD(p[1] + from), c = LOAD(p[2] + from),
          d = LOAD(p[3] + from);
        V ab0 = LO8(a, b), ab1 = HI8(a, b), cd0 = LO8(c, d), cd1 = HI8(c, d);
        V q[4] = {LO16(ab0, cd0), HI16(ab0, cd0), LO16(ab1, cd1), HI16(ab1, cd1)};
        SPREAD4(q);
        STORE_ALL(4);
    }
    TAIL(4);
}

TARGET static void NAME(items8)(const uint8_t *const *p, size_t from, size_t count, uint8_t *dst,
                                bool stream)
{
    HEAD(8);
    for (; count >= WIDTH; from += WIDTH, count -= WIDTH, dst += 8 * WIDTH) {
        V two[8], four[8];
        for (int j = 0; j < 4; j++) {
            V a = LOAD(p[2 * j] + from), b = LOAD(p[2 * j + 1] + from);
            two[2 * j] = LO8(a, b);
            two[2 * j + 1] = HI8(a, b);
        }
        for (int h = 0; h < 2; h++) { /* first and second half of the planes */
            V a0 = two[4 * h], a1 = two[4 * h + 1], b0 = two[4 * h + 2], b1 = two[4 * h + 3];
            four[4 * h] = LO16(a0, b0);
            four[4 * h + 1] = HI16(a0, b0);
            four[4 * h + 2] = LO16(a1, b1);
            four[4 * h + 3] = HI16(a1, b1);
        }
        V q[8];
        for (int j = 0; j < 4; j++) {
            q[2 * j] = LO32(four[j], four[4 + j]);
            q[2 * j + 1] = HI32(four[j], four[4 + j]);
        }
        SPREAD8(q);
        STORE_ALL(8);
    }
    TAIL(8);
}

#ifdef SPREAD16
TARGET static void NAME(items16)(const uint8_t *const *p, size_t from, size_t count, uint8_t *dst,
                                 bool stream)
{
    HEAD(16);
    for (; count >= WIDTH; from += WIDTH, count -= WIDTH, dst += 16 * WIDTH) {
        V a[16], b[16];
        for (int j = 0; j < 8; j++) { /* pairs of planes */
            V u = LOAD(p[2 * j] + from), v = LOAD(p[2 * j + 1] + from);
            a[2 * j] = LO8(u, v);
            a[2 * j + 1] = HI8(u, v);
        }
        for (int j = 0; j < 4; j++) /* fours: b[4j … 4j+3] hold items in order */
            for (int h = 0; h < 2; h++) {
                b[4 * j + 2 * h] = LO16(a[4 * j + h], a[4 * j + 2 + h]);
                b[4 * j + 2 * h + 1] = HI16(a[4 * j + h], a[4 * j + 2 + h]);
            }
        for (int j = 0; j < 2; j++) /* eights */
            for (int h = 0; h < 4; h++) {
                a[8 * j + 2 * h] = LO32(b[8 * j + h], b[8 * j + 4 + h]);
                a[8 * j + 2 * h + 1] = HI32(b[8 * j + h], b[8 * j + 4 + h]);
            }
        V q[16];
        for (int h = 0; h < 8; h++) {
            q[2 * h] = LO64(a[h], a[8 + h]);
            q[2 * h + 1] = HI64(a[h], a[8 + h]);
        }
        SPREAD16(q);
        STORE_ALL(16);
    }
    TAIL(16);
}
#endif

#undef STORE_ALL
#undef HEAD
#undef TAIL
#undef NAME
#undef JOIN
#undef JOIN2
#undef SUFFIX
#undef TARGET
#undef V
#undef WIDTH
#undef LOAD
#undef STORE
#undef STREAM
#undef LO8
#undef HI8
#undef LO16
#undef HI16
#undef LO32
#undef HI32
#undef LO64
#undef HI64
#undef SPREAD2
#undef SPREAD4
#undef SPREAD8
#undef SPREAD16
