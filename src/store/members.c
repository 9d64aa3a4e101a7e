/* See members.h. Tickets carry the number of their member. */
#include "store/members.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "store/ops.h"
#include "store/readers.h"

#define TICKET_BITS 52

struct members {
    struct store base;
    struct store_ops ops; /* what the members have in common */
    char *url;
    struct readers *readers; /* NULL: all members block, or none does */
    int n;
    struct store *of[];
};

static struct members *members(struct store *s)
{
    return (struct members *)s;
}

void store_member_prefix(int k, char out[STORE_MEMBER_PREFIX])
{
    snprintf(out, STORE_MEMBER_PREFIX, "%d/", k);
}

static int number_of(const struct members *m, const char **key)
{
    int k = 0;
    const char *p = *key;
    while (*p >= '0' && *p <= '9' && k < m->n)
        k = k * 10 + (*p++ - '0');
    if (p == *key || *p != '/' || k >= m->n)
        return -1;
    *key = p + 1;
    return k;
}

/* Keys of no member stay: they are no object here. */
static struct store *route(struct store *s, const char **key)
{
    int k = number_of(members(s), key);
    return k < 0 ? s : members(s)->of[k];
}

static int no_member(struct store *s, const char *key, struct hr_error *e)
{
    return error_set(e, HR_EINTERNAL, "%s: no archive of it has the object %s", s->url, key);
}

static void read_nothing(struct store *s, const char *key, struct store_range range,
                         const struct store_sink *sink, struct store_result *result)
{
    (void)range;
    (void)sink;
    result->rc = no_member(s, key, &result->error);
}

static int open_nothing(struct store *s, const char *key, int *fd, uint64_t *size,
                        struct hr_error *e)
{
    (void)fd;
    (void)size;
    return no_member(s, key, e);
}

static int start(struct store *s, const char *key, struct store_range range,
                 const struct store_sink *sink, store_done done, void *arg, uint64_t *ticket,
                 struct hr_error *e)
{
    struct members *m = members(s);
    const char *rest = key;
    int k = number_of(m, &rest);
    uint64_t own = 0;
    if (k < 0)
        return no_member(s, key, e);
    if (store_blocking(m->of[k]))
        TRY(readers_start(m->readers, m->of[k], rest, range, sink, done, arg, &own, e));
    else
        TRY(store_start(m->of[k], rest, range, sink, done, arg, &own, e));
    /* one that does not fit cannot be cancelled; it ends all the same */
    *ticket = own >> TICKET_BITS ? 0 : (uint64_t)(k + 1) << TICKET_BITS | own;
    return 0;
}

static void cancel(struct store *s, uint64_t ticket)
{
    struct members *m = members(s);
    uint64_t k = ticket >> TICKET_BITS, own = ticket & ((UINT64_C(1) << TICKET_BITS) - 1);
    if (!k || k > (uint64_t)m->n)
        return;
    if (store_blocking(m->of[k - 1]))
        readers_cancel(m->readers, own);
    else
        store_cancel(m->of[k - 1], own);
}

static void close_members(struct store *s)
{
    struct members *m = members(s);
    readers_close(m->readers);
    for (int k = 0; k < m->n; k++)
        store_unref(m->of[k]);
    mem_free(m->url);
    mem_free(m);
}

static void trouble(struct store *s, char *out, size_t n)
{
    for (int k = 0; k < members(s)->n && !out[0]; k++)
        store_trouble(members(s)->of[k], out, n);
}

static void waits(struct store *s, const char *key, unsigned seconds)
{
    const char *rest = key;
    struct store *of = route(s, &rest);
    if (of != s && of->ops->waits)
        of->ops->waits(of, rest, seconds);
}

/* ---- counters --------------------------------------------------------------------------------------------------- */

/* Percentiles cannot be added: of those the greatest. */
static bool is_percentile(const char *key)
{
    return key[0] == 'p' && key[1] >= '0' && key[1] <= '9';
}

/* The member `key` (below `group`, if any) over all reports. */
static void put_sum(struct buf *out, const struct json *const *reports, int n, const char *group,
                    const char *key)
{
    uint64_t sum = 0;
    for (int k = 0; k < n; k++) {
        const struct json *o = group ? json_get(reports[k], group) : reports[k];
        int64_t v;
        if (!json_int64(json_get(o, key), &v) || v < 0)
            continue;
        sum = !is_percentile(key) ? sum + (uint64_t)v : (uint64_t)v > sum ? (uint64_t)v : sum;
    }
    buf_printf(out, "\"%s\": %" PRIu64, key, sum);
}

