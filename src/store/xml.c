/* See xml.h. */
#include "store/xml.h"

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"

struct reader {
    const char *start, *p, *end, *where;
    struct buf path, text;
    size_t depth;
    size_t cut[XML_MAX_DEPTH]; /* where the path ended before each open element */
    bool qualified[XML_MAX_DEPTH];
    xml_element element;
    void *arg;
    struct hr_error *e;
};

static int broken(const struct reader *r, const char *what)
{
    return error_set(r->e, HR_EFORMAT, "%s: broken XML at byte %zu: %s", r->where,
                     (size_t)(r->p - r->start), what);
}

static int truncated(const struct reader *r)
{
    return error_set(r->e, HR_EFORMAT, "%s: the XML ends early, after %zu bytes", r->where,
                     (size_t)(r->end - r->start));
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("_:.-", c)) || (unsigned char)c > 127;
}

static bool starts(const struct reader *r, const char *what)
{
    size_t n = strlen(what);
    return (size_t)(r->end - r->p) >= n && !memcmp(r->p, what, n);
}

static void skip_space(struct reader *r)
{
    while (r->p < r->end && is_space(*r->p))
        r->p++;
}

/* Go behind the next `what`. */
static int skip_past(struct reader *r, const char *what)
{
    size_t n = strlen(what);
    const char *at = memmem(r->p, (size_t)(r->end - r->p), what, n);
    if (!at)
        return truncated(r);
    r->p = at + n;
    return 0;
}

/* ---- text ------------------------------------------------------------------------------------ */

static int add_character(struct reader *r, uint32_t c)
{
    bool allowed = c == 9 || c == 10 || c == 13 || (c >= 32 && c < 0xd800) ||
                   (c >= 0xe000 && c < 0x110000 && c != 0xfffe && c != 0xffff);
    char b[4];
    if (!allowed)
        return broken(r, "a character that XML does not allow");
    if (c < 0x80) {
        b[0] = (char)c;
        buf_add(&r->text, b, 1);
    } else if (c < 0x800) {
        b[0] = (char)(0xc0 | c >> 6), b[1] = (char)(0x80 | (c & 63));
        buf_add(&r->text, b, 2);
    } else if (c < 0x10000) {
        b[0] = (char)(0xe0 | c >> 12), b[1] = (char)(0x80 | (c >> 6 & 63));
        b[2] = (char)(0x80 | (c & 63));
        buf_add(&r->text, b, 3);
    } else {
        b[0] = (char)(0xf0 | c >> 18), b[1] = (char)(0x80 | (c >> 12 & 63));
        b[2] = (char)(0x80 | (c >> 6 & 63)), b[3] = (char)(0x80 | (c & 63));
        buf_add(&r->text, b, 4);
    }
    return 0;
}

static int numbered(struct reader *r, const char *s, size_t n)
{
    bool hex = n && *s == 'x';
    uint32_t c = 0;
    if (n <= hex || n > 8)
        return broken(r, "a character reference");
    for (size_t i = hex; i < n; i++) {
        uint32_t digit = s[i] >= '0' && s[i] <= '9' ? (uint32_t)(s[i] - '0')
                         : (s[i] | 32) >= 'a' && (s[i] | 32) <= 'f'
                             ? (uint32_t)(s[i] | 32) - 'a' + 10
                             : 99;
        if (digit >= (hex ? 16u : 10u))
            return broken(r, "a character reference");
        c = c * (hex ? 16 : 10) + digit;
    }
    return add_character(r, c);
}

/* At '&'. */
static int reference(struct reader *r)
{
    static const struct {
        const char *name;
        char c;
    } known[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
    size_t left = (size_t)(r->end - r->p), most = left < 12 ? left : 12;
    const char *name = r->p + 1, *end = memchr(r->p, ';', most);
    if (!end)
        return left < 12 ? truncated(r) : broken(r, "a '&' that begins no reference");
    size_t n = (size_t)(end - name);
    if (n && *name == '#') {
        TRY(numbered(r, name + 1, n - 1));
        r->p = end + 1;
        return 0;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strlen(known[i].name) != n || memcmp(known[i].name, name, n))
            continue;
        buf_putc(&r->text, known[i].c);
        r->p = end + 1;
        return 0;
    }
    return broken(r, "an unknown entity");
}

static int characters(struct reader *r)
{
    while (r->p < r->end && *r->p != '<') {
        if (*r->p == '&') {
            TRY(reference(r));
            continue;
        }
        const char *from = r->p;
        while (r->p < r->end && *r->p != '<' && *r->p != '&') {
            if ((unsigned char)*r->p < 32 && !is_space(*r->p))
                return broken(r, "a control character");
            r->p++;
        }
        buf_add(&r->text, from, (size_t)(r->p - from));
    }
    return 0;
}

static int cdata(struct reader *r)
{
    const char *from = r->p + 9;
    TRY(skip_past(r, "]]>"));
    if (r->p - 3 < from)
        return broken(r, "a CDATA section");
    for (const char *q = from; q < r->p - 3; q++)
        if ((unsigned char)*q < 32 && !is_space(*q))
            return broken(r, "a control character");
    buf_add(&r->text, from, (size_t)(r->p - 3 - from));
    return 0;
}

/* ---- tags ------------------------------------------------------------------------------------ */

