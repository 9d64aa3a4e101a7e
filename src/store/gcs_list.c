/* Listings: objects.list of the JSON API, page by page; with HMAC keys the one that S3 has, too.
 *
 * A page is one complete JSON document of the right kind: names lost with the end of a cut page
 * would be arrays that are not there. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "net/url.h"
#include "store/gcs.h"
#include "store/pages.h"
#include "store/s3.h"

#define FIELDS "kind,items/name,prefixes,nextPageToken"

struct page {
    const char *below; /* what names begin with */
    size_t below_size;
    const char *what; /* for errors */
    struct buf *names;
    struct buf token;
    struct pages pages;
};

static int add_name(struct page *p, const struct json *v, struct hr_error *e)
{
    const char *name = json_str(v);
    size_t n = name ? strlen(name) : 0;
    if (!name || n < p->below_size || memcmp(name, p->below, p->below_size))
        return error_set(e, HR_ESTORE, "%s: a name that does not begin as asked for", p->what);
    if (n == p->below_size) /* an object that stands for the folder itself */
        return 0;
    buf_add(p->names, name + p->below_size, n - p->below_size);
    return buf_putc(p->names, 0) < 0 ? error_nomem(e, p->names->size, "a listing") : 0;
}

static int add_names(struct page *p, const struct json *page, struct hr_error *e)
{
    const struct json *items = json_get(page, "items"), *folders = json_get(page, "prefixes");
    if ((items && items->type != JSON_ARRAY) || (folders && folders->type != JSON_ARRAY))
        return error_set(e, HR_ESTORE, "%s: names that are no array", p->what);
    for (uint32_t i = 0; items && i < items->size; i++)
        TRY(add_name(p, json_get(&items->items[i], "name"), e));
    for (uint32_t i = 0; folders && i < folders->size; i++)
        TRY(add_name(p, &folders->items[i], e));
    return 0;
}

/* 1: another page follows; 0: that was the last. */
static int read_page(struct page *p, const struct buf *body, struct hr_error *e)
{
    struct arena arena;
    struct json *page;
    arena_init(&arena);
    int rc = json_parse(&arena, body->size ? body->data : "", body->size, p->what, &page, e);
    if (rc == 0 && !json_equal(json_get(page, "kind"), "storage#objects"))
        rc = error_set(e, HR_ESTORE, "%s: the answer is no listing; check endpoint_url", p->what);
    if (rc == 0)
        rc = add_names(p, page, e);
    const char *next = rc == 0 ? json_str(json_get(page, "nextPageToken")) : NULL;
    if (rc == 0 && next && *next && pages_go_round(&p->pages, next, strlen(next)))
        rc = error_set(e, HR_ESTORE, "%s: the listing goes on, but does not say where", p->what);
    if (rc == 0) {
        buf_clear(&p->token);
        rc = buf_puts(&p->token, next ? next : "") < 0 ? error_nomem(e, 256, "a listing")
                                                       : next && *next;
    }
    arena_dispose(&arena);
    return rc;
}

static void add_parameter(struct buf *query, const char *name, const char *value)
{
    buf_printf(query, "%s%s=", query->size ? "&" : "", name);
    url_encode(query, value, strlen(value), false);
}

static int write_query(struct buf *query, const struct page *p)
{
    buf_clear(query);
    add_parameter(query, "delimiter", "/");
    add_parameter(query, "fields", FIELDS);
    if (p->token.size)
        add_parameter(query, "pageToken", p->token.data);
    add_parameter(query, "prefix", p->below);
    return query->failed ? -1 : 0;
}

static int read_pages(struct remote *r, const char *name, struct page *p, struct hr_error *e)
{
    struct buf query, body;
    int rc;
    buf_init(&query);
    buf_init(&body);
    do {
        rc = write_query(&query, p) < 0 ? error_nomem(e, query.size, "a listing")
                                        : remote_ask(r, name, query.data, &body, e);
        if (rc == STORE_MISSING)
            rc = error_set(e, HR_ESTORE, "%s: there is nothing that could be listed", p->what);
        if (rc == 0)
            rc = read_page(p, &body, e);
    } while (rc > 0);
    buf_dispose(&query);
    buf_dispose(&body);
    return rc;
}

int gcs_list(struct remote *r, const char *prefix, char **names, size_t *size, struct hr_error *e)
{
    const struct gcs_store *s = (struct gcs_store *)r;
    struct buf below, out;
    char what[320];
    if (s->options.id)
        return s3_list_below(r, s->shown, s->prefix, prefix, names, size, e);
    snprintf(what, sizeof what, "listing %s/%s", s->shown, prefix);
    buf_init(&below);
    buf_init(&out);
    buf_puts(&below, "");
    buf_printf(&below, "%s%s%s%s", s->prefix, *s->prefix ? "/" : "", prefix, *prefix ? "/" : "");
    struct page p = {.below = below.data, .below_size = below.size, .what = what, .names = &out};
    buf_init(&p.token);
    int rc = below.failed ? error_nomem(e, below.size, "a listing") : read_pages(r, prefix, &p, e);
    if (rc == 0) {
        *size = out.size;
        *names = out.size ? buf_take(&out) : mem_zalloc(1);
        rc = *names ? 0 : error_nomem(e, *size, "a listing");
    }
    buf_dispose(&p.token);
    buf_dispose(&below);
    buf_dispose(&out);
    return rc;
}
