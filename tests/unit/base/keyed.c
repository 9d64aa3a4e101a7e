/* The values below are frozen: loader states saved by a release name an order version, and the order is made of them.
 * They come from an independent implementation in Python integers; the words are splitmix64's published sequence. A
 * change here is a new order version, never a repair. */
#include "base/keyed.h"
#include "t.h"

static void words_are_frozen(void)
{
    static const struct {
        uint64_t key, index, word;
    } rows[] = {
        {0, 0, 0xe220a8397b1dcdaf},
        {0, 1, 0x6e789e6aa1b965f4},
        {0, 1ull << 40, 0x1937167e168d9372},
        {1, 0, 0x910a2dec89025cc1},
        {1, 1, 0xbeeb8da1658eec67},
        {1, 1ull << 40, 0x4b232129431b8899},
        {UINT64_MAX, 0, 0xe4d971771b652c20},
        {UINT64_MAX, 1, 0xe99ff867dbf682c9},
        {UINT64_MAX, 1ull << 40, 0x68c83d31fa6f683f},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check(keyed_word(rows[i].key, rows[i].index) == rows[i].word);
}

static void mixes_are_frozen(void)
{
    check(keyed_mix(0, 0) == 0xecfc6809f63860de);
    check(keyed_mix(0, 1) == 0xc1f530fdde6d0f03);
    check(keyed_mix(1, 0) == 0x85cb9eff798d41f0);
    check(keyed_mix(7, 1ull << 63) == 0xae73d8f75367ded3);
}

static void permutations_are_frozen(void)
{
    static const struct {
        uint64_t n, first[8], digest;
    } rows[] = {
        {1, {0}, 0x0},
        {2, {0, 1}, 0x5692161d100b05e5},
        {5, {1, 4, 0, 3, 2}, 0x6773f4234acb4ab9},
        {17, {3, 14, 8, 1, 10, 11, 7, 12}, 0x276228dcd8100e67},
        {64, {19, 11, 26, 41, 60, 33, 24, 56}, 0xadf234cf2a6d05d1},
        {65, {13, 18, 6, 31, 1, 15, 49, 47}, 0xac4c7db8b6b71ff0},
        {100, {50, 41, 89, 20, 74, 99, 40, 87}, 0xd41a370ddb246de7},
        {2048, {98, 1812, 436, 964, 1353, 876, 138, 313}, 0x8d798e01d63bea84},
    };
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        struct keyed_perm p;
        uint64_t digest = 0;
        keyed_perm_init(&p, 42, rows[r].n);
        for (uint64_t i = 0; i < rows[r].n; i++) {
            uint64_t v = keyed_perm_at(&p, i);
            if (i < 8)
                check_eq(v, rows[r].first[i]);
            digest = keyed_word((digest ^ v) - 0x9E3779B97F4A7C15ull, 0);
        }
        check(digest == rows[r].digest);
    }
}

static void large_permutations_are_frozen(void)
{
    static const struct {
        uint64_t n, at[4]; /* of 0, 1, n / 2, n - 1 */
    } rows[] = {
        {1000003, {323000, 223229, 917992, 718325}},
        {1000000000000, {597809228814, 934944949055, 43613937324, 675719723660}},
        {1ull << 63,
         {7300347853294433158, 5378995445867980131, 3500897377823569908, 1619234045019266008}},
    };
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        struct keyed_perm p;
        keyed_perm_init(&p, 7, rows[r].n);
        uint64_t in[4] = {0, 1, rows[r].n / 2, rows[r].n - 1};
        for (int i = 0; i < 4; i++) {
            check_eq(keyed_perm_at(&p, in[i]), rows[r].at[i]);
            check_eq(keyed_perm_inverse(&p, rows[r].at[i]), in[i]);
        }
    }
}

static void every_size_is_permuted_and_inverted(void)
{
    static unsigned char seen[5000];
    for (uint64_t n = 1; n < 5000; n += n < 300 ? 1 : 97) {
        struct keyed_perm p;
        uint64_t wrong = 0;
        keyed_perm_init(&p, keyed_word(3, n), n);
        memset(seen, 0, sizeof(seen));
        for (uint64_t i = 0; i < n; i++) {
            uint64_t v = keyed_perm_at(&p, i);
            wrong += v >= n || seen[v < n ? v : 0]++ || keyed_perm_inverse(&p, v) != i;
        }
        check_eq(wrong, 0);
    }
}

static void an_empty_permutation_can_be_made(void)
{
    struct keyed_perm p;
    keyed_perm_init(&p, 1, 0);
    check_eq(p.n, 0);
}

/* Mean of (chi² − df) / √(2 df) near 0 when each element goes to each place, and each pair to each pair of places, equally
 * often; a shift of one expected count in 30 would show as 10 and more. */
static void small_permutations_are_even(void)
{
    static const uint64_t sizes[] = {3, 5, 16, 20, 64, 65};
    enum { KEYS = 20000 };
    static unsigned place[65][65], pair[65][65];
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        uint64_t n = sizes[s];
        memset(place, 0, sizeof(place));
        memset(pair, 0, sizeof(pair));
        for (uint64_t k = 0; k < KEYS; k++) {
            struct keyed_perm p;
            uint64_t v[65];
            keyed_perm_init(&p, k, n);
            for (uint64_t i = 0; i < n; i++)
                place[i][v[i] = keyed_perm_at(&p, i)]++;
            pair[v[0]][v[1]]++;
        }
        double expected = (double)KEYS / (double)n, chi = 0, df = (double)((n - 1) * (n - 1));
        for (uint64_t i = 0; i < n; i++)
            for (uint64_t j = 0; j < n; j++)
                chi += (place[i][j] - expected) * (place[i][j] - expected) / expected;
        check((chi - df) * (chi - df) < 25 * 2 * df);
        expected /= (double)(n - 1);
        chi = 0;
        df = (double)(n * (n - 1) - 1);
        for (uint64_t i = 0; i < n; i++)
            for (uint64_t j = 0; j < n; j++)
                chi += i == j ? 0 : (pair[i][j] - expected) * (pair[i][j] - expected) / expected;
        check((chi - df) * (chi - df) < 25 * 2 * df);
    }
}

/* Under weak round functions, some keys move elements one grid row apart together. */
static void no_key_moves_rows_of_the_grid_together(void)
{
    enum { N = 4096, STEP = 64, BINS = 64 };
    double worst = 0;
    for (uint64_t k = 0; k < 200; k++) {
        struct keyed_perm p;
        uint64_t v[N];
        unsigned bins[BINS] = {0};
        keyed_perm_init(&p, k, N);
        for (uint64_t i = 0; i < N; i++)
            v[i] = keyed_perm_at(&p, i);
        for (int i = 0; i + STEP + 1 < N; i++)
            bins[(v[i + STEP + 1] - v[i + STEP] - v[i + 1] + v[i]) % N * BINS / N]++;
        double expected = (N - STEP - 1) / (double)BINS, chi = 0;
        for (int b = 0; b < BINS; b++)
            chi += (bins[b] - expected) * (bins[b] - expected) / expected;
        worst = chi > worst ? chi : worst;
    }
    check(worst < 63 + 6 * 11.2); /* 6 standard deviations; one-multiply rounds reach thousands */
}

int main(void)
{
    RUN(words_are_frozen);
    RUN(mixes_are_frozen);
    RUN(permutations_are_frozen);
    RUN(large_permutations_are_frozen);
    RUN(every_size_is_permuted_and_inverted);
    RUN(an_empty_permutation_can_be_made);
    RUN(small_permutations_are_even);
    RUN(no_key_moves_rows_of_the_grid_together);
    return t_done();
}
