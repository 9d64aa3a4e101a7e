/* Standard base64 (RFC 4648 §4, padding required as Python's decoder does), for fill values and the numcodecs codec. */
#ifndef CODEC_BASE64_H
#define CODEC_BASE64_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that text[0..n) decodes to, or SIZE_MAX if it is not base64. `out` NULL: only count. */
size_t base64_decode(const char *text, size_t n, uint8_t *out);

#endif
