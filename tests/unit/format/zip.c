/* Zips of NPY files, by hand: what is read, and what each damage is called. */
#include "format/zip.h"
#include "t.h"

static struct hr_error e;

/* One stored member, "a", of an NPY file with three items of <u2. */
#define HEAD  "\x93NUMPY\1\0\x37\0{'descr': '<u2', 'fortran_order': False, 'shape': (3,)}"
#define ITEMS "\1\0\2\0\3\0"
#define SIZE  71 /* of both */

struct text {
    uint8_t data[512];
    size_t n;
};

static void put(struct text *t, uint64_t v, int bytes)
{
    for (; bytes--; v >>= 8)
        t->data[t->n++] = (uint8_t)v;
}

static void add(struct text *t, const char *bytes, size_t n)
{
    memcpy(t->data + t->n, bytes, n);
    t->n += n;
}

/* CRC-32 of the member, bit by bit. */
static uint32_t crc(const uint8_t *p, size_t n)
{
    uint32_t c = UINT32_MAX;
    while (n--) {
        c ^= *p++;
        for (int i = 0; i < 8; i++)
            c = c >> 1 ^ (c & 1 ? 0xEDB88320u : 0);
    }
    return ~c;
}

static void member(struct text *t)
{
    add(t, HEAD, sizeof HEAD - 1);
    add(t, ITEMS, 6);
}

enum { LOCAL = 0, ENTRY = 31 + SIZE, END = ENTRY + 47, ALL = END + 22 };

static void zip(struct text *t)
{
    struct text m = {.n = 0};
    member(&m);
    uint32_t sum = crc(m.data, m.n);
    t->n = 0;
    add(t, "PK\3\4\24\0\0\0\0\0\0\0\0\0", 14);
    put(t, sum, 4);
    put(t, SIZE, 4);
    put(t, SIZE, 4);
    put(t, 1, 2);
    put(t, 0, 2);
    add(t, "a", 1);
    member(t);
    add(t, "PK\1\2\24\0\24\0\0\0\0\0\0\0\0\0", 16);
    put(t, sum, 4);
    put(t, SIZE, 4);
    put(t, SIZE, 4);
    put(t, 1, 2);
    put(t, 0, 16);
    add(t, "a", 1);
    add(t, "PK\5\6\0\0\0\0\1\0\1\0", 12);
    put(t, 47, 4);
    put(t, ENTRY, 4);
    put(t, 0, 2);
}

static int directory(const struct text *t, uint64_t size, struct zip_entry *x)
{
    size_t n = 0;
    int rc = zip_directory(t->data, t->n, size, "c.npz", x, 4, &n, &e);
    if (rc == 0)
        check(n == 1 && zip_find(x, n, "a") == x && !zip_find(x, n, "b"));
    return rc;
}

static void a_member_is_found_and_decoded(void)
{
    struct text t;
    struct zip_entry x[4];
    struct arena a;
    struct dtype type;
    struct codec_chain *chain;
    uint16_t items[3];
    zip(&t);
    check_eq(t.n, ALL);
    check_eq(directory(&t, ALL, x), 0);
    check_eq(directory(&t, 0, x), 0); /* also where nobody says how large the object is */
    check(x->offset == 0 && x->span == ENTRY && x->member.size == SIZE && x->member.method == 0);
    struct codec_context *c = codec_context_new();
    arena_init(&a);
    check_eq(dtype_from_numpy(&a, "<u2", "c.npz", &type, &e), 0);
    check_eq(codec_chain_npz(&a, &x->member, &type, 3, x->span, "c.npz", &chain, &e), 0);
    check_eq(codec_chain_decode(chain, c, t.data, x->span, items, &e), 0);
    check(items[0] == 1 && items[1] == 2 && items[2] == 3);
    t.data[ENTRY - 1] ^= 1; /* an item */
    check_eq(codec_chain_decode(chain, c, t.data, x->span, items, &e), HR_EDATA);
    check(strstr(e.text, "checksum"));
    t.data[8] = 8; /* a method */
    check_eq(codec_chain_decode(chain, c, t.data, x->span, items, &e), HR_EDATA);
    check(codec_chain_npz(&a, &x->member, &type, 4000, x->span, "c.npz", &chain, &e) == HR_EDATA);
    check_eq(codec_chain_npz(&a, &x->member, &type, 2, x->span, "c.npz", &chain, &e), 0);
    zip(&t);
    check_eq(codec_chain_decode(chain, c, t.data, x->span, items, &e), HR_EDATA); /* it holds 3 */
    arena_dispose(&a);
    codec_context_free(c);
}

