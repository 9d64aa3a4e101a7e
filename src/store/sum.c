/* See sum.h. */
#include "store/sum.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

#define SUM_TEXT 8 /* four bytes in Base64: "yZRlqg==" */

int sum_init(struct sum *s, struct hr_error *e)
{
    s->table = NULL;
    if (!crc32c_needs_table())
        return 0;
    s->table = mem_alloc(sizeof *s->table);
    if (!s->table)
        return error_nomem(e, sizeof *s->table, "a table");
    crc32c_make_table(*s->table);
    return 0;
}

void sum_dispose(struct sum *s)
{
    mem_free(s->table);
    s->table = NULL;
}

static int digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Four bytes, the highest first; false: not that. */
static bool decode(const char *text, size_t n, uint32_t *out)
{
    uint64_t bits = 0;
    if (n != SUM_TEXT || text[6] != '=' || text[7] != '=')
        return false;
    for (int i = 0; i < 6; i++) {
        int d = digit(text[i]);
        if (d < 0)
            return false;
        bits = bits << 6 | (unsigned)d;
    }
    *out = (uint32_t)(bits >> 4);
    return true;
}

static bool agrees(const struct sum *s, uint32_t said, const void *data, uint64_t size, char *why,
                   size_t room)
{
    uint32_t is = crc32c(s->table ? *s->table : NULL, data, (size_t)size);
    if (is == said)
        return true;
    snprintf(why, room,
             "the bytes are not those of the object: crc32c %08x, the store says %08x; they were "
             "changed on their way, "
             "by a proxy or bad memory",
             is, said);
    return false;
}

/* "x-goog-hash: crc32c=yZRlqg==,md5=…", or one header for each. */
bool sum_agrees_gcs(const struct sum *s, const struct reply *head, const void *data, uint64_t size,
                    char *why, size_t room)
{
    static const char name[] = "x-goog-hash:", mark[] = "crc32c=";
    uint32_t said;
    for (const char *line = head->head, *end = line + head->head_size; line && line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t n = stop ? (size_t)(stop - line) : (size_t)(end - line);
        const char *at = n > sizeof name && !strncasecmp(line, name, sizeof name - 1)
                             ? memmem(line, n, mark, sizeof mark - 1)
                             : NULL;
        if (at) {
            const char *text = at + sizeof mark - 1;
            size_t left = n - (size_t)(text - line), size_of = 0;
            while (size_of < left && !strchr(", \r", text[size_of]))
                size_of++;
            return !decode(text, size_of, &said) || agrees(s, said, data, size, why, room);
        }
        line = stop ? stop + 1 : NULL;
    }
    return true;
}

bool sum_agrees_s3(const struct sum *s, const struct reply *head, const void *data, uint64_t size,
                   char *why, size_t room)
{
    uint32_t said;
    size_t n, kind_size;
    const char *text = reply_header(head, "x-amz-checksum-crc32c", &n);
    const char *kind = reply_header(head, "x-amz-checksum-type", &kind_size);
    bool whole = !kind || (kind_size == 11 && !memcmp(kind, "FULL_OBJECT", 11));
    return !text || !whole || !decode(text, n, &said) || agrees(s, said, data, size, why, room);
}
