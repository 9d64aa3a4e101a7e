/* The state is a line of JSON that a person can read in a checkpoint. Fingerprints stand together,
 * in the order archive, views, split, order. Numbers are exact integers; unknown members are
 * ignored, so that later versions may add some.
 *
 * Checks go from what is largest to what is smallest, so that the message names the cause and not a
 * consequence: a different archive also changes the order's fingerprint. */
#include "plan/state.h"

#include "base/buf.h"
#include "base/json.h"
#include <inttypes.h>
#include <string.h>

#define N(x) ((unsigned long long)(x))

static const char *const remainders[] = {"default", "drop", "pad", "short", "wrap"};
static const char *const shuffles[] = {"none", "spread", "global"};

static const char *name_of(const char *const *names, int n, int i)
{
    return i >= 0 && i < n ? names[i] : "unknown";
}

static const char *remainder_name(int i)
{
    return name_of(remainders, 5, i);
}

static const char *shuffle_name(int i)
{
    return name_of(shuffles, 3, i);
}

char *state_write(const struct plan_state *s)
{
    struct buf b;
    buf_init(&b);
    buf_printf(&b,
               "{\"order\":%d,\"hashes\":\"%016" PRIx64 "-%016" PRIx64 "-%016" PRIx64 "-%016" PRIx64
               "\",",
               s->order_version, s->archive_hash, s->views_hash, s->split_hash, s->order_hash);
    buf_printf(&b,
               "\"seed\":%" PRIu64 ",\"epoch\":%" PRIu64 ",\"position\":%" PRIu64
               ",\"global_batch\":%" PRIu64 ",\"streams\":%" PRIu64 ",\"spread\":%" PRIu64
               ",\"block\":%" PRIu64,
               s->seed, s->epoch, s->position, s->global_batch, s->streams, s->spread, s->block);
    if (s->weights_hash)
        buf_printf(&b, ",\"weights\":\"%016" PRIx64 "\"", s->weights_hash);
    if (s->strata_hash)
        buf_printf(&b, ",\"strata\":\"%016" PRIx64 "\"", s->strata_hash);
    buf_printf(&b, ",\"remainder\":\"%s\",\"shuffle\":\"%s\"}", remainder_name(s->remainder),
               shuffle_name(s->shuffle));
    return buf_take(&b);
}

static int number(const struct json *o, const char *name, uint64_t *out, struct hr_error *e)
{
    const struct json *v = json_get(o, name);
    if (json_is(v, JSON_UINT))
        *out = v->u;
    else if (json_is(v, JSON_INT) && v->i >= 0)
        *out = (uint64_t)v->i;
    else
        return error_set(e, HR_ESTATE,
                         "the state has %s for \"%s\", where a whole number is expected",
                         json_type_name(v), name);
    return 0;
}

static int choice(const struct json *o, const char *name, const char *const *names, int n, int *out,
                  struct hr_error *e)
{
    const char *text = json_str(json_get(o, name));
    for (int i = 0; i < n; i++)
        if (text && !strcmp(text, names[i])) {
            *out = i;
            return 0;
        }
    return error_set(e, HR_ESTATE, "the state has %s for \"%s\"", text ? text : "no text", name);
}

/* n numbers of 16 digits, with dashes between. */
static int hashes(const char *text, uint64_t *out, int n, struct hr_error *e)
{
    int at = 0;
    for (int i = 0; text && at == i * 17 && i < n; i++) {
        out[i] = 0;
        for (; at < i * 17 + 16; at++) {
            const char *digits = "0123456789abcdef",
                       *digit = text[at] ? strchr(digits, text[at]) : NULL;
            if (!digit)
                return error_set(e, HR_ESTATE, "the state's fingerprints are damaged: \"%.80s\"",
                                 text);
            out[i] = out[i] << 4 | (uint64_t)(digit - digits);
        }
        at += text[at] == (i + 1 < n ? '-' : '\0');
    }
    if (at != n * 17)
        return error_set(e, HR_ESTATE, "the state's fingerprints are damaged: \"%.80s\"",
                         text ? text : "");
    return 0;
}

static int state_read(const struct json *o, struct plan_state *s, struct hr_error *e)
{
    uint64_t version = 0, hash[4] = {0};
    if (!json_is(o, JSON_OBJECT))
        return error_set(e, HR_ESTATE, "the state is %s, where an object is expected",
                         json_type_name(o));
    TRY(number(o, "order", &version, e));
    if (version < 1 || version > PLAN_ORDER_VERSION)
        return error_set(
            e, HR_ESTATE,
            "the state is of order version %llu; this library knows 1 … %d: use a newer one",
            N(version), PLAN_ORDER_VERSION);
    TRY(hashes(json_str(json_get(o, "hashes")), hash, 4, e));
    *s = (struct plan_state){.order_version = (int)version,
                             .archive_hash = hash[0],
                             .views_hash = hash[1],
                             .split_hash = hash[2],
                             .order_hash = hash[3]};
    TRY(number(o, "seed", &s->seed, e));
    TRY(number(o, "epoch", &s->epoch, e));
    TRY(number(o, "position", &s->position, e));
    TRY(number(o, "global_batch", &s->global_batch, e));
    TRY(number(o, "streams", &s->streams, e));
    TRY(number(o, "spread", &s->spread, e));
    TRY(number(o, "block", &s->block, e));
    if (json_get(o, "weights"))
        TRY(hashes(json_str(json_get(o, "weights")), &s->weights_hash, 1, e));
    if (json_get(o, "strata"))
        TRY(hashes(json_str(json_get(o, "strata")), &s->strata_hash, 1, e));
    TRY(choice(o, "remainder", remainders, 5, &s->remainder, e));
    return choice(o, "shuffle", shuffles, 3, &s->shuffle, e);
}

