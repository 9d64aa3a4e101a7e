/* What the small languages of the command line are read with: pieces of a text, and complaints that point at them. */
#ifndef CLI_LANGUAGE_H
#define CLI_LANGUAGE_H
#include "request.h"

struct span {
    const char *at;
    size_t size;
};
struct language { /* one text under the reader */
    const struct request *request;
    const char *option, *text;
    struct hr_samples *samples;
    const char *view;
};

/* The message, the text, and carets below the part that is meant: EXIT_USAGE. */
int wrong(const struct language *l, struct span where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The library's words about it: EXIT_FAILED. */
int refused(const struct language *l, struct span where, const struct hr_error *e);

/* Up to the first of `stops` outside double quotes. */
struct span until(const char *s, const char *end, const char *stops);
const char *end_of(struct span s);
bool is(struct span s, const char *word);
const char *text_of(struct span s); /* a copy without the quotes */
bool integer(struct span s, int64_t *out);
bool is_number(const char *s); /* as JSON has numbers */

#endif
