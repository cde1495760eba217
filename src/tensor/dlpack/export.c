#include "tensor/dlpack/dtypes.h"
#include "tensor/dlpack/memory.h"

#include <tessera/dlpack.h>
#include <tessera/sys/device.h>
#include <tessera/sys/status.h>

#include <string.h>

/* A managed tensor, with the dims that it points to. */
typedef struct lent {
    union {
        struct DLManagedTensor plain;
        struct DLManagedTensorVersioned versioned;
    } managed;
    int64_t shape[TSR_MAX_DIMS], strides[TSR_MAX_DIMS];
    tsr_context *context; /* whose memory this is; NULL: the C library's */
    void (*release)(void *user);
    void *user;
} lent;

static void drop(lent *l)
{
    tsr_dl_release(l->context, l);
}

static void end(lent *l)
{
    if (l->release)
        l->release(l->user);
    drop(l);
}

static void end_plain(struct DLManagedTensor *self)
{
    end(self->manager_ctx);
}

static void end_versioned(struct DLManagedTensorVersioned *self)
{
    end(self->manager_ctx);
}

static tsr_status write_device(tsr_device device, tsr_dl_tensor *out)
{
    void *self;
    if (!device.driver) {
        out->device_type = DL_CPU;
        out->device_id = 0;
        return TSR_OK;
    }
    const tsr_device_table *const table = tsr_device_driver_table(device.driver, &self);
    if (strcmp(table->name, "cuda") != 0)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              "DLPack: a tensor on device %s: the host and a driver called cuda are known",
                              table->name);
    out->device_type = DL_CUDA;
    out->device_id = device.index;
    return TSR_OK;
}

static tsr_status write_tensor(const tsr_tensor *tensor, lent *l, tsr_dl_tensor *out)
{
    TSR_TRY(write_device(tensor->device, out));
    tsr_dl_dtype_write(tensor->dtype, out);
    memcpy(l->shape, tensor->shape, sizeof l->shape);
    memcpy(l->strides, tensor->strides, sizeof l->strides);
    out->data = tensor->data;
    out->ndim = tensor->ndim;
    out->shape = l->shape;
    out->strides = l->strides;
    out->byte_offset = 0;
    return TSR_OK;
}

/* A managed tensor in memory of the context, which it holds. Its fields are not written yet. */
static tsr_status make(const char *call, tsr_context *context, const tsr_tensor *tensor, const void *out, lent **made)
{
    int64_t count;
    if (!tensor || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", call, tensor ? "out" : "tensor");
    TSR_TRY(tsr_tensor_count(tensor, &count));
    TSR_TRY(tsr_dl_allocate(context, sizeof **made, (void **)made));
    (*made)->context = context;
    return TSR_OK;
}

/* What the deleter will do. */
static void hand_over(lent *l, void (*release)(void *user), void *user)
{
    l->release = release;
    l->user = user;
}

tsr_status tsr_tensor_to_dlpack(tsr_context *context, const tsr_tensor *tensor, void (*release)(void *user), void *user,
                                struct DLManagedTensor **out)
{
    lent *l;
    TSR_TRY(make("tsr_tensor_to_dlpack", context, tensor, out, &l));
    hand_over(l, release, user);
    struct DLManagedTensor *const managed = &l->managed.plain;
    managed->manager_ctx = l;
    managed->deleter = end_plain;
    const tsr_status status = write_tensor(tensor, l, &managed->tensor);
    if (status == TSR_OK)
        *out = managed;
    else
        drop(l);
    return status;
}

tsr_status tsr_tensor_to_dlpack_versioned(tsr_context *context, const tsr_tensor *tensor, int read_only,
                                          void (*release)(void *user), void *user,
                                          struct DLManagedTensorVersioned **out)
{
    lent *l;
    TSR_TRY(make("tsr_tensor_to_dlpack_versioned", context, tensor, out, &l));
    hand_over(l, release, user);
    struct DLManagedTensorVersioned *const managed = &l->managed.versioned;
    managed->version = (tsr_dl_version){DL_MAJOR, 0};
    managed->manager_ctx = l;
    managed->deleter = end_versioned;
    managed->flags = read_only ? DL_READ_ONLY : 0;
    const tsr_status status = write_tensor(tensor, l, &managed->tensor);
    if (status == TSR_OK)
        *out = managed;
    else
        drop(l);
    return status;
}

static void release_dtensor(void *user)
{
    tsr_dtensor_destroy(user);
}

tsr_status tsr_dtensor_to_dlpack(tsr_dtensor *x, struct DLManagedTensor **out)
{
    if (!x)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_dtensor_to_dlpack: x is NULL");
    const tsr_tensor local = tsr_dtensor_to_local(x);
    tsr_context *const context = tsr_mesh_context(tsr_layout_mesh(tsr_dtensor_layout(x)));
    TSR_TRY(tsr_tensor_to_dlpack(context, &local, release_dtensor, x, out));
    (void)tsr_dtensor_retain(x);
    return TSR_OK;
}

tsr_status tsr_dtensor_to_dlpack_versioned(tsr_dtensor *x, int read_only, struct DLManagedTensorVersioned **out)
{
    if (!x)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_dtensor_to_dlpack_versioned: x is NULL");
    const tsr_tensor local = tsr_dtensor_to_local(x);
    tsr_context *const context = tsr_mesh_context(tsr_layout_mesh(tsr_dtensor_layout(x)));
    TSR_TRY(tsr_tensor_to_dlpack_versioned(context, &local, read_only, release_dtensor, x, out));
    (void)tsr_dtensor_retain(x);
    return TSR_OK;
}
