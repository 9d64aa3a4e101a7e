/* A small strict XML reader: what object stores answer, errors and listings.
 *
 * Elements are reported when they end, with their path and text; attributes are checked and
 * skipped. A document that is cut, has text behind its end or tags that do not match is an error:
 * of a listing that ended early, keys would be lost silently. No document types, hence no
 * entities but the five of the language and characters by number; depth and size are capped.
 * Text must be UTF-8. */
#ifndef STORE_XML_H
#define STORE_XML_H
#include <stddef.h>

#include "base/error.h"

#define XML_MAX_DEPTH 32

/* `path`: the names from the root, "ListBucketResult/Contents/Key", without namespace prefixes.
 * `text`: the characters since the last tag, unescaped, ended by a NUL and without others.
 * 0, or a negative code that ends the reading. */
typedef int (*xml_element)(void *arg, const char *path, const char *text, size_t n,
                           struct hr_error *e);
/* `where` names the document in errors. HR_EFORMAT when it is broken. */
int xml_read(const char *document, size_t n, const char *where, xml_element element, void *arg,
             struct hr_error *e);

#endif
