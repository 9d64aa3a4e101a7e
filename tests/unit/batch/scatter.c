/* Pieces of a chunk on their way into rows, against a naive walk over every item. */
#include "base/mem.h"
#include "batch/scatter.h"
#include "t.h"

static struct scatter_part plain_part(enum hr_dtype t, uint32_t item)
{
    struct scatter_part p = {.convert = {.from = t, .to = t, .from_item = item, .to_item = item},
                             .from_step = item};
    check_eq(convert_init(&p.convert, NULL), 0);
    return p;
}

static struct plan_piece piece_of(int ndim, uint64_t from, uint64_t to)
{
    return (struct plan_piece){.ndim = ndim, .from_offset = from, .to_offset = to};
}

static void dim(struct plan_piece *p, int d, uint64_t count, uint64_t from, uint64_t to)
{
    p->count[d] = count;
    p->from_stride[d] = (int64_t)from;
    p->to_stride[d] = to;
}

/* What the pieces mean, item by item. */
static void naive(const struct plan_piece *p, int d, uint64_t from, uint64_t to,
                  const uint32_t *chunk, uint32_t *row)
{
    if (d == p->ndim) {
        row[to] = chunk[from];
        return;
    }
    for (uint64_t i = 0; i < p->count[d]; i++)
        naive(p, d + 1, from + i * (uint64_t)p->from_stride[d], to + i * p->to_stride[d], chunk,
              row);
}

static void number_items(uint32_t *chunk, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        chunk[i] = i * 2654435761u;
}

static void apply_runs(const struct scatter *s, const void *chunk)
{
    for (size_t i = 0; i < s->n_runs; i++)
        memcpy(s->runs[i].to, (const char *)chunk + s->runs[i].from, s->runs[i].bytes);
}

static void a_whole_chunk_becomes_one_run(void)
{
    struct scatter s;
    scatter_init(&s);
    struct scatter_part p = plain_part(HR_F32, 4);
    char *rows = mem_alloc(8 * 6 * 100 * 4);
    for (int r = 0; r < 8; r++) { /* eight samples of (6, 100), in order */
        struct plan_piece piece = piece_of(3, (uint64_t)r * 600, 0);
        dim(&piece, 0, 1, 600, 600);
        dim(&piece, 1, 6, 100, 100);
        dim(&piece, 2, 100, 1, 1);
        check_eq(scatter_add(&s, &p, &piece, rows + r * 2400, NULL), 0);
        check_eq(s.copies[r].ndim, 1);
    }
    check_eq(scatter_runs(&s, NULL), 1);
    check_eq(s.n_runs, 1);
    check_eq(s.runs[0].bytes, 8 * 2400);
    uint64_t first, end;
    scatter_span(&s, &first, &end);
    check(first == 0 && end == 8 * 2400);
    mem_free(rows);
    scatter_dispose(&s);
}

static void rows_in_any_order_give_ascending_runs(void)
{
    struct scatter s;
    scatter_init(&s);
    struct scatter_part p = plain_part(HR_F32, 4);
    uint32_t chunk[8 * 128], rows[8 * 128] = {0};
    static const int order[8] = {3, 0, 7, 1, 2, 6, 4, 5};
    number_items(chunk, 8 * 128);
    for (int r = 0; r < 8; r++) {
        struct plan_piece piece = piece_of(1, (uint64_t)order[r] * 128, 0);
        dim(&piece, 0, 128, 1, 1);
        check_eq(scatter_add(&s, &p, &piece, (char *)(rows + r * 128), NULL), 0);
    }
    check_eq(scatter_runs(&s, NULL), 1);
    check_eq(s.n_runs, 6); /* 1, 2 and 4, 5 stay neighbours */
    for (size_t i = 1; i < s.n_runs; i++)
        check(s.runs[i].from >= s.runs[i - 1].from + s.runs[i - 1].bytes);
    apply_runs(&s, chunk);
    for (int r = 0; r < 8; r++)
        check(!memcmp(rows + r * 128, chunk + order[r] * 128, 512));
    scatter_dispose(&s);
}

