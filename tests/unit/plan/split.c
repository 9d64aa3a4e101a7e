/* Valid ids, blocks and cuts of the sample axis. */
#include "plan/split.h"
#include "setup.h"

static void one_part(struct setup *s, uint64_t axis, uint64_t cell, int64_t start, int64_t count)
{
    setup_rows(s, axis, cell);
    s->parts[0].dim[0].start = start;
    s->parts[0].dim[0].count = count;
}

/* x takes steps -6 … 0, y step 6, of one array. */
static void forecast(struct setup *s, uint64_t axis, uint64_t cell)
{
    one_part(s, axis, cell, -6, 7);
    s->views[1] = s->views[0];
    s->parts[1] = s->parts[0];
    s->parts[1].view = 1;
    s->parts[1].dim[0].start = 6;
    s->parts[1].dim[0].count = 1;
    s->config.n_views = s->config.n_parts = 2;
}

static void ids_whose_boxes_leave_an_array_do_not_exist(void)
{
    struct setup s;
    struct plan_axis axis;
    forecast(&s, 100, 10);
    axis = (struct plan_axis){100, 0, 100, 0};
    check(!split_valid_ids(s.arrays, s.parts, 2, &axis, 1, NULL));
    check_eq(axis.first, 6);
    check_eq(axis.last, 94);
    array_set(&s.arrays[1], 2, (uint64_t[]){50, 8},
              (uint64_t[]){5, 8}); /* y from a shorter array */
    s.parts[1].array = 1;
    axis = (struct plan_axis){100, 0, 100, 0};
    check(!split_valid_ids(s.arrays, s.parts, 2, &axis, 1, NULL));
    check_eq(axis.last, 44);
}

static void a_window_longer_than_the_array_is_refused(void)
{
    struct setup s;
    struct plan_axis axis = {10, 0, 10, 0};
    struct hr_error e;
    one_part(&s, 10, 5, 0, 11);
    check_eq(split_valid_ids(s.arrays, s.parts, 1, &axis, 1, &e), HR_EINVAL);
    check_has(e.text, "takes 11 steps of an array with 10");
    one_part(&s, 10, 5, 20, 1);
    check_eq(split_valid_ids(s.arrays, s.parts, 1, &axis, 1, &e), HR_EINVAL);
    check_has(e.text, "no sample has all its steps");
}

static uint64_t g_of(struct setup *s, double *reread)
{
    uint64_t rows, g;
    int anchor;
    check(!split_block_rows(s->arrays, s->parts, s->config.n_parts, s->axes, 1, 0, &rows, &g,
                            &anchor, reread, NULL));
    check_eq(rows, g * s->arrays[s->parts[anchor].array].chunk[0]);
    return g;
}

static void blocks_decode_to_a_mebibyte(void)
{
    struct setup s;
    double reread;
    one_part(&s, 1000000, 64, 0, 1); /* 64 × 8 × 4 bytes a chunk */
    check_eq(g_of(&s, &reread), 512);
    check(reread == 1);
    one_part(&s, 1000, 64, 0, 1); /* not so much in the array: the whole axis */
    check_eq(g_of(&s, &reread), 16);
    one_part(&s, 1000000, 64, 5,
             1); /* an offset alone costs nothing: blocks start where the boxes do */
    check_eq(g_of(&s, &reread), 512);
    check(reread == 1);
}

static void blocks_are_long_enough_for_windows(void)
{
    struct setup s;
    double reread;
    one_part(&s, 100000, 1, -6, 7);
    s.arrays[0].decoded = 4 << 20;
    check_eq(g_of(&s, &reread), 60); /* 6 more cells than g: 10 % */
    check(reread > 1.0999 && reread < 1.1001);
    forecast(&s, 100000, 1);
    s.arrays[0].decoded = 4 << 20;
    check_eq(g_of(&s, &reread), 120); /* rows -6 … 6 around the block */
    one_part(&s, 100000, 100, 0, 7);
    s.arrays[0].decoded = 4 << 20;
    check_eq(g_of(&s, &reread), 10);
}

