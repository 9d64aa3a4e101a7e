/* A reader for the library's own reports: well-formed JSON, small, trusted. Numbers keep their text. Everything read lives
 * until the program ends. */
#ifndef CLI_JSON_H
#define CLI_JSON_H
#include <stdio.h>

enum value_type { VALUE_NULL, VALUE_BOOL, VALUE_NUMBER, VALUE_STRING, VALUE_LIST, VALUE_OBJECT };

struct value {
    enum value_type type;
    const char *text;    /* strings, unescaped; numbers and booleans as written */
    const char *key;     /* of this member, in an object */
    struct value *first; /* of a list or object */
    struct value *next;  /* in the same list or object */
};

struct value *json_read(const char *text); /* NULL when it is not JSON */
/* NULL-safe: a member, or NULL when absent or null. */
const struct value *value_get(const struct value *object, const char *key);
const char *value_text(const struct value *object, const char *key, const char *otherwise);
double value_number(const struct value *object, const char *key, double otherwise);
size_t value_count(const struct value *list);
void value_print(const struct value *v, FILE *to); /* as JSON, on one line */

#endif
