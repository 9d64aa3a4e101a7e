/* The DLPack ABI, as much of it as a CPU producer needs (dlpack.h 1.0, https://dmlc.github.io/dlpack: declared here
 * because the packaged header predates the versioned struct). */
#ifndef PYTHON_DLPACK_H
#define PYTHON_DLPACK_H
#include <stdint.h>

typedef struct {
    int32_t device_type; /* 1: CPU */
    int32_t device_id;
} DLDevice;
typedef struct {
    uint8_t code; /* 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool */
    uint8_t bits;
    uint16_t lanes;
} DLDataType;
typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides;
    uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *);
} DLManagedTensor;
typedef struct {
    uint32_t major, minor;
} DLPackVersion;
typedef struct DLManagedTensorVersioned {
    DLPackVersion version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *);
    uint64_t flags; /* bit 0 read-only, bit 1 copied */
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

#endif
