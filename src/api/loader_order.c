/* Which samples will make up the batches to come: of the plan alone. */
#include "api/loader.h"
#include "base/mem.h"
#include "plan/cursor.h"

static int walk(struct plan *plan, int64_t epoch, int64_t step, int64_t n, int64_t *ids,
                uint8_t *valid, int64_t *rows, struct hr_error *e)
{
    struct plan_cursor *c;
    TRY(cursor_open_streams(plan, 0, plan_facts(plan)->streams, &c, e));
    int rc = plan_cursor_seek(c, (uint64_t)epoch, (uint64_t)step, e);
    *rows = 0;
    for (int64_t i = 0, got = 1; i < n && rc >= 0 && got > 0; i++) {
        got = plan_cursor_next(c, ids + *rows, valid + *rows);
        *rows += got;
    }
    plan_cursor_free(c);
    return rc;
}

int hr_loader_order(struct hr_loader *l, int64_t epoch, int64_t step, int64_t n, int64_t *ids,
                    uint8_t *valid, int64_t *rows, struct hr_error *e)
{
    struct plan *plan;
    struct driver *driver;
    if (epoch < 0 || step < 0 || n < 0)
        return error_set(e, HR_EINVAL, "epoch, step and number of steps count from 0");
    TRY(loader_engine(l, &plan, &driver, e));
    int rc = walk(plan, epoch, step, n, ids, valid, rows, e);
    driver_unref(driver);
    plan_unref(plan);
    return rc;
}
