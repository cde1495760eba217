/** The structs of DLPack 1.3, written from its documentation, apart from the library's. */
#ifndef TESTS_TENSOR_DL_STRUCTS_H
#define TESTS_TENSOR_DL_STRUCTS_H

#include <tessera/dlpack.h>

#include <stdint.h>

typedef struct dl_tensor {
    void *data;
    struct {
        int32_t type, id;
    } device;
    int32_t ndim;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape;
    int64_t *strides;
    uint64_t byte_offset;
} dl_tensor;

struct DLManagedTensor {
    dl_tensor tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
};

struct DLManagedTensorVersioned {
    struct {
        uint32_t major, minor;
    } version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    dl_tensor tensor;
};

/** The table of the C exchange functions. */
struct DLPackExchangeAPI {
    struct {
        uint32_t major, minor;
    } version;
    const struct DLPackExchangeAPI *prev_api;
    int (*managed_tensor_allocator)(dl_tensor *prototype, struct DLManagedTensorVersioned **out, void *error_ctx,
                                    void (*set_error)(void *error_ctx, const char *kind, const char *message));
    int (*managed_tensor_from_py_object_no_sync)(void *py_object, struct DLManagedTensorVersioned **out);
    int (*managed_tensor_to_py_object_no_sync)(struct DLManagedTensorVersioned *tensor, void **out_py_object);
    int (*dltensor_from_py_object_no_sync)(void *py_object, dl_tensor *out);
    int (*current_work_stream)(int32_t device_type, int32_t device_id, void **out);
};

#endif
