/* See options.h. */
#include "store/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/distance.h"
#include "store/foreign.h"

/* Another spelling of an option that stands before it in the table. */
static bool is_synonym(const struct option_spec *specs, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (specs[k].offset == specs[i].offset)
            return true;
    return false;
}

/* The name that was probably meant, or NULL. Names of environment variables are options in capitals. */
static const char *nearest_to(const char *name, const struct option_spec *specs, size_t n)
{
    const char *nearest = NULL;
    char lower[64];
    size_t size = strlen(name);
    unsigned least = (unsigned)size / 2 + 1;
    if (size >= sizeof lower)
        return NULL;
    for (size_t i = 0; i <= size; i++)
        lower[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] | 32) : name[i];
    for (size_t i = 0; i < n; i++) {
        if (specs[i].type == OPTION_FOREIGN)
            continue;
        unsigned d = distance(lower, specs[i].name);
        if (d > 2 && (strstr(specs[i].name, lower) || strstr(lower, specs[i].name)))
            d = 2;
        if (d < least) {
            least = d;
            nearest = specs[i].name;
        }
    }
    return nearest;
}

static int unknown(const char *name, const char *store, const struct option_spec *specs, size_t n,
                   struct hr_error *e)
{
    struct buf all;
    if (!n)
        return error_set(e, HR_EINVAL,
                         "%s: unknown storage option \"%s\"; this kind of store takes none", store,
                         name);
    buf_init(&all);
    for (size_t i = 0; i < n; i++)
        if (specs[i].type != OPTION_FOREIGN && !is_synonym(specs, i))
            buf_printf(&all, "%s%s", all.size ? ", " : "", specs[i].name);
    const char *nearest = nearest_to(name, specs, n);
    const char *names = all.failed || !all.size ? "none" : all.data;
    if (nearest)
        error_set(e, HR_EINVAL,
                  "%s: unknown storage option \"%s\"; did you mean \"%s\"? There are: %s", store,
                  name, nearest, names);
    else
        error_set(e, HR_EINVAL, "%s: unknown storage option \"%s\"; there are: %s", store, name,
                  names);
    buf_dispose(&all);
    return HR_EINVAL;
}

/* RFC 9110 §5.6.2 token */
static bool is_token(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c <= ' ' || c >= 127 || strchr("()<>@,;:\\\"/[]?={}", c))
            return false;
    }
    return n > 0;
}

static bool is_field_value(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)s[i] < ' ' && s[i] != '\t') || s[i] == 127)
            return false;
    return true;
}

static int check_headers(const struct json *v, const char *store, struct hr_error *e)
{
    /* Those that say which bytes of what come back are the library's to set. */
    static const char *const own[] = {"range",           "if-match",       "if-none-match",
                                      "if-range",        "content-length", "transfer-encoding",
                                      "accept-encoding", "connection"};
    for (uint32_t i = 0; i < v->size; i++) {
        const struct json_member *m = &v->members[i];
        if (!is_token(m->key, m->key_size))
            return error_set(e, HR_EINVAL,
                             "%s: storage option headers: a name that is no HTTP header name",
                             store);
        for (size_t j = 0; j < sizeof own / sizeof *own; j++)
            if (!strcasecmp(m->key, own[j]))
                return error_set(e, HR_EINVAL,
                                 "%s: storage option headers: %s is set by headrace itself", store,
                                 m->key);
        if (m->value.type != JSON_STRING || !is_field_value(m->value.string, m->value.size))
            return error_set(e, HR_EINVAL,
                             "%s: storage option headers: the value of %s must be a string without "
                             "control characters",
                             store, m->key);
    }
    return 0;
}

static int wrong_type(const struct option_spec *s, const char *store, const char *what,
                      const struct json *v, struct hr_error *e)
{
    return error_set(e, HR_EINVAL, "%s: storage option %s must be %s, not %s", store, s->name, what,
                     json_type_name(v));
}

static int out_of_range(const struct option_spec *s, const char *store, const char *unit,
                        struct hr_error *e)
{
    return error_set(e, HR_EINVAL, "%s: storage option %s must be %s%" PRIu32 " to %" PRIu32 "%s",
                     store, s->name, s->least || s->type == OPTION_COUNT ? "" : "more than ",
                     s->least, s->most, unit);
}

