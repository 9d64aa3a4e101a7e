/* Listings: List Blobs, page by page.
 *
 * Every page must be one complete <EnumerationResults>: names lost with the end of a cut page would
 * be arrays that are not there. A name that XML cannot hold is percent-encoded, and its tag says
 * so (Encoded="true"). */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "net/url.h"
#include "store/azure.h"
#include "store/pages.h"
#include "store/xml.h"

struct page {
    const char *below; /* what names begin with */
    size_t below_size;
    struct buf *names;
    struct buf marker, text;
    struct pages pages;
    const char *tag; /* behind the tag of the name before, in the document */
    bool complete;
    char code[64]; /* of an <Error> that came with status 200 */
};

/* The reader of XML skips attributes: the tag of this name, which is the next one, is looked at in
 * the text. No element but names is called so. */
static bool is_encoded(struct page *p)
{
    const char *tag = p->tag;
    do {
        tag = tag ? strstr(tag, "<Name") : NULL;
        tag = tag ? tag + 5 : NULL;
    } while (tag && !strchr(" \t\r\n>/", *tag));
    p->tag = tag;
    size_t n = tag ? strcspn(tag, ">") : 0;
    return n && (memmem(tag, n, "Encoded=\"true\"", 14) || memmem(tag, n, "Encoded='true'", 14));
}

static int add_name(struct page *p, const char *text, size_t n, struct hr_error *e)
{
    buf_clear(&p->text);
    if (buf_add(&p->text, text, n) < 0)
        return error_nomem(e, n, "a listing");
    if (is_encoded(p) && n) {
        int64_t size = url_decode(p->text.data);
        if (size < 0)
            return error_set(e, HR_EFORMAT, "a name that is badly encoded");
        p->text.size = (size_t)size;
    }
    if (p->text.size < p->below_size || memcmp(p->text.data, p->below, p->below_size))
        return error_set(e, HR_EFORMAT, "a name that does not begin as asked for");
    if (p->text.size == p->below_size) /* an object that stands for the folder itself */
        return 0;
    buf_add(p->names, p->text.data + p->below_size, p->text.size - p->below_size);
    return buf_putc(p->names, 0) < 0 ? error_nomem(e, p->names->size, "a listing") : 0;
}

static int element(void *arg, const char *path, const char *text, size_t n, struct hr_error *e)
{
    struct page *p = arg;
    if (!strcmp(path, "Error/Code"))
        memcpy(p->code, text, n < sizeof p->code ? n : sizeof p->code - 1);
    if (strncmp(path, "EnumerationResults", 18))
        return 0;
    if (!path[18]) {
        p->complete = true;
        return 0;
    }
    const char *name = path + 19;
    if (!strcmp(name, "Blobs/Blob/Name") || !strcmp(name, "Blobs/BlobPrefix/Name"))
        return add_name(p, text, n, e);
    if (!strcmp(name, "NextMarker")) {
        buf_clear(&p->marker);
        return buf_add(&p->marker, text, n) < 0 ? error_nomem(e, n, "a listing") : 0;
    }
    return 0;
}

static void add_parameter(struct buf *query, const char *name, const char *value)
{
    if (query->size)
        buf_putc(query, '&');
    buf_puts(query, name);
    buf_putc(query, '=');
    url_encode(query, value, strlen(value), false);
}

static int write_query(struct buf *query, const struct page *p)
{
    buf_clear(query);
    add_parameter(query, "restype", "container");
    add_parameter(query, "comp", "list");
    add_parameter(query, "delimiter", "/");
    if (*p->below)
        add_parameter(query, "prefix", p->below);
    if (p->marker.size)
        add_parameter(query, "marker", p->marker.data);
    return query->failed ? -1 : 0;
}

static int read_page(struct page *p, const struct buf *body, const char *what, struct hr_error *e)
{
    p->complete = false;
    p->tag = body->data;
    buf_clear(&p->marker);
    int rc = xml_read(body->data ? body->data : "", body->size, "its answer", element, p, e);
    if (rc < 0)
        error_context(e, rc, "%s", what);
    else if (!p->complete)
        rc = error_set(e, HR_ESTORE, "%s: the answer is no listing%s%s", what,
                       p->code[0] ? " but an error: " : "; check endpoint", p->code);
    else if (p->marker.size && pages_go_round(&p->pages, p->marker.data, p->marker.size))
        rc = error_set(e, HR_ESTORE, "%s: the listing goes on, but does not say where", what);
    return rc;
}

static int read_pages(struct remote *r, const char *name, struct page *p, struct hr_error *e)
{
    const struct azure_store *s = (struct azure_store *)r;
    struct buf query, body;
    char what[320];
    int rc;
    snprintf(what, sizeof what, "listing %s/%s", s->shown, name);
    buf_init(&query);
    buf_init(&body);
    do {
        rc = write_query(&query, p) < 0 ? error_nomem(e, query.size, "a listing")
                                        : remote_ask(r, name, query.data, &body, e);
        if (rc == STORE_MISSING)
            rc = error_set(e, HR_ESTORE, "%s: there is nothing that could be listed", what);
        if (rc == 0)
            rc = read_page(p, &body, what, e);
    } while (rc == 0 && p->marker.size);
    buf_dispose(&query);
    buf_dispose(&body);
    return rc;
}

int azure_list(struct remote *r, const char *prefix, char **names, size_t *size, struct hr_error *e)
{
    const struct azure_store *s = (struct azure_store *)r;
    struct buf below, out;
    buf_init(&below);
    buf_init(&out);
    buf_puts(&below, "");
    buf_printf(&below, "%s%s%s%s", s->url.prefix, *s->url.prefix ? "/" : "", prefix,
               *prefix ? "/" : "");
    struct page p = {.below = below.data, .below_size = below.size, .names = &out};
    buf_init(&p.marker);
    buf_init(&p.text);
    int rc = below.failed ? error_nomem(e, below.size, "a listing") : read_pages(r, prefix, &p, e);
    if (rc == 0) {
        *size = out.size;
        *names = out.size ? buf_take(&out) : mem_zalloc(1);
        rc = *names ? 0 : error_nomem(e, *size, "a listing");
    }
    buf_dispose(&p.marker);
    buf_dispose(&p.text);
    buf_dispose(&below);
    buf_dispose(&out);
    return rc;
}