/* Cells that the boxes of a middle block touch, counted. */
static void the_reread_is_what_a_block_touches(void)
{
    for (int64_t start = -9; start < 9; start += 2)
        for (int64_t far = -30; far < 60; far += 7)
            for (uint64_t g = 1; g < 9; g++) {
                struct setup s;
                uint64_t rows, got, touched = 0;
                int anchor;
                double reread;
                forecast(&s, 1000, 4);
                s.parts[0].dim[0].start = start;
                s.parts[1].dim[0].start = far;
                check(!split_block_rows(s.arrays, s.parts, 2, s.axes, 1, g, &rows, &got, &anchor,
                                        &reread, NULL));
                check(got == g && anchor == 0);
                uint8_t cell[250] = {0};
                for (int64_t id = 400 - start; id < 400 - start + (int64_t)rows; id++)
                    for (int part = 0; part < 2; part++)
                        for (int64_t i = 0; i < s.parts[part].dim[0].count; i++)
                            cell[(id + s.parts[part].dim[0].start + i) / 4] = 1;
                for (int i = 0; i < 250; i++)
                    touched += cell[i];
                check(400 % rows || reread * (double)g == (double)touched);
            }
}

static void the_anchor_is_the_heaviest_array(void)
{
    struct setup s;
    uint64_t rows, g;
    int anchor;
    double reread;
    forecast(&s, 1000, 4);
    array_set(&s.arrays[1], 2, (uint64_t[]){1000, 80}, (uint64_t[]){25, 80});
    s.parts[1].array = 1;
    check(!split_block_rows(s.arrays, s.parts, 2, s.axes, 1, 3, &rows, &g, &anchor, &reread, NULL));
    check_eq(anchor, 1); /* 320 decoded bytes a row, against 32 */
    check_eq(rows, 75);
    array_set(&s.arrays[1], 2, (uint64_t[]){1000, 80},
              (uint64_t[]){25, 4}); /* only 2 of its 20 chunks are selected */
    check(!split_block_rows(s.arrays, s.parts, 2, s.axes, 1, 3, &rows, &g, &anchor, &reread, NULL));
    check_eq(anchor, 0);
}

static int fractions(struct setup *s, int n_parts, int64_t first, int64_t last, uint64_t block,
                     const double *f, int n, int64_t gap, int64_t *from, int64_t *to,
                     struct hr_error *e)
{
    struct plan_axis axis = {s->axes[0].n, (uint64_t)first, (uint64_t)last, 0};
    return split_fractions(s->arrays, s->parts, n_parts, &axis, 1, 0, block, f, n, gap, from, to,
                           e);
}

static void runs_are_cut_at_block_borders(void)
{
    struct setup s;
    int64_t from[3], to[3];
    one_part(&s, 1000, 25, 0, 1);
    check(!fractions(&s, 1, 0, 1000, 1, (double[]){.8, .1, .1}, 3, 0, from, to, NULL));
    check(from[0] == 0 && to[0] == 800 && from[1] == 800 && to[1] == 900 && from[2] == 900 &&
          to[2] == 1000);
    check(!fractions(&s, 1, 0, 1000, 3, (double[]){.8, .1}, 2, 0, from, to, NULL));
    check(to[0] == 825 && from[1] == 825 && to[1] == 900);
    check(!fractions(&s, 1, 30, 990, 1, (double[]){.5, .5}, 2, 10, from, to, NULL));
    check(from[0] == 30 && to[0] == 490 && from[1] == 500 && to[1] == 990);
    one_part(&s, 1000, 25, 7, 1); /* borders where the boxes begin a chunk */
    check(!fractions(&s, 1, 0, 993, 1, (double[]){.5, .5}, 2, 0, from, to, NULL));
    check_eq((to[0] + 7) % 25, 0);
    one_part(&s, 100, 100, 0, 1); /* one block: cut it where asked */
    check(!fractions(&s, 1, 0, 100, 1, (double[]){.8, .1, .1}, 3, 0, from, to, NULL));
    check(to[0] == 80 && to[1] == 90 && to[2] == 100);
}

