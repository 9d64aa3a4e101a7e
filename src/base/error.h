/* Errors that teach: a code, whether a retry can help, and a text that names what, where and what to do.
 *
 * Every fallible function of the library returns 0 or a negative `enum hr_code` and takes as its last parameter a
 * `struct hr_error *` that may be NULL. The text is written once, where the fault is known, and forwarded unchanged
 * by TRY; a caller that knows more (which object, which chunk) prefixes it with error_context. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H
#include "headrace.h"

/* Fill *e (if not NULL) and return `code`, so that `return error_set(e, HR_ESTORE, …)` reads as one step. */
int error_set(struct hr_error *e, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, marked as worth a retry (time-outs, 5xx, resets). */
int error_set_retryable(struct hr_error *e, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Put "<context>: " before the text already in *e. Returns e->code (or `code` when e is NULL). */
int error_context(struct hr_error *e, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Put more behind the text already in *e, as far as there is room. */
void error_append(struct hr_error *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Out of memory as an ordinary error. */
int error_nomem(struct hr_error *e, uint64_t bytes, const char *what);

/* Bytes as a person reads them: "260.6 kB", "8.3 MB". Writes into `out` (≥ 24 bytes) and returns it. */
const char *error_bytes(char *out, size_t n, uint64_t bytes);

/* Forward a failure to the caller. For functions with something to free, use `goto out` instead. */
#define TRY(expr)                                                                                  \
    do {                                                                                           \
        int try_rc_ = (expr);                                                                      \
        if (try_rc_ < 0)                                                                           \
            return try_rc_;                                                                        \
    } while (0)

#endif
