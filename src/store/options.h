/* Storage options: a JSON object checked against the list of what a store understands.
 *
 * An unknown or mistyped option is an error that names the nearest one: an option that is
 * silently ignored (a time-out, a header with a token) shows up as something else, much later. */
#ifndef STORE_OPTIONS_H
#define STORE_OPTIONS_H
#include <stddef.h>

#include "base/json.h"

enum option_type {
    OPTION_BOOL,    /* bool */
    OPTION_MAYBE,   /* bool → enum maybe, which is zero where nothing is said */
    OPTION_SECONDS, /* number of seconds → uint32_t milliseconds */
    OPTION_COUNT,   /* integer → uint32_t */
    OPTION_STRING,  /* const char *, in the arena */
    OPTION_HEADERS, /* object of strings, valid as HTTP headers → const struct json * */
    OPTION_OBJECT,  /* any object → const struct json *, for options_object */
    OPTION_ANY,     /* const struct json *; the store looks at its type */
    OPTION_FOREIGN  /* nameless: those of foreign.h, which `least` says → struct option_names */
};
enum maybe { MAYBE_UNSAID, MAYBE_NO, MAYBE_YES };
struct option_names {
    char text[256]; /* "retries, loop"; as many as there is room for */
};
struct option_spec {
    const char *name;
    enum option_type type;
    size_t offset;
    uint32_t least, most; /* seconds or count; least 0 of OPTION_SECONDS: more than 0 */
};
/* `json` NULL or "": no options. Fields of `into` whose option is absent or null stay. `store`
 * names the store in errors; what is stored in `into` lives in `a`. */
int options_parse(const char *json, const char *store, const struct option_spec *specs, size_t n,
                  void *into, struct arena *a, struct hr_error *e);
/* The same for options inside an option of type OPTION_OBJECT, already parsed. NULL: none. */
int options_object(const struct json *object, const char *store, const struct option_spec *specs,
                   size_t n, void *into, struct hr_error *e);

#endif
