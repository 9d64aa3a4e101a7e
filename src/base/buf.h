/* A growable byte string with a cap: text, metadata documents, small bodies. Always NUL-terminated once it holds
 * anything. A failed append leaves the contents as they were and sets `failed`; appends after it do nothing, so a long
 * series is checked once at its end. Not thread-safe. */
#ifndef BASE_BUF_H
#define BASE_BUF_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUF_MAX_BYTES (1u << 30)

struct buf {
    char *data;
    size_t size, cap;
    bool failed;
};

void buf_init(struct buf *b);
void buf_dispose(struct buf *b);
void buf_clear(struct buf *b);
int buf_reserve(struct buf *b, size_t more); /* 0 or -1 */
int buf_add(struct buf *b, const void *data, size_t n);
int buf_puts(struct buf *b, const char *s);
int buf_putc(struct buf *b, char c);
int buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Quoted and escaped; bytes that are not UTF-8 become U+FFFD. */
int buf_json_string(struct buf *b, const char *s, size_t n);
/* The string, to be freed with mem_free; NULL if failed. Leaves b empty, ready for use. */
char *buf_take(struct buf *b);

#endif
