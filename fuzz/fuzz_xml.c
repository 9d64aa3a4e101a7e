/* Listings and errors of object stores: any bytes are read without reading past them; a document that is taken is whole, so
 * that each of its prefixes is not. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int element(void *arg, const char *path, const char *text, size_t n, struct hr_error *e)
{
    (void)e;
    if (!*path || strlen(text) > n || text[n])
        __builtin_trap();
    ++*(size_t *)arg;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct hr_error e = {0};
    size_t elements = 0;
    int rc = xml_read((const char *)data, n, "here", element, &elements, &e);
    if (rc < 0 ? !e.text[0] : !elements)
        __builtin_trap();
    size_t end = n;
    while (end && strchr(" \t\r\n", data[end - 1]) && data[end - 1])
        end--;
    if (rc == 0 && end && data[end - 1] == '>' &&
        xml_read((const char *)data, end - 1, "here", element, &elements, NULL) == 0)
        __builtin_trap();
    return 0;
}
