/**
 * The memory layout of DLPack 1.x, https://dmlc.github.io/dlpack: what its header dlpack.h
 * declares. Enumerations are numbers of 32 bits.
 */
#ifndef TSR_TENSOR_DLPACK_ABI_H
#define TSR_TENSOR_DLPACK_ABI_H

#include <stdint.h>

enum { DL_MAJOR = 1, DL_MINOR = 3 };

/** Kinds of devices. */
enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3, DL_CUDA_MANAGED = 13 };

/** Kinds of numbers. */
enum {
    DL_INT = 0,
    DL_UINT = 1,
    DL_FLOAT = 2,
    DL_BFLOAT = 4,
    DL_COMPLEX = 5,
    DL_BOOL = 6,
    DL_FLOAT8_E4M3FN = 10,
    DL_FLOAT8_E5M2 = 12
};

/** Flags of tensors with a version. */
enum { DL_READ_ONLY = 1, DL_IS_COPIED = 2 };

typedef struct tsr_dl_version {
    uint32_t major, minor;
} tsr_dl_version;

typedef struct tsr_dl_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides; /**< strides in elements; NULL: row-major */
    uint64_t byte_offset;
} tsr_dl_tensor;

struct DLManagedTensor {
    tsr_dl_tensor tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
};

struct DLManagedTensorVersioned {
    tsr_dl_version version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    tsr_dl_tensor tensor;
};

/** The table of the C exchange functions. Objects are the framework's own, in Python PyObjects. All
 * return 0, or -1 for a failure; only the allocator tells its sentence itself. */
struct DLPackExchangeAPI {
    tsr_dl_version version;
    const struct DLPackExchangeAPI *previous; /**< of an older major version; NULL: there is none */
    int (*allocate)(tsr_dl_tensor *prototype, struct DLManagedTensorVersioned **out, void *error_user,
                    void (*set_error)(void *error_user, const char *kind, const char *message));
    int (*managed_from_object)(void *object, struct DLManagedTensorVersioned **out);
    int (*managed_to_object)(struct DLManagedTensorVersioned *managed, void **out); /**< takes it over */
    int (*tensor_from_object)(void *object, tsr_dl_tensor *out); /**< lent until the caller returns */
    int (*current_stream)(int32_t device_type, int32_t device_id, void **out);
};

#endif
