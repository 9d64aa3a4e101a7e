/* The kernels of single cells for any processor of the architecture the library is built for. */
#define KERNEL(name) name##_base
#include "batch/cells_kernels.h"
