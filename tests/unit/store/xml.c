/* The strict reader: what stores really send is read, everything cut or crooked is an error. */
#include "store/xml.h"

#include "base/buf.h"
#include "base/mem.h"
#include "t.h"

static int note(void *arg, const char *path, const char *text, size_t n, struct hr_error *e)
{
    (void)e;
    check_eq(strlen(text), n);
    return buf_printf(arg, "%s=%s;", path, text) < 0 ? HR_ENOMEM : 0;
}

/* "path=text;…" of each element in the order of their ends, or "error: …". Free it. */
static char *read_text(const char *text, size_t n)
{
    struct buf b;
    struct hr_error e = {0};
    buf_init(&b);
    buf_puts(&b, "");
    if (xml_read(text, n, "doc", note, &b, &e) < 0) {
        buf_clear(&b);
        buf_printf(&b, "error: %s", e.text);
    }
    return buf_take(&b);
}

static void expect(const char *text, const char *want)
{
    char *got = read_text(text, strlen(text));
    check_str(got, want);
    mem_free(got);
}

static void refused(const char *text, const char *why)
{
    char *got = read_text(text, strlen(text));
    check_has(got, "error: doc: ");
    check_has(got, why);
    mem_free(got);
}

static void an_error_of_s3_is_read(void)
{
    expect("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>NoSuchKey</Code><Message>The "
           "key does not exist &amp; never did</Message><Key>a&lt;b</Key></Error>\n",
           "Error/Code=NoSuchKey;Error/Message=The key does not exist & never did;Error/Key=a<b;"
           "Error=;");
}

static void a_listing_is_read(void)
{
    expect("<ListBucketResult xmlns='http://s3.amazonaws.com/doc/2006-03-01/' >\n"
           " <Name>b</Name><Prefix/><Contents><Key>a%20b</Key><Size>3</Size></Contents>\n"
           " <x:CommonPrefixes xmlns:x=\"y\"><x:Prefix>c/</x:Prefix></x:CommonPrefixes>\n"
           "</ListBucketResult>",
           "ListBucketResult/Name=b;ListBucketResult/Prefix=;ListBucketResult/Contents/Key=a%20b;"
           "ListBucketResult/Contents/Size=3;ListBucketResult/Contents=;"
           "ListBucketResult/CommonPrefixes/Prefix=c/;ListBucketResult/CommonPrefixes=;"
           "ListBucketResult=\n;");
}

static void references_sections_comments_and_marks_are_understood(void)
{
    expect("<a>&#65;&#x42;&#xFc;&#x1F30D;&quot;&apos;&gt;</a>",
           "a=AB\303\274\360\237\214\215\"'>;");
    expect("<a><![CDATA[<b>&amp;]]]]></a>", "a=<b>&amp;]];");
    expect("\357\273\277<!-- x --><a><!-- <b> -->t</a><!-- y -->", "a=t;");
    expect("<a b='1' c = \"2>\"/>", "a=;");
}

static void every_cut_document_is_an_error(void)
{
    const char *whole = "<?xml version=\"1.0\"?><R x=\"1\"><!-- c --><K>a&amp;b</K><E/>"
                        "<![CDATA[z]]></R>";
    for (size_t n = 0; n < strlen(whole); n++) {
        char *got = read_text(whole, n);
        if (!check(got && !strncmp(got, "error: doc: ", 12)))
            printf("# cut at %zu: %s\n", n, got);
        mem_free(got);
    }
    expect(whole, "R/K=a&b;R/E=;R=z;");
}

static void crooked_documents_are_refused(void)
{
    refused("<html><body><p>Bad gateway</body></html>", "closes another element");
    refused("{\"error\": 1}", "no XML document");
    refused("<a></a><b></b>", "second document");
    refused("<a></a>x", "text behind");
    refused("<a>&nbsp;</a>", "unknown entity");
    refused("<a>&#0;</a>", "does not allow");
    refused("<a>&#xD800;</a>", "does not allow");
    refused("<a>&#x;</a>", "character reference");
    refused("<a>&#99999999;</a>", "does not allow");
    refused("<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>", "declaration");
    refused("<a b></a>", "without a value");
    refused("<a b=1></a>", "without quotes");
    refused("<a>\001</a>", "control character");
    refused("<a>\377</a>", "UTF-8");
    refused("</a>", "end tag without");
    refused("<a>< b></a>", "begins no tag");
    refused("", "ends early");
}

static void depth_is_capped(void)
{
    struct buf b;
    buf_init(&b);
    for (int i = 0; i < XML_MAX_DEPTH + 1; i++)
        buf_puts(&b, "<a>");
    refused(b.data, "nested too deeply");
    buf_dispose(&b);
}

static int stop(void *arg, const char *path, const char *text, size_t n, struct hr_error *e)
{
    (void)arg, (void)path, (void)text, (void)n;
    return error_set(e, HR_ESTORE, "enough");
}

static void the_caller_can_end_it(void)
{
    struct hr_error e = {0};
    check_eq(xml_read("<a/>", 4, "doc", stop, NULL, &e), HR_ESTORE);
    check_str(e.text, "enough");
}

static void no_memory_is_an_error(void)
{
    const char *text = "<a><b>c</b></a>";
    for (uint64_t n = 1;; n++) {
        struct hr_error e = {0};
        struct buf b;
        buf_init(&b);
        mem_fail_at(n, true);
        int rc = xml_read(text, strlen(text), "doc", note, &b, &e);
        mem_fail_at(0, false);
        buf_dispose(&b);
        if (rc == 0)
            break;
        check_eq(rc, HR_ENOMEM);
    }
    check_eq(mem_live(), 0);
}

int main(void)
{
    RUN(an_error_of_s3_is_read);
    RUN(a_listing_is_read);
    RUN(references_sections_comments_and_marks_are_understood);
    RUN(every_cut_document_is_an_error);
    RUN(crooked_documents_are_refused);
    RUN(depth_is_capped);
    RUN(the_caller_can_end_it);
    RUN(no_memory_is_an_error);
    return t_done();
}
