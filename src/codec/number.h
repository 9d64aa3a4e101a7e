/* Numbers as they lie in chunks: small floats, decimals rounded once, and conversion between types block by block.
 *
 * Filters (delta, fixedscaleoffset, astype, cast_value, …) work on blocks of a few hundred items in double or int64,
 * which hold every stored value exactly as long as the way is chosen by the source: number_is_float decides. */
#ifndef CODEC_NUMBER_H
#define CODEC_NUMBER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "headrace.h"

#define NUMBER_BLOCK 256

/* IEEE-like binary formats of up to 16 bits; round half to even, overflow to infinity. */
uint16_t f16_from_f64(double v);
uint16_t bf16_from_f64(double v);
double f64_from_f16(uint16_t bits);
double f64_from_bf16(uint16_t bits);

/* One of the registered 1-byte floats (float8_e4m3fn, float6_e2m3fn, …): value of a code, and the code nearest to a
 * value (ties to the even code, beyond the range the nearest end). False if `name` is not one of them. */
bool minifloat_decode(const char *name, uint8_t code, double *v);
bool minifloat_encode(const char *name, double v, uint8_t *code);

/* The decimal token text[0..n) (n < 4096) as the double nearest to it (*nearest), and as a double from which rounding to
 * any narrower format equals rounding the decimal itself (*odd). False if it is not a number. */
bool number_decimal(const char *text, size_t n, double *nearest, double *odd);

/* bool, integers, floats, datetimes (as int64): the types the functions below know. */
bool number_known(enum hr_dtype t);
bool number_is_float(enum hr_dtype t);
bool number_is_unsigned(enum hr_dtype t); /* bool and uint */
bool number_limits(enum hr_dtype t, int64_t *min,
                   uint64_t *max); /* of integers and bool; false for floats */

/* n ≤ NUMBER_BLOCK items at `src` (any alignment), byte-swapped when `swap`. load_i64 only from integers; uint64 keep
 * their bits. */
void number_load_f64(enum hr_dtype t, bool swap, const void *src, size_t n, double *out);
void number_load_i64(enum hr_dtype t, bool swap, const void *src, size_t n, int64_t *out);

/* Into items at `dst`. From double: floats round half to even; integers truncate and, out of range, wrap through int64
 * as numpy's astype does on x86-64. From int64 (`is_unsigned`: uint64 bits): integers wrap, floats round once. */
void number_store_f64(enum hr_dtype t, bool swap, const double *v, size_t n, void *dst);
void number_store_i64(enum hr_dtype t, bool swap, bool is_unsigned, const int64_t *v, size_t n,
                      void *dst);

#endif