/* Blocks as large as a run: a border would leave the next one nothing, or halve it. */
static void far_borders_are_not_taken(void)
{
    struct setup s;
    int64_t from[3], to[3];
    one_part(&s, 96, 4, -4, 7);
    for (uint64_t block = 1; block < 24; block++) {
        check(!fractions(&s, 1, 4, 94, block, (double[]){.6, .2, .2}, 3, 6, from, to, NULL));
        for (int i = 0; i < 3; i++)
            check(to[i] > from[i] && to[i] - from[i] <= 54 + 9);
        check(to[0] <= 58 + 9 && to[0] >= 58 - 9 - 6);
    }
}

static void rectilinear_axes_are_cut_at_their_edges(void)
{
    static const uint64_t edges[] = {0, 30, 37, 80, 81, 100};
    struct setup s;
    int64_t from[2], to[2];
    one_part(&s, 100, 20, 0, 1);
    s.arrays[0].grid[0] = 5;
    s.arrays[0].edges[0] = edges;
    check(!fractions(&s, 1, 0, 100, 1, (double[]){.5, .5}, 2, 0, from, to, NULL));
    check_eq(to[0], 37);
}

/* No row of the array in two runs, and with one id more per gap it would be. */
static void an_automatic_gap_shares_no_row_and_is_smallest(void)
{
    for (int64_t window = 1; window < 9; window++)
        for (int64_t lead = 0; lead < 9; lead += 2) {
            struct setup s;
            int64_t from[3], to[3];
            forecast(&s, 1000, 10);
            s.parts[0].dim[0] =
                (struct plan_dim){.kind = SEL_SAMPLE, .start = 1 - window, .count = window};
            s.parts[1].dim[0] = (struct plan_dim){.kind = SEL_SAMPLE, .start = lead, .count = 1};
            int64_t first = window - 1, last = 1000 - lead;
            check(!fractions(&s, 2, first, last, 1, (double[]){.6, .2, .2}, 3, -1, from, to, NULL));
            int owner[1000], shared = 0, touching = 0;
            memset(owner, -1, sizeof owner);
            for (int run = 0; run < 3; run++)
                for (int64_t id = from[run]; id < to[run]; id++)
                    for (int64_t row = id - window + 1; row <= id + lead; row++)
                        if (row <= id || row == id + lead) {
                            shared += owner[row] >= 0 && owner[row] != run;
                            owner[row] = run;
                        }
            check_eq(shared, 0);
            for (int run = 0; run < 2;
                 run++) /* the next id after a run reaches the following run's rows */
                touching += owner[to[run] + lead] == run + 1 || owner[to[run]] == run + 1;
            check_eq(touching, 2);
        }
}

static void runs_without_samples_are_refused(void)
{
    struct setup s;
    int64_t from[3], to[3];
    struct hr_error e;
    one_part(&s, 100, 10, 0, 40);
    check_eq(fractions(&s, 1, 0, 61, 1, (double[]){.4, .4, .2}, 3, -1, from, to, &e), HR_EINVAL);
    check_has(e.text, "none left after a gap of 39");
    check_eq(fractions(&s, 1, 0, 61, 1, (double[]){.9, .2}, 2, 0, from, to, &e), HR_EINVAL);
    check_has(e.text, "add up to 1.1");
    check_eq(fractions(&s, 1, 0, 61, 1, (double[]){0}, 1, 0, from, to, &e), HR_EINVAL);
}

int main(void)
{
    RUN(ids_whose_boxes_leave_an_array_do_not_exist);
    RUN(a_window_longer_than_the_array_is_refused);
    RUN(blocks_decode_to_a_mebibyte);
    RUN(blocks_are_long_enough_for_windows);
    RUN(the_reread_is_what_a_block_touches);
    RUN(the_anchor_is_the_heaviest_array);
    RUN(runs_are_cut_at_block_borders);
    RUN(far_borders_are_not_taken);
    RUN(rectilinear_axes_are_cut_at_their_edges);
    RUN(an_automatic_gap_shares_no_row_and_is_smallest);
    RUN(runs_without_samples_are_refused);
    return t_done();
}
