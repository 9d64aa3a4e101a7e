/* A store of the caller's own: the serving side, as C sees it (store/bridge.h). */
#include "store/bridge.h"

int hr_store_new(const struct hr_store_options *o, struct hr_store **out, struct hr_error *e)
{
    return bridge_new(o, out, e);
}

void hr_store_close(struct hr_store *s)
{
    bridge_close(s);
}

void hr_store_unref(struct hr_store *s)
{
    bridge_unref(s);
}

int hr_store_take(struct hr_store *s, struct hr_task *tasks, int n)
{
    return bridge_take(s, tasks, n);
}

void hr_store_answer(struct hr_store *s, uint64_t id, const void *data, uint64_t size)
{
    bridge_answer(s, id, data, size);
}

void hr_store_missing(struct hr_store *s, uint64_t id)
{
    bridge_missing(s, id);
}

void hr_store_fail(struct hr_store *s, uint64_t id, int code, int retryable, const char *why)
{
    bridge_fail(s, id, code, retryable, why);
}
