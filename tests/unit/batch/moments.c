/* Streaming moments against two passes in long double. */
#include <math.h>
#include "batch/moments.h"
#include "t.h"

enum { ROWS = 9, A = 3, B = 4, C = 1500, ITEMS = A * B * C };
static double rows[ROWS][ITEMS];

static uint64_t state = 3;
static double number(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) * 0x1p-53;
}

static void fill_rows(double level)
{
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < ITEMS; i++)
            rows[r][i] = number() < 0.1 ? NAN : level + number() * (1 + i % 5);
}

static bool near(double a, double b, double scale)
{
    return (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-13 * scale;
}

static void check_grouping(const bool *grouped, double level)
{
    static const int64_t shape[3] = {A, B, C};
    struct moments m;
    bool good = true;
    if (!check(moments_init(&m, HR_F64, 3, shape, grouped, NULL) == 0))
        return;
    for (int r = 0; r < ROWS; r++)
        moments_add(&m, rows[r]);
    for (uint64_t g = 0; g < m.groups; g += 1 + m.groups / 50) {
        long double n = 0, sum = 0, distance = 0;
        double least = INFINITY, greatest = -INFINITY;
        for (int pass = 0; pass < 2; pass++)
            for (int i = 0; i < ROWS * ITEMS; i++) {
                int item = i % ITEMS, at[3] = {item / (B * C), item / C % B, item % C};
                uint64_t group = 0;
                for (int d = 0; d < 3; d++)
                    group = grouped[d] ? group * (uint64_t)shape[d] + (uint64_t)at[d] : group;
                double v = rows[i / ITEMS][item];
                if (group != g || isnan(v))
                    continue;
                if (pass) {
                    distance += ((long double)v - sum / n) * ((long double)v - sum / n);
                    continue;
                }
                n += 1;
                sum += v;
                least = fmin(least, v);
                greatest = fmax(greatest, v);
            }
        good &= m.n[g] == (double)n && m.least[g] == least && m.greatest[g] == greatest;
        good &= n == 0 || near(m.mean[g], (double)(sum / n), 1 + fabs(level));
        good &=
            near(moments_std(&m, g), n == 0 ? NAN : (double)sqrtl(distance / n), 1 + fabs(level));
    }
    check(good);
    moments_dispose(&m);
}

static void every_grouping_agrees_with_two_passes(void)
{
    for (int level = 0; level < 2; level++) {
        fill_rows(level ? 3e5 : 0);
        for (int which = 0; which < 8; which++)
            check_grouping((bool[3]){which & 1, which & 2, which & 4}, level ? 3e5 : 0);
    }
}

static void floats_and_rows_without_dimensions_count(void)
{
    struct moments m;
    const float values[4] = {1, 2, 3, NAN};
    const bool none[1] = {false};
    check_eq(moments_init(&m, HR_F32, 0, NULL, none, NULL), 0);
    for (int i = 0; i < 4; i++)
        moments_add(&m, &values[i]);
    check(m.n[0] == 3 && m.mean[0] == 2 && fabs(moments_std(&m, 0) - sqrt(2.0 / 3)) < 1e-15);
    moments_dispose(&m);
    const int64_t shape[1] = {4};
    check_eq(moments_init(&m, HR_F32, 1, shape, (bool[1]){true}, NULL), 0);
    moments_add(&m, values);
    check(m.n[3] == 0 && isnan(moments_std(&m, 3)) && m.n[0] == 1 && moments_std(&m, 0) == 0);
    moments_dispose(&m);
}

int main(void)
{
    RUN(every_grouping_agrees_with_two_passes);
    RUN(floats_and_rows_without_dimensions_count);
    return t_done();
}