static void refused(size_t at, uint8_t value, int code, const char *words)
{
    struct text t;
    struct zip_entry x[4];
    zip(&t);
    t.data[at] = value;
    check_eq(directory(&t, ALL, x), code);
    if (!check(strstr(e.text, words)))
        printf("# %s\n", e.text);
}

static void directories_that_cannot_be_are_refused(void)
{
    refused(END, 'X', HR_EDATA, "does not end");
    refused(END + 20, 1, HR_EDATA, "does not end"); /* a comment that is not there */
    refused(END + 4, 1, HR_EDATA, "several parts");
    refused(END + 10, 2, HR_EDATA, "several parts");
    refused(END + 12, 48, HR_EDATA, "does not stand");
    refused(END + 16, ENTRY - 1, HR_EDATA, "does not stand");
    refused(END + 13, 1, HR_EUNSUPPORTED, "larger than is read");
    refused(ENTRY, 'X', HR_EDATA, "fewer entries");
    refused(ENTRY + 28, 2, HR_EDATA, "cut short");
    refused(ENTRY + 8, 1, HR_EUNSUPPORTED, "password");
    refused(ENTRY + 20, SIZE + 1, HR_EDATA, "no room"); /* its stored bytes */
    refused(ENTRY + 42, 5, HR_EDATA, "no room");
    struct text t;
    struct zip_entry x[4];
    zip(&t);
    check_eq(directory(&t, ALL + 1, x), HR_EDATA); /* the object is longer than that */
    for (zip(&t), t.n = 0; t.n < ALL; t.n++)
        check_eq(directory(&t, t.n, x), HR_EDATA);
}

static int head(const char *text, struct npy_head *h)
{
    uint8_t data[512] = "\x93NUMPY\1";
    size_t n = strlen(text);
    data[8] = (uint8_t)n;
    memcpy(data + 10, text, n);
    return npy_head_parse(data, n + 10, h, &e);
}

static void npy_headers_are_read_in_any_order_and_no_other_form(void)
{
    struct npy_head h;
    check_eq(head("{'shape': (2, 3), 'descr': '>f8', 'fortran_order': True, } \n", &h), 0);
    check(h.ndim == 2 && h.shape[0] == 2 && h.shape[1] == 3 && h.fortran);
    check_str(h.descr, ">f8");
    check_eq(head("{\"descr\":\"|u1\",\"fortran_order\":False,\"shape\":()}", &h), 0);
    check(h.ndim == 0 && !h.fortran);
    static const char *const bad[] = {
        "",
        "{}",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 3}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': 1, 'shape': (3,)}",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} x",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        check_eq(head(bad[i], &h), HR_EDATA);
    check_eq(npy_head_parse((const uint8_t *)"\x93NUMPY\4\0\0\0", 10, &h, &e), HR_EUNSUPPORTED);
    check_eq(npy_head_parse((const uint8_t *)"\x93NUMPY\2\0\xff\xff\xff\x7f", 12, &h, &e),
             HR_EDATA);
}

int main(void)
{
    RUN(a_member_is_found_and_decoded);
    RUN(directories_that_cannot_be_are_refused);
    RUN(npy_headers_are_read_in_any_order_and_no_other_form);
    return t_done();
}