static void overlapping_windows_go_through_the_decoded_chunk(void)
{
    struct scatter s;
    scatter_init(&s);
    struct scatter_part p = plain_part(HR_F32, 4);
    uint32_t chunk[8 * 100], rows[6][300];
    number_items(chunk, 800);
    for (int r = 0; r < 6; r++) {
        struct plan_piece piece = piece_of(2, (uint64_t)r * 100, 0);
        dim(&piece, 0, 3, 100, 100);
        dim(&piece, 1, 100, 1, 1);
        check_eq(scatter_add(&s, &p, &piece, (char *)rows[r], NULL), 0);
    }
    check_eq(scatter_runs(&s, NULL), 0);
    check_eq(scatter_from(&s, chunk, true, NULL), 0);
    for (int r = 0; r < 6; r++)
        check(!memcmp(rows[r], chunk + r * 100, 1200));
    scatter_dispose(&s);
}

static void short_inner_runs_are_copied_not_listed(void)
{
    struct scatter s;
    scatter_init(&s);
    struct scatter_part p = plain_part(HR_F32, 4);
    struct plan_piece piece = piece_of(2, 0, 0);
    uint32_t rows[64];
    dim(&piece, 0, 16, 10, 4);
    dim(&piece, 1, 4, 1, 1);
    check_eq(scatter_add(&s, &p, &piece, (char *)rows, NULL), 0);
    check_eq(scatter_runs(&s, NULL), 0);
    scatter_clear(&s);
    piece = piece_of(1, 7, 0);
    dim(&piece, 0, 4, 1, 1);
    check_eq(scatter_add(&s, &p, &piece, (char *)rows, NULL), 0);
    check_eq(scatter_runs(&s, NULL), 1); /* a chunk of a few bytes has no better way */
    scatter_dispose(&s);
}