static size_t name_size(const struct reader *r)
{
    const char *q = r->p;
    while (q < r->end && is_name(*q))
        q++;
    return (size_t)(q - r->p);
}

static int attributes(struct reader *r)
{
    for (;;) {
        const char *before = r->p;
        skip_space(r);
        if (r->p == r->end)
            return truncated(r);
        if (*r->p == '>' || *r->p == '/')
            return 0;
        size_t n = name_size(r);
        if (!n || r->p == before)
            return broken(r, "an attribute");
        r->p += n;
        skip_space(r);
        if (r->p < r->end && *r->p == '=')
            r->p++;
        else
            return r->p == r->end ? truncated(r) : broken(r, "an attribute without a value");
        skip_space(r);
        if (r->p == r->end)
            return truncated(r);
        char quote = *r->p++;
        if (quote != '"' && quote != '\'')
            return broken(r, "an attribute without quotes");
        while (r->p < r->end && *r->p != quote) {
            if (*r->p == '<')
                return broken(r, "a '<' in an attribute");
            r->p++;
        }
        if (r->p == r->end)
            return truncated(r);
        r->p++;
    }
}

static int close_element(struct reader *r)
{
    if (r->text.failed || r->path.failed)
        return error_nomem(r->e, r->text.size, "an XML document");
    TRY(r->element(r->arg, r->path.data, r->text.size ? r->text.data : "", r->text.size, r->e));
    r->depth--;
    r->path.size = r->cut[r->depth];
    r->path.data[r->path.size] = 0;
    buf_clear(&r->text);
    return 0;
}

/* Behind '<'. */
static int open_tag(struct reader *r)
{
    size_t n = name_size(r);
    if (!n)
        return r->p == r->end ? truncated(r) : broken(r, "a '<' that begins no tag");
    if (r->depth == XML_MAX_DEPTH)
        return broken(r, "elements nested too deeply");
    const char *colon = memrchr(r->p, ':', n);
    const char *local = colon ? colon + 1 : r->p;
    if (local == r->p + n)
        return broken(r, "a tag without a name");
    r->cut[r->depth++] = r->path.size;
    if (r->path.size)
        buf_putc(&r->path, '/');
    buf_add(&r->path, local, (size_t)(r->p + n - local));
    buf_clear(&r->text);
    r->p += n;
    TRY(attributes(r));
    bool empty = *r->p == '/';
    r->p += empty;
    if (r->p == r->end)
        return truncated(r);
    if (*r->p++ != '>')
        return broken(r, "a tag without its '>'");
    return empty ? close_element(r) : 0;
}

/* Behind '</'. */
static int close_tag(struct reader *r)
{
    size_t n = name_size(r);
    const char *colon = memrchr(r->p, ':', n);
    const char *local = colon ? colon + 1 : r->p;
    size_t local_size = (size_t)(r->p + n - local);
    if (r->p + n == r->end)
        return truncated(r);
    if (!r->depth)
        return broken(r, "an end tag without its element");
    size_t from = r->cut[r->depth - 1] + (r->depth > 1);
    if (r->path.failed)
        return error_nomem(r->e, r->path.cap, "an XML document");
    if (r->path.size - from != local_size || memcmp(r->path.data + from, local, local_size))
        return broken(r, "an end tag that closes another element");
    r->p += n;
    skip_space(r);
    if (r->p == r->end)
        return truncated(r);
    if (*r->p++ != '>')
        return broken(r, "an end tag without its '>'");
    return close_element(r);
}

static int markup(struct reader *r)
{
    if (starts(r, "<?"))
        return skip_past(r, "?>");
    if (starts(r, "<!--"))
        return skip_past(r, "-->");
    if (starts(r, "<![CDATA[") && r->depth)
        return cdata(r);
    if (starts(r, "<!"))
        return r->end - r->p < 9 ? truncated(r) : broken(r, "a declaration; none is read");
    if (starts(r, "</")) {
        r->p += 2;
        return close_tag(r);
    }
    r->p++;
    return open_tag(r);
}

static int document(struct reader *r)
{
    bool root = false;
    if (starts(r, "\xef\xbb\xbf"))
        r->p += 3;
    for (;;) {
        if (r->depth) {
            TRY(characters(r));
        } else {
            skip_space(r);
        }
        if (r->p == r->end)
            return r->depth || !root ? truncated(r) : 0;
        if (!r->depth && *r->p != '<')
            return broken(r, root ? "text behind the document" : "no XML document");
        bool tag = !starts(r, "<?") && !starts(r, "<!");
        if (!r->depth && tag && root)
            return broken(r, "a second document");
        root |= tag;
        TRY(markup(r));
    }
}

static bool is_utf8(const char *text, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t k = utf8_length((const unsigned char *)text + i, n - i);
        if (!k)
            return false;
        i += k;
    }
    return true;
}

int xml_read(const char *text, size_t n, const char *where, xml_element element, void *arg,
             struct hr_error *e)
{
    struct reader r = {.start = text,
                       .p = text,
                       .end = text + n,
                       .where = where,
                       .element = element,
                       .arg = arg,
                       .e = e};
    if (n > BUF_MAX_BYTES || !is_utf8(text, n))
        return error_set(e, HR_EFORMAT, "%s: not XML in UTF-8", where);
    buf_init(&r.path);
    buf_init(&r.text);
    int rc = document(&r);
    buf_dispose(&r.path);
    buf_dispose(&r.text);
    return rc;
}
