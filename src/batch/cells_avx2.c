/* The kernels of single cells for x86-64 processors with AVX2, chosen at run time as in convert_avx2.c. */
#include "base/error.h"

#if defined(__x86_64__)
#include <string.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif

#define KERNEL(name) name##_avx2
#include "batch/cells_kernels.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