int state_parse(const char *text, size_t n, struct plan_state *out, struct hr_error *e)
{
    struct arena a;
    struct json *o;
    struct hr_error why = {0};
    arena_init(&a);
    int rc = json_parse(&a, text, n, "JSON text", &o, &why);
    if (!rc)
        rc = state_read(o, out, &why);
    arena_dispose(&a);
    return rc < 0 ? error_set(e, rc == HR_ENOMEM ? rc : HR_ESTATE, "not a state of this loader: %s",
                              why.text)
                  : 0;
}

static int differs(struct hr_error *e, const char *option, uint64_t state, uint64_t plan)
{
    return error_set(
        e, HR_ESTATE,
        "%s differs: the state was taken with %llu, the loader has %llu; open the loader with "
        "the state's value",
        option, N(state), N(plan));
}

/* Weights or bins, given as the argument `name`. */
static int sampling_check(const char *what, const char *name, uint64_t state, uint64_t plan,
                          struct hr_error *e)
{
    if (state && !plan)
        return error_set(e, HR_ESTATE,
                         "%s differ: the state was taken with %s (fingerprint %016" PRIx64
                         "), the loader has none; open it with the same %s=",
                         what, what, state, name);
    if (!state && plan)
        return error_set(e, HR_ESTATE,
                         "%s differ: the state was taken without %s, and the loader has some; open "
                         "it without %s=",
                         what, what, name);
    return error_set(e, HR_ESTATE,
                     "%s differ from those the state was taken with (fingerprint %016" PRIx64
                     ", now %016" PRIx64 "); open the loader with the same %s=",
                     what, state, plan, name);
}

/* Another split has other ones: then that is what differs. */
static int samplings_check(const struct plan_state *s, const struct plan_facts *f,
                           struct hr_error *e)
{
    bool same = s->split_hash == f->split_hash;
    if (s->weights_hash != f->weights_hash && (same || !s->weights_hash || !f->weights_hash))
        return sampling_check("weights", "weights", s->weights_hash, f->weights_hash, e);
    if (s->strata_hash != f->strata_hash && (same || !s->strata_hash || !f->strata_hash))
        return sampling_check("strata", "stratify", s->strata_hash, f->strata_hash, e);
    return 0;
}

static int hashes_check(const struct plan_state *s, const struct plan_facts *f, struct hr_error *e)
{
    if (s->archive_hash != f->archive_hash)
        return error_set(
            e, HR_ESTATE,
            "the archive differs from the one the state was taken on (fingerprint %016" PRIx64
            ", now %016" PRIx64
            "): the views take other arrays or follow other axes, or names, types, chunks or "
            "codecs of the arrays changed",
            s->archive_hash, f->archive_hash);
    if (s->views_hash != f->views_hash)
        return error_set(
            e, HR_ESTATE,
            "the views differ from those the state was taken with (fingerprint %016" PRIx64
            ", now %016" PRIx64 "): give the same names, steps, selections and types",
            s->views_hash, f->views_hash);
    TRY(samplings_check(s, f, e));
    if (s->split_hash != f->split_hash)
        return error_set(
            e, HR_ESTATE,
            "the split differs from the one the state was taken with (fingerprint %016" PRIx64
            ", now %016" PRIx64 "): select the same samples",
            s->split_hash, f->split_hash);
    return 0;
}

int state_check(const struct plan_state *s, const struct plan *p, bool allow_batch,
                struct hr_error *e)
{
    const struct plan_facts *f = plan_facts(p);
    if (s->order_version != f->order_version)
        return differs(e, "order", (uint64_t)s->order_version, (uint64_t)f->order_version);
    TRY(hashes_check(s, f, e));
    if (s->shuffle != f->shuffle)
        return error_set(e, HR_ESTATE,
                         "shuffle differs: the state was taken with \"%s\", the loader has \"%s\"",
                         shuffle_name(s->shuffle), shuffle_name(f->shuffle));
    if (s->remainder != f->remainder)
        return error_set(
            e, HR_ESTATE,
            "remainder differs: the state was taken with \"%s\", the loader has \"%s\"",
            remainder_name(s->remainder), remainder_name(f->remainder));
    if (s->streams != f->streams)
        return differs(e, "streams", s->streams, f->streams);
    if (f->shuffle != HR_SHUFFLE_NONE && s->seed != f->seed)
        return differs(e, "seed", s->seed, f->seed);
    if (f->shuffle == HR_SHUFFLE_SPREAD && s->spread != f->spread)
        return differs(e, "spread", s->spread, f->spread);
    if (f->shuffle == HR_SHUFFLE_SPREAD && s->block != f->block)
        return differs(e, "block", s->block, f->block);
    if (s->order_hash != f->order_hash)
        return error_set(
            e, HR_ESTATE,
            "the order differs from the one the state was taken in (fingerprint %016" PRIx64
            ", now %016" PRIx64 "): the blocks of the split changed",
            s->order_hash, f->order_hash);
    if (s->global_batch != f->global_batch && !allow_batch)
        return error_set(
            e, HR_ESTATE,
            "global_batch differs: the state was taken with %llu, the loader has %llu; if that is "
            "meant, load it with allow=\"batch\"",
            N(s->global_batch), N(f->global_batch));
    uint64_t rows = f->samples / f->streams + 1;
    if (s->position > (rows > f->stream_rows ? rows : f->stream_rows) + s->global_batch)
        return error_set(e, HR_ESTATE,
                         "position %llu lies behind the %llu rows a stream gives out in an epoch",
                         N(s->position), N(f->stream_rows));
    return 0;
}
