/* The conversion kernels for any processor of the architecture the library is built for. */
#define KERNEL(name) name##_base
#define LEVEL        "baseline"
#include "batch/convert_kernels.h"
