#include "tensor/dlpack/object.h"

#include "base/references.h"
#include "tensor/dlpack/memory.h"

#include <tessera/sys/status.h>

struct tsr_dlpack_object {
    tsr_references references;
    tsr_context *context; /* whose memory this is; NULL: the C library's */
    struct DLManagedTensorVersioned *managed;
    tsr_dl_tensor tensor; /* with the dims below */
    int64_t shape[TSR_MAX_DIMS], strides[TSR_MAX_DIMS];
};

/* A managed tensor that is lent of an object. */
typedef struct loan {
    struct DLManagedTensorVersioned managed;
    tsr_dlpack_object *object;
} loan;

static tsr_status check_managed(const struct DLManagedTensorVersioned *managed)
{
    const tsr_dl_tensor *const tensor = &managed->tensor;
    if (managed->version.major != DL_MAJOR)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "DLPack: version %u.%u: versions from 1.0 are known",
                              (unsigned)managed->version.major, (unsigned)managed->version.minor);
    if (tensor->ndim < 0 || tensor->ndim > TSR_MAX_DIMS)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "DLPack: a tensor of %d dims: from 0 to %d are possible",
                              (int)tensor->ndim, TSR_MAX_DIMS);
    if (tensor->ndim > 0 && !tensor->shape)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "DLPack: the shape of a tensor of %d dims is NULL",
                              (int)tensor->ndim);
    return TSR_OK;
}

/* Missing strides are written out: since 1.2 consumers need not know what they mean. */
static void copy_dims(tsr_dlpack_object *object, const tsr_dl_tensor *from)
{
    const tsr_tensor whole = tsr_tensor_contiguous(NULL, TSR_U8, from->ndim, from->shape);
    object->tensor = *from;
    for (int d = 0; d < from->ndim; d++) {
        object->shape[d] = from->shape[d];
        object->strides[d] = from->strides ? from->strides[d] : whole.strides[d];
    }
    object->tensor.shape = object->shape;
    object->tensor.strides = object->strides;
}

tsr_status tsr_dlpack_object_create(tsr_context *context, struct DLManagedTensorVersioned *managed,
                                    tsr_dlpack_object **out)
{
    tsr_dlpack_object *object;
    if (!managed || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_dlpack_object_create: %s is NULL", managed ? "out" : "managed");
    TSR_TRY(check_managed(managed));
    TSR_TRY(tsr_dl_allocate(context, sizeof *object, (void **)&object));
    atomic_init(&object->references, 1);
    object->context = context;
    object->managed = managed;
    copy_dims(object, &managed->tensor);
    *out = object;
    return TSR_OK;
}

tsr_status tsr_dlpack_object_from_dtensor(tsr_dtensor *x, tsr_dlpack_object **out)
{
    struct DLManagedTensorVersioned *managed;
    if (!x || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_dlpack_object_from_dtensor: %s is NULL", x ? "out" : "x");
    TSR_TRY(tsr_dtensor_to_dlpack_versioned(x, 0, &managed));
    tsr_context *const context = tsr_mesh_context(tsr_layout_mesh(tsr_dtensor_layout(x)));
    const tsr_status status = tsr_dlpack_object_create(context, managed, out);
    if (status != TSR_OK)
        tsr_dlpack_release_versioned(managed);
    return status;
}

tsr_dlpack_object *tsr_dlpack_object_retain(tsr_dlpack_object *object)
{
    tsr_references_add(&object->references);
    return object;
}

void tsr_dlpack_object_destroy(tsr_dlpack_object *object)
{
    if (!object || !tsr_references_drop(&object->references))
        return;
    tsr_dlpack_release_versioned(object->managed);
    tsr_dl_release(object->context, object);
}

tsr_status tsr_dlpack_object_view(const tsr_dlpack_object *object, const tsr_device_driver *driver,
                                  tsr_dlpack_view *out)
{
    tsr_dlpack_view view = {.read_only = 0};
    if (!object || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_dlpack_object_view: %s is NULL", object ? "out" : "object");
    TSR_TRY(tsr_tensor_from_dltensor(&object->tensor, driver, &view.tensor));
    view.read_only = (object->managed->flags & DL_READ_ONLY) != 0;
    view.copied = (object->managed->flags & DL_IS_COPIED) != 0;
    *out = view;
    return TSR_OK;
}

const tsr_dl_tensor *tsr_dl_object_tensor(const tsr_dlpack_object *object)
{
    return &object->tensor;
}

static void end_loan(struct DLManagedTensorVersioned *self)
{
    loan *const l = self->manager_ctx;
    tsr_dlpack_object *const object = l->object;
    tsr_dl_release(object->context, l);
    tsr_dlpack_object_destroy(object);
}

tsr_status tsr_dl_object_lend(tsr_dlpack_object *object, struct DLManagedTensorVersioned **out)
{
    loan *l;
    TSR_TRY(tsr_dl_allocate(object->context, sizeof *l, (void **)&l));
    l->object = tsr_dlpack_object_retain(object);
    l->managed = (struct DLManagedTensorVersioned){.version = {DL_MAJOR, DL_MINOR}, .deleter = end_loan};
    l->managed.manager_ctx = l;
    /* Memory that is lent to many is no consumer's alone, though the object may hold a copy. */
    l->managed.flags = object->managed->flags & ~(uint64_t)DL_IS_COPIED;
    l->managed.tensor = object->tensor;
    *out = &l->managed;
    return TSR_OK;
}
