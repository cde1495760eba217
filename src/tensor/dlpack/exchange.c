/* The C exchange functions of DLPack 1.3, over tsr_dlpack_object. */
#include "tensor/dlpack/dtypes.h"
#include "tensor/dlpack/object.h"

#include <tessera/sys/status.h>

#include <stdlib.h>

static int refuse(const char *argument)
{
    (void)tsr_status_set(TSR_ERROR_ARGUMENT, "DLPack: %s is NULL", argument);
    return -1;
}

/* What is allocated: memory of the host, contiguous. */
static tsr_status read_prototype(const tsr_dl_tensor *prototype, tsr_tensor *out, size_t *bytes)
{
    tsr_dtype dtype;
    int64_t count;
    if (!prototype || (prototype->ndim > 0 && !prototype->shape))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "DLPack: %s is NULL",
                              prototype ? "the prototype's shape" : "prototype");
    if (prototype->device_type != DL_CPU)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              "DLPack: memory on a device of type %d: only the host's (1) is allocated here",
                              (int)prototype->device_type);
    if (!tsr_dl_dtype_read(prototype, &dtype))
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "DLPack: no dtype is code %d of %d bits and %d lanes",
                              (int)prototype->code, (int)prototype->bits, (int)prototype->lanes);
    if (prototype->ndim < 0 || prototype->ndim > TSR_MAX_DIMS)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "DLPack: a tensor of %d dims: from 0 to %d are possible",
                              (int)prototype->ndim, TSR_MAX_DIMS);
    *out = tsr_tensor_contiguous(NULL, dtype, prototype->ndim, prototype->shape);
    TSR_TRY(tsr_tensor_count(out, &count));
    *bytes = (size_t)count * tsr_dtype_bytes(dtype);
    return TSR_OK;
}

static tsr_status allocate_host(const tsr_dl_tensor *prototype, struct DLManagedTensorVersioned **out)
{
    enum { LINE = 64 };
    tsr_tensor tensor;
    size_t bytes = 0;
    TSR_TRY(read_prototype(prototype, &tensor, &bytes));
    /* Some memory even for an empty tensor: consumers may ask that data is not NULL. */
    tensor.data = bytes <= SIZE_MAX - 2 * LINE ? aligned_alloc(LINE, (bytes + LINE) / LINE * LINE) : NULL;
    if (!tensor.data)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for %zu bytes", bytes);
    const tsr_status status = tsr_tensor_to_dlpack_versioned(NULL, &tensor, 0, free, tensor.data, out);
    if (status != TSR_OK)
        free(tensor.data);
    return status;
}

/* Python's kind of an error. */
static const char *kind_of(tsr_status status)
{
    if (status == TSR_ERROR_MEMORY)
        return "MemoryError";
    return status == TSR_ERROR_ARGUMENT ? "ValueError" : "BufferError";
}

static int allocate(tsr_dl_tensor *prototype, struct DLManagedTensorVersioned **out, void *error_user,
                    void (*set_error)(void *error_user, const char *kind, const char *message))
{
    const tsr_status status =
        out ? allocate_host(prototype, out) : tsr_status_set(TSR_ERROR_ARGUMENT, "DLPack: out is NULL");
    if (status == TSR_OK)
        return 0;
    if (set_error)
        set_error(error_user, kind_of(status), tsr_status_message());
    return -1;
}

static int managed_from_object(void *object, struct DLManagedTensorVersioned **out)
{
    if (!object || !out)
        return refuse(object ? "out" : "object");
    return tsr_dl_object_lend(object, out) == TSR_OK ? 0 : -1;
}

static int managed_to_object(struct DLManagedTensorVersioned *managed, void **out)
{
    tsr_dlpack_object *object;
    if (!out)
        return refuse("out");
    if (tsr_dlpack_object_create(NULL, managed, &object) != TSR_OK)
        return -1;
    *out = object;
    return 0;
}

static int tensor_from_object(void *object, tsr_dl_tensor *out)
{
    if (!object || !out)
        return refuse(object ? "out" : "object");
    *out = *tsr_dl_object_tensor(object);
    return 0;
}

static int current_stream(int32_t device_type, int32_t device_id, void **out)
{
    (void)device_id;
    if (!out)
        return refuse("out");
    if (device_type != DL_CPU && device_type != DL_CUDA && device_type != DL_CUDA_HOST &&
        device_type != DL_CUDA_MANAGED) {
        (void)tsr_status_set(TSR_ERROR_UNSUPPORTED,
                             "DLPack: streams of a device of type %d: the host (1, 3) and CUDA (2, 13) are known",
                             (int)device_type);
        return -1;
    }
    *out = NULL;
    return 0;
}

const struct DLPackExchangeAPI *tsr_dlpack_exchange_api(void)
{
    static const struct DLPackExchangeAPI api = {
        .version = {DL_MAJOR, DL_MINOR},
        .allocate = allocate,
        .managed_from_object = managed_from_object,
        .managed_to_object = managed_to_object,
        .tensor_from_object = tensor_from_object,
        .current_stream = current_stream,
    };
    return &api;
}