static uint64_t state = 7;
static uint32_t pick(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

/* A box of a chunk of 3-4 dimensions into a tensor whose dimensions may be reordered, with steps. */
static void random_piece(struct plan_piece *p, const uint64_t *shape, int ndim)
{
    uint64_t from_stride = 1, to_stride = 1;
    *p = piece_of(ndim, 0, pick(5));
    bool swap = pick(3) == 0;
    for (int d = ndim - 1; d >= 0; d--) {
        uint64_t start = pick((uint32_t)shape[d]), step = 1 + pick(2);
        uint64_t count = 1 + pick((uint32_t)((shape[d] - start + step - 1) / step));
        if (pick(2)) {
            start = 0;
            step = 1;
            count = shape[d];
        }
        p->from_offset += start * from_stride;
        dim(p, d, count, from_stride * step, to_stride);
        from_stride *= shape[d];
        to_stride *= count;
    }
    if (swap) { /* the first dimension innermost in the tensor */
        uint64_t inner = p->count[0];
        for (int d = 1; d < ndim; d++)
            p->to_stride[d] *= inner;
        p->to_stride[0] = 1;
    }
}

static void any_box_lands_where_a_naive_walk_puts_it(void)
{
    struct scatter s;
    scatter_init(&s);
    struct scatter_part p = plain_part(HR_F32, 4);
    uint64_t shape[4] = {5, 6, 7, 90};
    enum { ITEMS = 5 * 6 * 7 * 90, ROW = ITEMS + 8 };
    uint32_t *chunk = mem_alloc(ITEMS * 4), *got = mem_alloc(ROW * 8), *want = mem_alloc(ROW * 8);
    number_items(chunk, ITEMS);
    int as_runs = 0;
    for (int turn = 0; turn < 300; turn++) {
        int ndim = 3 + (int)pick(2);
        memset(got, 0xff, ROW * 8);
        memset(want, 0xff, ROW * 8);
        scatter_clear(&s);
        for (int i = 0; i < 2; i++) {
            struct plan_piece piece;
            random_piece(&piece, shape + 4 - ndim, ndim);
            naive(&piece, 0, piece.from_offset, piece.to_offset, chunk, want + i * ROW);
            check_eq(scatter_add(&s, &p, &piece, (char *)(got + i * ROW), NULL), 0);
        }
        int rc = scatter_runs(&s, NULL);
        as_runs += rc;
        if (rc)
            apply_runs(&s, chunk);
        else
            check_eq(scatter_from(&s, chunk, turn & 1, NULL), 0);
        if (!check(!memcmp(got, want, ROW * 8)))
            break;
    }
    check(as_runs > 10 && as_runs < 290);
    mem_free(chunk);
    mem_free(got);
    mem_free(want);
    scatter_dispose(&s);
}

static void a_field_of_a_struct_is_taken_out_of_its_items(void)
{
    struct scatter s;
    scatter_init(&s);
    struct scatter_part p = {
        .convert = {.from = HR_I16, .to = HR_F32, .from_item = 2, .to_item = 4},
        .from_step = 7,
        .from_skip = 3};
    check_eq(convert_init(&p.convert, NULL), 0);
    unsigned char chunk[7 * 40];
    float row[10] = {0};
    for (int16_t i = 0; i < 40; i++)
        memcpy(chunk + i * 7 + 3, &i, 2);
    struct plan_piece piece = piece_of(1, 4, 0);
    dim(&piece, 0, 10, 3, 1);
    check_eq(scatter_add(&s, &p, &piece, (char *)row, NULL), 0);
    check_eq(scatter_runs(&s, NULL), 0);
    check_eq(scatter_from(&s, chunk, false, NULL), 0);
    for (int i = 0; i < 10; i++)
        check(row[i] == 4 + 3 * i);
    uint64_t first, end;
    scatter_span(&s, &first, &end);
    check_eq(first, 4 * 7 + 3);
    check_eq(end, (4 + 9 * 3) * 7 + 3 + 2);
    scatter_dispose(&s);
}

static void absent_chunks_are_filled_exactly_where_pieces_lie(void)
{
    struct scatter s;
    scatter_init(&s);
    struct scatter_part p = plain_part(HR_F32, 4);
    float fill = 3.5f, row[5][20];
    memset(row, 0, sizeof row);
    p.fill = &fill;
    struct plan_piece piece = piece_of(2, 0, 2);
    dim(&piece, 0, 4, 100, 20);
    dim(&piece, 1, 7, 1, 2);
    check_eq(scatter_add(&s, &p, &piece, (char *)row, NULL), 0);
    scatter_fill(&s);
    int filled = 0;
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 20; j++) {
            bool inside = i < 4 && j >= 2 && j % 2 == 0 && j < 16;
            check(row[i][j] == (inside ? fill : 0));
            filled += inside;
        }
    check_eq(filled, 28);
    scatter_dispose(&s);
}

static void a_value_that_does_not_fit_is_an_error_that_says_so(void)
{
    struct scatter s;
    struct hr_error e;
    scatter_init(&s);
    struct scatter_part p = {
        .convert = {.from = HR_I32, .to = HR_I16, .from_item = 4, .to_item = 2}, .from_step = 4};
    check_eq(convert_init(&p.convert, NULL), 0);
    int32_t chunk[4] = {1, 2, 40000, 3};
    int16_t row[4];
    struct plan_piece piece = piece_of(1, 0, 0);
    dim(&piece, 0, 4, 1, 1);
    check_eq(scatter_add(&s, &p, &piece, (char *)row, NULL), 0);
    check_eq(scatter_from(&s, chunk, false, &e), HR_EDATA);
    check_has(e.text, "int16");
    scatter_dispose(&s);
}

int main(void)
{
    RUN(a_whole_chunk_becomes_one_run);
    RUN(rows_in_any_order_give_ascending_runs);
    RUN(overlapping_windows_go_through_the_decoded_chunk);
    RUN(short_inner_runs_are_copied_not_listed);
    RUN(any_box_lands_where_a_naive_walk_puts_it);
    RUN(a_field_of_a_struct_is_taken_out_of_its_items);
    RUN(absent_chunks_are_filled_exactly_where_pieces_lie);
    RUN(a_value_that_does_not_fit_is_an_error_that_says_so);
    return t_done();
}