static int set(const struct option_spec *s, const struct json *v, const char *store, void *into,
               struct hr_error *e)
{
    char *at = (char *)into + s->offset;
    double seconds;
    int64_t count;
    switch (s->type) {
    case OPTION_BOOL:
        if (v->type != JSON_BOOL)
            return wrong_type(s, store, "true or false", v, e);
        *(bool *)at = v->boolean;
        return 0;
    case OPTION_MAYBE: /* object_store's are strings */
        if (json_str(v) &&
            (!strcasecmp(json_str(v), "true") || !strcasecmp(json_str(v), "false"))) {
            *(enum maybe *)at = strcasecmp(json_str(v), "true") ? MAYBE_NO : MAYBE_YES;
            return 0;
        }
        if (v->type != JSON_BOOL)
            return wrong_type(s, store, "true or false", v, e);
        *(enum maybe *)at = v->boolean ? MAYBE_YES : MAYBE_NO;
        return 0;
    case OPTION_SECONDS:
        if (!json_number(v, &seconds))
            return wrong_type(s, store, "a number of seconds", v, e);
        if (!(seconds * 1000 >= 1 && seconds >= s->least && seconds <= s->most))
            return out_of_range(s, store, " seconds", e);
        *(uint32_t *)at = (uint32_t)(seconds * 1000);
        return 0;
    case OPTION_COUNT:
        if (!json_int64(v, &count))
            return wrong_type(s, store, "an integer", v, e);
        if (count < s->least || count > s->most)
            return out_of_range(s, store, "", e);
        *(uint32_t *)at = (uint32_t)count;
        return 0;
    case OPTION_STRING:
        if (!json_str(v))
            return wrong_type(s, store, "a string", v, e);
        *(const char **)at = json_str(v);
        return 0;
    case OPTION_HEADERS:
        if (v->type != JSON_OBJECT)
            return wrong_type(s, store, "an object of names and values", v, e);
        TRY(check_headers(v, store, e));
        *(const struct json **)at = v;
        return 0;
    case OPTION_OBJECT:
        if (v->type != JSON_OBJECT)
            return wrong_type(s, store, "an object of options", v, e);
        *(const struct json **)at = v;
        return 0;
    case OPTION_ANY:
        *(const struct json **)at = v;
        return 0;
    case OPTION_FOREIGN:
        return 0;
    }
    return 0;
}

static void add_name(struct option_names *names, const char *name)
{
    size_t size = strlen(names->text);
    if (size + strlen(name) + 3 > sizeof names->text)
        return;
    snprintf(names->text + size, sizeof names->text - size, "%s%s", size ? ", " : "", name);
}

/* 1: an option of another library, passed over; 0: it is not; or an error. */
static int set_foreign(const struct json_member *m, const char *store,
                       const struct option_spec *specs, size_t n, void *into, struct hr_error *e)
{
    size_t k = 0;
    while (k < n && specs[k].type != OPTION_FOREIGN)
        k++;
    if (k == n)
        return 0;
    enum foreign where = (enum foreign)specs[k].least;
    const char *why = foreign_refusal(m->key, &m->value, where);
    if (why)
        return error_set(e, HR_EINVAL, "%s: storage option %s: %s", store, m->key, why);
    if (where == FOREIGN_CLIENT && !strcmp(m->key, "verify") && m->value.type == JSON_BOOL)
        return 1; /* true, as always */
    if (!foreign_harmless(m->key, where))
        return 0;
    add_name((struct option_names *)((char *)into + specs[k].offset), m->key);
    return 1;
}

int options_object(const struct json *object, const char *store, const struct option_spec *specs,
                   size_t n, void *into, struct hr_error *e)
{
    for (uint32_t i = 0; object && i < object->size; i++) {
        const struct json_member *m = &object->members[i];
        size_t k = 0;
        int passed = set_foreign(m, store, specs, n, into, e);
        if (passed < 0)
            return passed;
        if (passed)
            continue;
        while (k < n && (specs[k].type == OPTION_FOREIGN || strcmp(specs[k].name, m->key)))
            k++;
        if (k == n)
            return unknown(m->key, store, specs, n, e);
        if (m->value.type != JSON_NULL)
            TRY(set(&specs[k], &m->value, store, into, e));
    }
    return 0;
}

int options_parse(const char *json, const char *store, const struct option_spec *specs, size_t n,
                  void *into, struct arena *a, struct hr_error *e)
{
    struct json *root;
    if (!json || !*json)
        return 0;
    TRY(json_parse(a, json, strlen(json), "storage options", &root, e));
    if (root->type == JSON_NULL)
        return 0;
    if (root->type != JSON_OBJECT)
        return error_set(e, HR_EINVAL, "%s: storage options must be a JSON object, not %s", store,
                         json_type_name(root));
    return options_object(root, store, specs, n, into, e);
}
