/* The conversion kernels for x86-64 processors with AVX2 and F16C (2013 on), chosen at run time:
 * the rest of the library stays baseline x86-64. The target is set by pragma so that one build
 * description serves every file of the room. */
#include "base/error.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <math.h>
#include <string.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,f16c")
#endif

#define LEVEL_F16C
#define KERNEL(name) name##_avx2
#define LEVEL        "avx2"
#include "batch/convert_kernels.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
