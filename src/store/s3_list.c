/* Listings: ListObjectsV2, page by page.
 *
 * Every page must be one complete <ListBucketResult>: names lost with the end of a cut page would
 * be arrays that are not there. Names come percent-encoded (encoding-type=url), since XML cannot
 * hold every byte of a key. */
#include <string.h>

#include "base/mem.h"
#include "net/url.h"
#include "store/pages.h"
#include "store/s3.h"
#include "store/xml.h"

struct page {
    const char *below; /* what names begin with */
    size_t below_size;
    struct buf *names;
    struct buf token, text;
    struct pages pages;
    bool encoded, complete, more;
    char code[64]; /* of an <Error> that came with status 200 */
};

/* One name of the answer, decoded, in p->text. */
static int decode(struct page *p, const char *text, size_t n, struct hr_error *e)
{
    buf_clear(&p->text);
    if (buf_add(&p->text, text, n) < 0)
        return error_nomem(e, n, "a listing");
    if (!p->encoded || !n)
        return 0;
    for (char *c = p->text.data; *c; c++)
        *c = *c == '+' ? ' ' : *c;
    int64_t size = url_decode(p->text.data);
    if (size < 0)
        return error_set(e, HR_EFORMAT, "a name that is badly encoded");
    p->text.size = (size_t)size;
    return 0;
}

static int add_name(struct page *p, const char *text, size_t n, struct hr_error *e)
{
    TRY(decode(p, text, n, e));
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
    if (strncmp(path, "ListBucketResult", 16))
        return 0;
    if (!path[16]) {
        p->complete = true;
        return 0;
    }
    const char *name = path + 17;
    if (!strcmp(name, "Contents/Key") || !strcmp(name, "CommonPrefixes/Prefix"))
        return add_name(p, text, n, e);
    if (!strcmp(name, "IsTruncated"))
        p->more = !strcmp(text, "true");
    if (!strcmp(name, "NextContinuationToken")) {
        buf_clear(&p->token);
        return buf_add(&p->token, text, n) < 0 ? error_nomem(e, n, "a listing") : 0;
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

/* In the order of their names, as they are signed. */
static int write_query(struct buf *query, const struct page *p)
{
    buf_clear(query);
    if (p->token.size)
        add_parameter(query, "continuation-token", p->token.data);
    add_parameter(query, "delimiter", "/");
    add_parameter(query, "encoding-type", "url");
    add_parameter(query, "list-type", "2");
    add_parameter(query, "prefix", p->below);
    return query->failed ? -1 : 0;
}

static int read_page(struct page *p, const struct buf *body, const char *what, struct hr_error *e)
{
    /* EncodingType stands behind the names in some answers and before them in others. */
    p->encoded = body->size && strstr(body->data, "<EncodingType>url</EncodingType>");
    p->complete = p->more = false;
    buf_clear(&p->token);
    int rc = xml_read(body->data ? body->data : "", body->size, "its answer", element, p, e);
    if (rc < 0)
        error_context(e, rc, "%s", what);
    else if (!p->complete)
        rc = error_set(e, HR_ESTORE, "%s: the answer is no listing%s%s", what,
                       p->code[0] ? " but an error: " : "; check endpoint_url", p->code);
    else if (p->more && (!p->token.size || pages_go_round(&p->pages, p->token.data, p->token.size)))
        rc = error_set(e, HR_ESTORE, "%s: the listing goes on, but does not say where", what);
    return rc;
}

static int read_pages(struct remote *r, const char *shown, const char *name, struct page *p,
                      struct hr_error *e)
{
    struct buf query, body;
    char what[320];
    int rc;
    snprintf(what, sizeof what, "listing %s/%s", shown, name);
    buf_init(&query);
    buf_init(&body);
    do {
        rc = write_query(&query, p) < 0 ? error_nomem(e, query.size, "a listing")
                                        : remote_ask(r, name, query.data, &body, e);
        if (rc == STORE_MISSING)
            rc = error_set(e, HR_ESTORE, "%s: there is nothing that could be listed", what);
        if (rc == 0)
            rc = read_page(p, &body, what, e);
    } while (rc == 0 && p->more);
    buf_dispose(&query);
    buf_dispose(&body);
    return rc;
}

int s3_list_below(struct remote *r, const char *shown, const char *root, const char *prefix,
                  char **names, size_t *size, struct hr_error *e)
{
    struct buf below, out;
    buf_init(&below);
    buf_init(&out);
    buf_puts(&below, "");
    buf_printf(&below, "%s%s%s%s", root, *root ? "/" : "", prefix, *prefix ? "/" : "");
    struct page p = {.below = below.data, .below_size = below.size, .names = &out};
    buf_init(&p.token);
    buf_init(&p.text);
    int rc = below.failed ? error_nomem(e, below.size, "a listing")
                          : read_pages(r, shown, prefix, &p, e);
    if (rc == 0) {
        *size = out.size;
        *names = out.size ? buf_take(&out) : mem_zalloc(1);
        rc = *names ? 0 : error_nomem(e, *size, "a listing");
    }
    buf_dispose(&p.token);
    buf_dispose(&p.text);
    buf_dispose(&below);
    buf_dispose(&out);
    return rc;
}

int s3_list(struct remote *r, const char *prefix, char **names, size_t *size, struct hr_error *e)
{
    const struct s3_store *s = (struct s3_store *)r;
    return s3_list_below(r, s->shown, s->prefix, prefix, names, size, e);
}
