/* Batches: alignment, shapes, and living exactly as long as somebody holds them. */
#include "base/mem.h"
#include "base/thread.h"
#include "batch/batch.h"
#include "t.h"

static struct batch_layout *two_views(uint64_t rows)
{
    struct batch_tensor t[2] = {
        {.name = "x", .dtype = HR_F32, .ndim = 3, .shape = {0, 5, 7}, .item = 4},
        {.name = "label", .dtype = HR_I64, .ndim = 1, .shape = {0}, .item = 8},
    };
    struct batch_layout *l = NULL;
    check_eq(batch_layout_new(t, 2, rows, &l, NULL), 0);
    return l;
}

static void tensors_are_aligned_and_apart(void)
{
    struct batch_layout *l = two_views(3);
    check_eq(l->tensors[0].row_bytes, 140);
    check_eq(l->tensors[1].row_bytes, 8);
    check_eq(l->tensors[1].offset, 512); /* 420 rounded up */
    check_eq(l->bytes, 768);
    struct pool *p = pool_new(1 << 20);
    struct hr_batch *b;
    int64_t ids[3] = {4, 9, 2};
    uint8_t valid[3] = {1, 1, 0};
    check_eq(batch_new(l, p, NULL, 3, ids, valid, &b, NULL), 0);
    check(!((uintptr_t)batch_row(b, 0, 0) % 256) && !((uintptr_t)batch_row(b, 1, 0) % 256));
    check(batch_row(b, 0, 2) == b->memory + 280);
    check_eq(b->shapes[0][0], 3);
    check_eq(b->shapes[0][2], 7);
    check(b->ids[1] == 9 && b->valid[2] == 0);
    batch_unref(b);
    pool_unref(p);
    batch_layout_unref(l);
}

static void a_short_batch_has_its_own_shape(void)
{
    struct batch_layout *l = two_views(8);
    struct pool *p = pool_new(1 << 20);
    struct hr_batch *b;
    int64_t ids[2] = {1, 2};
    uint8_t valid[2] = {1, 1};
    check_eq(batch_new(l, p, NULL, 2, ids, valid, &b, NULL), 0);
    check_eq(b->shapes[0][0], 2);
    check_eq(l->tensors[0].shape[0], 8);
    check_eq(b->rows, 2);
    batch_unref(b);
    pool_unref(p);
    batch_layout_unref(l);
}

struct owner {
    struct batch_owner base;
    int heard;
};
static void heard(struct batch_owner *o, struct hr_batch *b)
{
    ((struct owner *)o)->heard++;
    batch_dispose(b);
}

static void *let_go(void *b)
{
    batch_unref(b);
    return NULL;
}

static void the_owner_hears_of_the_last_reference_once(void)
{
    uint64_t before = mem_live();
    struct batch_layout *l = two_views(4);
    struct pool *p = pool_new(1 << 20);
    struct owner o = {.base = {heard}};
    struct hr_batch *b;
    int64_t ids[4] = {0};
    uint8_t valid[4] = {0};
    check_eq(batch_new(l, p, &o.base, 4, ids, valid, &b, NULL), 0);
    batch_layout_unref(l); /* the batch keeps what it needs */
    pool_close(p);
    pool_unref(p);
    memset(batch_row(b, 0, 0), 1, l->bytes);
    batch_ref(b);
    pthread_t t;
    check_eq(thread_start(&t, "other", let_go, b), 0);
    pthread_join(t, NULL);
    check_eq(o.heard, 0);
    batch_unref(b);
    check_eq(o.heard, 1);
    batch_unref(NULL);
    check_eq(mem_live(), before);
}

static void absurd_sizes_are_refused_by_name(void)
{
    struct batch_tensor t = {
        .name = "huge", .dtype = HR_F64, .ndim = 3, .shape = {0, 1ll << 31, 1ll << 31}, .item = 8};
    struct batch_layout *l;
    struct hr_error e;
    check_eq(batch_layout_new(&t, 1, 1ull << 20, &l, &e), HR_EINVAL);
    check_has(e.text, "huge");
}

static void every_failed_allocation_leaves_nothing_behind(void)
{
    uint64_t before = mem_live();
    int64_t ids[4] = {0};
    uint8_t valid[4] = {0};
    struct pool *p = pool_new(1 << 20);
    for (uint64_t n = 1; n < 20; n++) {
        mem_fail_at(n, true);
        struct batch_tensor t = {.name = "x", .dtype = HR_F32, .ndim = 1, .item = 4};
        struct batch_layout *l = NULL;
        struct hr_batch *b = NULL;
        int rc = batch_layout_new(&t, 1, 4, &l, NULL);
        if (!rc)
            rc = batch_new(l, p, NULL, 4, ids, valid, &b, NULL);
        mem_fail_at(0, false);
        check(rc == 0 || rc == HR_ENOMEM);
        batch_unref(b);
        batch_layout_unref(l);
        if (!rc)
            break;
    }
    pool_unref(p);
    check_eq(mem_live(), before);
}

int main(void)
{
    RUN(tensors_are_aligned_and_apart);
    RUN(a_short_batch_has_its_own_shape);
    RUN(the_owner_hears_of_the_last_reference_once);
    RUN(absurd_sizes_are_refused_by_name);
    RUN(every_failed_allocation_leaves_nothing_behind);
    return t_done();
}
