/* See zip.h. */
#include "format/zip.h"
#include <string.h>
#include "base/mem.h"

#define END_SIZE     22
#define END64_SIZE   56
#define LOCATOR_SIZE 20
#define ENTRY_SIZE   46

struct tail {
    const uint8_t *data;
    size_t n;
    const char *where;
    struct hr_error *e;
};
struct directory {
    uint64_t count, size, offset; /* as the end record says */
    size_t at;                    /* in the tail */
};

static uint64_t load(const uint8_t *p, int n)
{
    uint64_t v = 0;
    while (n--)
        v = v << 8 | p[n];
    return v;
}

static int wrong(const struct tail *t, const char *what)
{
    return error_set(t->e, HR_EDATA, "%s: %s; it is no zip archive, or damaged", t->where, what);
}

/* ---- the end record --------------------------------------------------------------------------------------------- */

/* The last place where one stands whose comment ends with the object. */
static bool find_end(const struct tail *t, size_t *at)
{
    for (size_t back = END_SIZE; back <= t->n && back <= END_SIZE + UINT16_MAX; back++) {
        const uint8_t *p = t->data + t->n - back;
        if (!memcmp(p, "PK\5\6", 4) && load(p + 20, 2) == back - END_SIZE) {
            *at = t->n - back;
            return true;
        }
    }
    return false;
}

/* Zip64: its end record stands right before its locator, which stands right before the end record. */
static int read_end64(const struct tail *t, size_t end, struct directory *d)
{
    if (end < LOCATOR_SIZE + END64_SIZE)
        return wrong(t, "its end record points to another that does not stand before it");
    const uint8_t *locator = t->data + end - LOCATOR_SIZE, *p = locator - END64_SIZE;
    if (memcmp(locator, "PK\6\7", 4) || memcmp(p, "PK\6\6", 4) || load(p + 4, 8) != END64_SIZE - 12)
        return wrong(t, "its end record points to another that does not stand before it");
    if (load(locator + 4, 4) || load(p + 16, 4) || load(p + 20, 4) ||
        load(p + 24, 8) != load(p + 32, 8))
        return wrong(t, "it is one of several parts");
    *d = (struct directory){load(p + 32, 8), load(p + 40, 8), load(p + 48, 8),
                            end - LOCATOR_SIZE - END64_SIZE};
    return 0;
}

static int read_end(const struct tail *t, uint64_t object_size, struct directory *d)
{
    size_t end = 0;
    if (!find_end(t, &end))
        return wrong(t, "it does not end as a zip archive does");
    const uint8_t *p = t->data + end;
    *d = (struct directory){load(p + 10, 2), load(p + 12, 4), load(p + 16, 4), end};
    if (d->count == UINT16_MAX || d->size == UINT32_MAX || d->offset == UINT32_MAX)
        TRY(read_end64(t, end, d));
    else if (load(p + 4, 4) || load(p + 8, 2) != d->count)
        return wrong(t, "it is one of several parts");
    uint64_t from_end = t->n - d->at; /* where the directory ends, counted from the object's end */
    if (d->size > d->at)
        return error_set(t->e, HR_EUNSUPPORTED,
                         "%s: a zip archive with a directory of %llu bytes, larger than is read",
                         t->where, (unsigned long long)d->size);
    if (object_size && (object_size < from_end || d->size > object_size - from_end ||
                        d->offset != object_size - from_end - d->size))
        return wrong(t, "its directory does not stand where its end record says");
    d->at -= d->size;
    return 0;
}

/* ---- entries ---------------------------------------------------------------------------------------------------- */

/* Numbers that 32 bits do not hold: in this order, each only where it is needed. */
static bool read_zip64(const uint8_t *p, size_t n, struct zip_entry *x)
{
    uint64_t *fields[] = {&x->member.size, &x->member.stored, &x->offset};
    while (n >= 4) {
        uint64_t id = load(p, 2), size = load(p + 2, 2);
        if (size > n - 4)
            return false;
        const uint8_t *at = p + 4, *end = at + size;
        for (int i = 0; i < 3 && id == 1; i++) {
            if (*fields[i] != UINT32_MAX)
                continue;
            if (end - at < 8)
                return false;
            *fields[i] = load(at, 8);
            at += 8;
        }
        p += 4 + size;
        n -= 4 + size;
    }
    return true;
}

/* The entry at p, of n bytes at most; *took of them. */
static int read_entry(const struct tail *t, const uint8_t *p, size_t n, struct zip_entry *x,
                      size_t *took)
{
    if (n < ENTRY_SIZE || memcmp(p, "PK\1\2", 4))
        return wrong(t, "its directory has fewer entries than it says");
    size_t name = load(p + 28, 2), extra = load(p + 30, 2), comment = load(p + 32, 2);
    *took = ENTRY_SIZE + name + extra + comment;
    if (*took > n)
        return wrong(t, "an entry of its directory is cut short");
    if (load(p + 8, 2) & 1)
        return error_set(t->e, HR_EUNSUPPORTED, "%s: a zip archive with a password", t->where);
    *x = (struct zip_entry){.name = (const char *)p + ENTRY_SIZE,
                            .name_size = name,
                            .member = {.method = (uint16_t)load(p + 10, 2),
                                       .crc = (uint32_t)load(p + 16, 4),
                                       .stored = load(p + 20, 4),
                                       .size = load(p + 24, 4)},
                            .offset = load(p + 42, 4)};
    return read_zip64(p + ENTRY_SIZE + name, extra, x)
               ? 0
               : wrong(t, "an entry of its directory lacks numbers");
}

/* Members end where the next one begins, at the latest where the directory does. */
static int measure(const struct tail *t, const struct directory *d, struct zip_entry *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t end = d->offset;
        for (size_t k = 0; k < n; k++)
            if (x[k].offset > x[i].offset && x[k].offset < end)
                end = x[k].offset;
        if (x[i].offset >= end || end - x[i].offset < ZIP_LOCAL + x[i].name_size ||
            end - x[i].offset - ZIP_LOCAL - x[i].name_size < x[i].member.stored)
            return wrong(t, "a member lies where there is no room for it");
        x[i].span = end - x[i].offset;
    }
    return 0;
}

int zip_directory(const uint8_t *tail, size_t n, uint64_t object_size, const char *where,
                  struct zip_entry *out, size_t most, size_t *count, struct hr_error *e)
{
    struct tail t = {tail, n, where, e};
    struct directory d = {0};
    TRY(read_end(&t, object_size, &d));
    if (d.count > most)
        return error_set(e, HR_EUNSUPPORTED, "%s: %llu members; at most %zu are read", where,
                         (unsigned long long)d.count, most);
    size_t at = d.at, end = d.at + (size_t)d.size;
    for (size_t i = 0; i < d.count; i++) {
        size_t took = 0;
        TRY(read_entry(&t, tail + at, end - at, &out[i], &took));
        at += took;
    }
    if (at != end)
        return wrong(&t, "its directory is longer than its entries");
    *count = (size_t)d.count;
    return measure(&t, &d, out, *count);
}

const struct zip_entry *zip_find(const struct zip_entry *entries, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (entries[i].name_size == strlen(name) &&
            !memcmp(entries[i].name, name, entries[i].name_size))
            return &entries[i];
    return NULL;
}