/* Has any report before number `k` this member? */
static bool met(const struct json *const *reports, int k, const char *group, const char *key)
{
    for (int i = 0; i < k; i++)
        if (json_get(group ? json_get(reports[i], group) : reports[i], key))
            return true;
    return false;
}

static void put_group(struct buf *out, const struct json *const *reports, int n, const char *group)
{
    bool some = false;
    buf_printf(out, "\"%s\": {", group);
    for (int k = 0; k < n; k++) {
        const struct json *o = json_get(reports[k], group);
        for (uint32_t i = 0; json_is(o, JSON_OBJECT) && i < o->size; i++) {
            if (met(reports, k, group, o->members[i].key))
                continue;
            buf_puts(out, some ? ", " : "");
            put_sum(out, reports, n, group, o->members[i].key);
            some = true;
        }
    }
    buf_puts(out, "}");
}

/* Members of one report, but for texts, that no earlier report has. */
static void put_report(struct buf *out, const struct json *const *reports, int n, int k)
{
    for (uint32_t i = 0; i < reports[k]->size; i++) {
        const struct json_member *m = &reports[k]->members[i];
        bool group = json_is(&m->value, JSON_OBJECT);
        int64_t v;
        if (met(reports, k, NULL, m->key) || !(group || json_int64(&m->value, &v)))
            continue;
        if (group)
            put_group(out, reports, n, m->key);
        else
            put_sum(out, reports, n, NULL, m->key);
        buf_puts(out, ", ");
    }
}

static int read_reports(const struct members *m, struct arena *a, const struct json ***out)
{
    const struct json **reports = arena_array(a, (size_t)m->n, sizeof *reports);
    int n = 0;
    for (int k = 0; reports && k < m->n; k++) {
        struct buf text;
        struct json *o = NULL;
        buf_init(&text);
        store_stats_json(m->of[k], &text);
        if (!text.failed && json_parse(a, text.data, text.size, "stats", &o, NULL) >= 0 &&
            json_is(o, JSON_OBJECT))
            reports[n++] = o;
        buf_dispose(&text);
    }
    *out = reports;
    return n;
}

static void stats(struct store *s, struct buf *out)
{
    const struct members *m = members(s);
    const struct json **reports;
    struct arena a;
    arena_init(&a);
    int n = read_reports(m, &a, &reports);
    buf_puts(out, "{");
    for (int k = 0; k < n; k++)
        put_report(out, reports, n, k);
    buf_printf(out, "\"stores\": %d}", m->n);
    arena_dispose(&a);
}

/* ---- opening ---------------------------------------------------------------------------------------------------- */

int store_members_open(struct store *const *of, int n, const char *url, struct store **out,
                       struct hr_error *e)
{
    int blocking = 0, remote = 0, local = 0;
    if (n < 1 || n > STORE_MEMBERS_MOST)
        return error_set(e, HR_EINVAL, "%d archives as one: between 1 and %d can be", n,
                         STORE_MEMBERS_MOST);
    struct members *m = mem_zalloc(sizeof *m + (size_t)n * sizeof *of);
    if (!m || !(m->url = mem_strdup(url))) {
        mem_free(m);
        return error_nomem(e, (size_t)n * sizeof *of, "a store");
    }
    for (int k = 0; k < n; k++) {
        m->of[k] = of[k];
        blocking += of[k]->ops->blocking;
        remote += of[k]->ops->remote;
        local += of[k]->ops->local;
    }
    if (blocking && blocking < n && !(m->readers = readers_new(e))) {
        mem_free(m->url);
        mem_free(m);
        return HR_ENOMEM;
    }
    m->n = n;
    m->ops = (struct store_ops){.blocking = blocking == n,
                                .remote = remote > 0,
                                .local = local == n,
                                .route = route,
                                .close = close_members,
                                .read = read_nothing,
                                .start = start,
                                .cancel = cancel,
                                .open_file = open_nothing,
                                .stats = stats,
                                .trouble = trouble,
                                .waits = waits};
    store_init(&m->base, &m->ops, m->url);
    for (int k = 0; k < n; k++)
        store_ref(of[k]);
    *out = &m->base;
    return 0;
}
