#include "base/checked.h"
#include "tensor/dlpack/dtypes.h"

#include <tessera/dlpack.h>
#include <tessera/sys/status.h>

static tsr_status refuse(const char *call, const char *argument)
{
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", call, argument);
}

static tsr_status read_device(const tsr_dl_tensor *from, const tsr_device_driver *driver, tsr_device *out)
{
    if (from->device_type == DL_CPU || from->device_type == DL_CUDA_HOST) {
        *out = tsr_device_host();
        return TSR_OK;
    }
    if (from->device_type != DL_CUDA && from->device_type != DL_CUDA_MANAGED)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              "DLPack: a tensor on a device of type %d: the host (1, 3) and CUDA (2, 13) are known",
                              (int)from->device_type);
    if (!driver)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "DLPack: a tensor on device %d of CUDA, but no driver is given",
                              (int)from->device_id);
    *out = (tsr_device){driver, from->device_id};
    return TSR_OK;
}

static tsr_status read_dims(const tsr_dl_tensor *from, tsr_tensor *out, int64_t *count)
{
    if (from->ndim < 0 || from->ndim > TSR_MAX_DIMS)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "DLPack: a tensor of %d dims: from 0 to %d are possible",
                              (int)from->ndim, TSR_MAX_DIMS);
    if (from->ndim > 0 && !from->shape)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "DLPack: the shape of a tensor of %d dims is NULL", (int)from->ndim);
    const tsr_tensor whole = tsr_tensor_contiguous(NULL, out->dtype, from->ndim, from->shape);
    out->ndim = from->ndim;
    for (int d = 0; d < from->ndim; d++) {
        out->shape[d] = from->shape[d];
        out->strides[d] = from->strides && from->shape[d] > 1 ? from->strides[d] : whole.strides[d];
        if (from->strides && from->shape[d] > 1 && from->strides[d] < 0)
            return tsr_status_set(TSR_ERROR_UNSUPPORTED, "DLPack: stride %d is %lld: negative strides are not known", d,
                                  (long long)out->strides[d]);
    }
    return tsr_tensor_count(out, count);
}

/* Places of elements must be numbers of bytes. `*end` is where the last one ends, from the first. */
static tsr_status measure_reach(const tsr_tensor *tensor, int64_t *end)
{
    int64_t last = (int64_t)tsr_dtype_bytes(tensor->dtype), far;
    for (int d = 0; d < tensor->ndim; d++)
        if (!tsr_multiply(tensor->shape[d] - 1, tensor->strides[d], &far) ||
            !tsr_multiply(far, (int64_t)tsr_dtype_bytes(tensor->dtype), &far) || !tsr_add_sizes(last, far, &last))
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "DLPack: with stride %d, %lld, the tensor reaches beyond 2^63 - 1 bytes", d,
                                  (long long)tensor->strides[d]);
    *end = last;
    return TSR_OK;
}

/* Elements of a complex dtype are aligned to their parts. */
static tsr_status read_data(const tsr_dl_tensor *from, int64_t reach, tsr_tensor *out)
{
    const size_t bytes = tsr_dtype_bytes(out->dtype), unit = from->code == DL_COMPLEX ? bytes / 2 : bytes;
    const uintptr_t room = UINTPTR_MAX - (uintptr_t)from->data;
    if (from->data && ((uint64_t)reach > room || from->byte_offset > room - (uint64_t)reach))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "DLPack: a tensor at byte %llu of address %p reaches beyond the last address",
                              (unsigned long long)from->byte_offset, from->data);
    out->data = from->data ? (char *)from->data + from->byte_offset : NULL;
    if ((uintptr_t)out->data % unit == 0)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_UNSUPPORTED, "DLPack: %s elements at address %p are not aligned to %zu bytes",
                          tsr_dtype_name(out->dtype), out->data, unit);
}

static tsr_status read_tensor(const tsr_dl_tensor *from, const tsr_device_driver *driver, tsr_tensor *out)
{
    tsr_tensor read = {0};
    int64_t count, reach = 0;
    if (!tsr_dl_dtype_read(from, &read.dtype))
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "DLPack: no dtype is code %d of %d bits and %d lanes",
                              (int)from->code, (int)from->bits, (int)from->lanes);
    TSR_TRY(read_device(from, driver, &read.device));
    TSR_TRY(read_dims(from, &read, &count));
    if (count > 0)
        TSR_TRY(measure_reach(&read, &reach));
    if (count > 0 && !from->data)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "DLPack: the data of a tensor of %lld elements is NULL",
                              (long long)count);
    TSR_TRY(read_data(from, reach, &read));
    *out = read;
    return TSR_OK;
}

tsr_status tsr_tensor_from_dltensor(const void *dl_tensor, const tsr_device_driver *driver, tsr_tensor *out)
{
    if (!dl_tensor || !out)
        return refuse("tsr_tensor_from_dltensor", dl_tensor ? "out" : "dl_tensor");
    return read_tensor(dl_tensor, driver, out);
}

tsr_status tsr_tensor_from_dlpack(const struct DLManagedTensor *managed, const tsr_device_driver *driver,
                                  tsr_dlpack_view *out)
{
    tsr_dlpack_view view = {0};
    if (!managed || !out)
        return refuse("tsr_tensor_from_dlpack", managed ? "out" : "managed");
    TSR_TRY(read_tensor(&managed->tensor, driver, &view.tensor));
    *out = view;
    return TSR_OK;
}

static tsr_status check_version(const tsr_dl_version *version)
{
    if (version->major == DL_MAJOR)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_UNSUPPORTED, "DLPack: version %u.%u: versions from 1.0 are known",
                          (unsigned)version->major, (unsigned)version->minor);
}

tsr_status tsr_tensor_from_dlpack_versioned(const struct DLManagedTensorVersioned *managed,
                                            const tsr_device_driver *driver, tsr_dlpack_view *out)
{
    tsr_dlpack_view view = {0};
    if (!managed || !out)
        return refuse("tsr_tensor_from_dlpack_versioned", managed ? "out" : "managed");
    TSR_TRY(check_version(&managed->version));
    TSR_TRY(read_tensor(&managed->tensor, driver, &view.tensor));
    view.read_only = (managed->flags & DL_READ_ONLY) != 0;
    view.copied = (managed->flags & DL_IS_COPIED) != 0;
    *out = view;
    return TSR_OK;
}

void tsr_dlpack_release(struct DLManagedTensor *managed)
{
    if (managed && managed->deleter)
        managed->deleter(managed);
}

void tsr_dlpack_release_versioned(struct DLManagedTensorVersioned *managed)
{
    if (managed && managed->deleter)
        managed->deleter(managed);
}

tsr_status tsr_tensor_from_exchange(const void *exchange_api, void *object, const tsr_device_driver *driver,
                                    tsr_tensor *out)
{
    const char *const call = "tsr_tensor_from_exchange";
    const struct DLPackExchangeAPI *api = exchange_api;
    tsr_dl_tensor tensor;
    if (!api || !object || !out)
        return refuse(call, !api ? "exchange_api" : !object ? "object" : "out");
    /* Tables of other major versions are chained behind the newest one. */
    while (api->version.major != DL_MAJOR && api->previous)
        api = api->previous;
    TSR_TRY(check_version(&api->version));
    if (!api->tensor_from_object)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s: the table has no dltensor_from_py_object_no_sync", call);
    if (api->tensor_from_object(object, &tensor) != 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: the object's framework refuses it; Python's exception says why",
                              call);
    return read_tensor(&tensor, driver, out);
}
