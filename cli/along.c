/* --along: the sample axes.
 *
 *     DIM[,DIM…]                            each position
 *     DIM=patch:SIZE[/STRIDE][:EDGE]        boxes; EDGE: valid, clip, pad, reflect
 *     DIM=crop:SIZE[/PARTS]                 boxes at random places, one in each of PARTS parts
 *     NAME=draws:N                          so many samples of whatever the others make */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "request.h"

static int malformed(const struct request *r, const char *text)
{
    return cli_usage(r->command,
                     "--along %s: DIM, DIM=patch:SIZE[/STRIDE][:EDGE], DIM=crop:SIZE[/PARTS] or "
                     "NAME=draws:N is expected",
                     text);
}

static int add_name(struct request *r, const char *from, size_t n, const char *what)
{
    if (r->n_axes == REQUEST_MOST_AXES)
        return cli_usage(r->command, "at most %d sample axes are taken", REQUEST_MOST_AXES);
    char *name = cli_keep(n + 1);
    memcpy(name, from, n);
    name[n] = 0;
    r->axes[r->n_axes].name = name;
    r->axes[r->n_axes++].what = what;
    r->along = r->axes[0].name;
    return EXIT_OK;
}

int along_take(struct request *r, const char *text)
{
    const char *equals = strchr(text, '=');
    if (equals)
        return equals == text ? malformed(r, text)
                              : add_name(r, text, (size_t)(equals - text), equals + 1);
    for (const char *p = text;;) {
        size_t n = strcspn(p, ",");
        int rc = n ? add_name(r, p, n, NULL) : malformed(r, text);
        if (rc || !p[n])
            return rc;
        p += n + 1;
    }
}

bool along_has(const struct request *r, const char *name, size_t n)
{
    for (int a = 0; a < r->n_axes; a++)
        if (strlen(r->axes[a].name) == n && !memcmp(r->axes[a].name, name, n))
            return true;
    return false;
}

/* "256/128:clip" → 256, 128 (or `other`), "clip" (or ""). */
static bool numbers(const char *text, int64_t *size, int64_t *second, const char **rest)
{
    char *end;
    errno = 0;
    *size = strtoll(text, &end, 10);
    bool good = end != text && !errno;
    if (good && *end == '/') {
        const char *from = end + 1;
        *second = strtoll(from, &end, 10);
        good = end != from && !errno;
    }
    *rest = *end == ':' ? end + 1 : end;
    return good && (!*end || *end == ':');
}

static int edge_of(const char *word)
{
    static const char *const words[] = {"", "valid", "pad", "reflect", "clip"};
    for (int i = 0; i < 5; i++)
        if (!strcmp(word, words[i]))
            return i;
    return -1;
}

static int add_axis(const struct request *r, int a, struct hr_samples *s, struct hr_error *e)
{
    const char *name = r->axes[a].name, *what = r->axes[a].what, *rest = "";
    int64_t size = 0, second = 0;
    if (!what)
        return hr_samples_along(s, name, e);
    const char *colon = strchr(what, ':');
    size_t kind = colon ? (size_t)(colon - what) : 0;
    bool patch = kind == 5 && !memcmp(what, "patch", 5);
    bool crop = kind == 4 && !memcmp(what, "crop", 4);
    bool draws = kind == 5 && !memcmp(what, "draws", 5);
    bool good = (patch || crop || draws) && numbers(colon + 1, &size, &second, &rest);
    if (!good || edge_of(rest) < 0 || (*rest && !patch) || (second && draws))
        return malformed(r, what);
    if (patch)
        return hr_samples_patch(s, name, size, second ? second : size, edge_of(rest), e);
    if (crop)
        return hr_samples_crop(s, name, size, second ? second : 1, e);
    return hr_samples_draws(s, name, size, e);
}

int along_add(const struct request *r, struct hr_samples *s)
{
    for (int a = 0; a < r->n_axes; a++) {
        struct hr_error e = {0};
        int rc = add_axis(r, a, s, &e);
        if (rc < 0)
            return cli_fail(&e);
        if (rc)
            return rc;
    }
    return EXIT_OK;
}
