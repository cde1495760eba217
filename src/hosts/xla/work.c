#include "work.h"

#include <tessera/sys/comm.h>
#include <tessera/sys/device.h>
#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static tsr_status allocate_parts(tsr_xla_work *work)
{
    const size_t count = (size_t)(work->operands + work->results);
    void *parts, *tensors;
    TSR_TRY(tsr_allocate(work->context, count * sizeof(tsr_xla_part), &parts));
    work->parts = memset(parts, 0, count * sizeof(tsr_xla_part));
    TSR_TRY(tsr_allocate(work->context, count * sizeof(tsr_tensor), &tensors));
    work->tensors = memset(tensors, 0, count * sizeof(tsr_tensor));
    return TSR_OK;
}

/* XLA's names of the dtypes that Tessera does not have. */
static const char *const foreign_names[] = {
    [XLA_FFI_DataType_TOKEN] = "a token",
    [XLA_FFI_DataType_S1] = "s1",
    [XLA_FFI_DataType_S2] = "s2",
    [XLA_FFI_DataType_S4] = "s4",
    [XLA_FFI_DataType_U1] = "u1",
    [XLA_FFI_DataType_U2] = "u2",
    [XLA_FFI_DataType_U4] = "u4",
    [XLA_FFI_DataType_F4E2M1FN] = "f4e2m1fn",
    [XLA_FFI_DataType_F8E3M4] = "f8e3m4",
    [XLA_FFI_DataType_F8E4M3] = "f8e4m3",
    [XLA_FFI_DataType_F8E4M3B11FNUZ] = "f8e4m3b11fnuz",
    [XLA_FFI_DataType_F8E4M3FNUZ] = "f8e4m3fnuz",
    [XLA_FFI_DataType_F8E5M2FNUZ] = "f8e5m2fnuz",
    [XLA_FFI_DataType_F8E8M0FNU] = "f8e8m0fnu",
};

static const char *foreign_name(XLA_FFI_DataType type)
{
    const size_t names = sizeof foreign_names / sizeof foreign_names[0];
    return (size_t)type < names && foreign_names[type] ? foreign_names[type] : "of a dtype newer than this library";
}

/* Refuses dtypes that Tessera does not have. */
static tsr_status check_dtypes(const tsr_xla_work *work, const XLA_FFI_CallFrame *frame)
{
    for (int64_t at = 0; at < work->operands + work->results; at++) {
        const XLA_FFI_Buffer *const buffer = tsr_xla_work_buffer(work, frame, at);
        const bool is_result = at >= work->operands;
        if (tsr_xla_dtype(buffer->dtype) == TSR_DTYPE_NONE)
            return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                                  "%s %lld is %s; calls take bool, integers of 8 to 64 bits, f16, f32, f64, bf16, "
                                  "f8e4m3fn, f8e5m2, c64 and c128",
                                  is_result ? "result" : "operand", (long long)(is_result ? at - work->operands : at),
                                  foreign_name(buffer->dtype));
    }
    return TSR_OK;
}

tsr_status tsr_xla_work_begin(tsr_context *context, tsr_comm *comm, const char *mesh, const tsr_xla_lane *lane,
                              const XLA_FFI_CallFrame *frame, tsr_xla_work **out)
{
    void *memory;
    TSR_TRY(tsr_allocate(context, sizeof(tsr_xla_work), &memory));
    tsr_xla_work *const work = memory;
    *work = (tsr_xla_work){.context = context,
                           .lane = *lane,
                           .comm = tsr_comm_retain(comm),
                           .operands = frame->args.size,
                           .results = frame->rets.size};
    tsr_status status = check_dtypes(work, frame);
    if (status == TSR_OK)
        status = allocate_parts(work);
    if (status == TSR_OK && mesh)
        status = tsr_mesh_parse(comm, NULL, mesh, &work->mesh);
    if (status == TSR_OK)
        *out = work;
    else
        tsr_xla_work_end(work);
    return status;
}

void tsr_xla_work_end(tsr_xla_work *work)
{
    tsr_plan_destroy(work->plan);
    tsr_linear_plan_destroy(work->forward);
    tsr_linear_backward_plan_destroy(work->backward);
    tsr_mesh_destroy(work->mesh);
    tsr_comm_release(work->comm);
    if (!tsr_xla_work_on_gpu(work))
        tsr_release(work->context, work->workspace);
    tsr_release(work->context, work->parts);
    tsr_release(work->context, work->tensors);
    tsr_release(work->context, work);
}

bool tsr_xla_work_on_gpu(const tsr_xla_work *work)
{
    return work->lane.device.driver != NULL;
}

const XLA_FFI_Buffer *tsr_xla_work_buffer(const tsr_xla_work *work, const XLA_FFI_CallFrame *frame, int64_t at)
{
    return at < work->operands ? frame->args.args[at] : frame->rets.rets[at - work->operands];
}

static int64_t count_of(const XLA_FFI_Buffer *buffer)
{
    int64_t count = 1;
    for (int64_t d = 0; d < buffer->rank; d++)
        count *= buffer->dims[d];
    return count;
}

/* "2x3", or "scalar". */
static const char *print_dims(const int64_t *dims, int64_t count, char *text, size_t capacity)
{
    size_t at = (size_t)snprintf(text, capacity, "%s", count ? "" : "scalar");
    for (int64_t d = 0; d < count && at < capacity; d++)
        at += (size_t)snprintf(text + at, capacity - at, "%s%lld", d ? "x" : "", (long long)dims[d]);
    return text;
}

/* The longest part in each dim. */
static tsr_status find_longest(const tsr_layout *layout, int64_t *longest)
{
    const tsr_mesh *const mesh = tsr_layout_mesh(layout);
    const int ndim = tsr_layout_ndim(layout);
    memset(longest, 0, TSR_MAX_DIMS * sizeof *longest);
    for (int64_t position = 0; position < tsr_mesh_count(mesh); position++) {
        int64_t coordinate[TSR_MAX_DIMS], shape[TSR_MAX_DIMS], rest = position;
        for (int d = tsr_mesh_ndim(mesh) - 1; d >= 0; d--) {
            coordinate[d] = rest % tsr_mesh_size(mesh, d);
            rest /= tsr_mesh_size(mesh, d);
        }
        TSR_TRY(tsr_layout_local(layout, coordinate, shape, NULL));
        for (int d = 0; d < ndim; d++)
            longest[d] = shape[d] > longest[d] ? shape[d] : longest[d];
    }
    return TSR_OK;
}

/* The rank's part by the layout, which is empty outside of the mesh; of a plan that was loaded the
 * mesh is abstract. */
static tsr_status find_local(const tsr_xla_work *work, const tsr_layout *layout, int64_t *shape, int *inside)
{
    int64_t coordinate[TSR_MAX_DIMS];
    TSR_TRY(tsr_mesh_coordinate_of(tsr_layout_mesh(layout), tsr_comm_rank(work->comm), coordinate, inside));
    if (*inside)
        return tsr_layout_local(layout, coordinate, shape, NULL);
    memset(shape, 0, (size_t)tsr_layout_ndim(layout) * sizeof *shape);
    return TSR_OK;
}

static tsr_status check_dtype(const XLA_FFI_Buffer *buffer, const tsr_layout *layout, const char *name)
{
    if (tsr_xla_dtype(buffer->dtype) == tsr_layout_dtype(layout))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s is %s, but its layout is %s", name,
                          tsr_dtype_name(tsr_xla_dtype(buffer->dtype)), tsr_dtype_name(tsr_layout_dtype(layout)));
}

static void set_part(tsr_xla_work *work, int64_t at, const XLA_FFI_Buffer *buffer, const tsr_tensor *tensor,
                     bool padded)
{
    const tsr_dtype dtype = tsr_xla_dtype(buffer->dtype);
    work->parts[at] = (tsr_xla_part){*tensor, (size_t)count_of(buffer) * tsr_dtype_bytes(dtype), padded};
    work->parts[at].tensor.device = work->lane.device;
    work->tensors[at] = work->parts[at].tensor;
}

tsr_status tsr_xla_work_box(tsr_xla_work *work, const XLA_FFI_CallFrame *frame, int64_t at, const tsr_layout *layout,
                            const char *name)
{
    const XLA_FFI_Buffer *const buffer = tsr_xla_work_buffer(work, frame, at);
    const int ndim = tsr_layout_ndim(layout);
    int64_t longest[TSR_MAX_DIMS], shape[TSR_MAX_DIMS];
    char has[128], wants[128], placements[256];
    int inside;
    TSR_TRY(check_dtype(buffer, layout, name));
    TSR_TRY(find_longest(layout, longest));
    if (buffer->rank != ndim || memcmp(buffer->dims, longest, (size_t)ndim * sizeof *longest) != 0) {
        tsr_layout_print(layout, placements, sizeof placements);
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s is %s on a device, but the longest part of its layout %s is %s",
                              name, print_dims(buffer->dims, buffer->rank, has, sizeof has), placements,
                              print_dims(longest, ndim, wants, sizeof wants));
    }
    TSR_TRY(find_local(work, layout, shape, &inside));
    tsr_tensor tensor = tsr_tensor_contiguous(NULL, tsr_layout_dtype(layout), ndim, longest);
    bool padded = false;
    for (int d = 0; d < ndim; d++) {
        padded = padded || shape[d] != longest[d];
        tensor.shape[d] = shape[d];
    }
    set_part(work, at, buffer, &tensor, padded);
    return TSR_OK;
}

tsr_status tsr_xla_work_view(tsr_xla_work *work, const XLA_FFI_CallFrame *frame, int64_t at, const tsr_layout *layout)
{
    const XLA_FFI_Buffer *const buffer = tsr_xla_work_buffer(work, frame, at);
    const char *const name = at < work->operands ? "the operand" : "the result";
    int64_t shape[TSR_MAX_DIMS], count;
    int inside;
    TSR_TRY(check_dtype(buffer, layout, name));
    TSR_TRY(find_local(work, layout, shape, &inside));
    if (!inside)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "the mesh does not have rank %d: a collective takes meshes whose ranks are 0, 1, .. "
                              "without a gap, on the devices that `devices` lists",
                              tsr_comm_rank(work->comm));
    const tsr_tensor tensor = tsr_tensor_contiguous(NULL, tsr_layout_dtype(layout), tsr_layout_ndim(layout), shape);
    TSR_TRY(tsr_tensor_count(&tensor, &count));
    if (count != count_of(buffer))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s has %lld elements on a device; the call makes it %lld", name,
                              (long long)count_of(buffer), (long long)count);
    set_part(work, at, buffer, &tensor, false);
    return TSR_OK;
}

tsr_status tsr_xla_work_allocate(tsr_xla_work *work, size_t bytes)
{
    work->bytes = bytes;
    return bytes && !tsr_xla_work_on_gpu(work) ? tsr_allocate_data(work->context, bytes, &work->workspace) : TSR_OK;
}

/* XLA gives large results memory that it has just got from the system, of which every page is a
 * fault and is cleared when it is first written: with small pages this takes longer than most
 * moves. Asks for large pages; where there are none nothing changes. */
static void widen_pages(void *data, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    const uintptr_t page = (uintptr_t)2 << 20, begin = ((uintptr_t)data + page - 1) & ~(page - 1),
                    end = ((uintptr_t)data + bytes) & ~(page - 1);
    if (bytes >= 2 * page && begin < end)
        (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
#else
    (void)data;
    (void)bytes;
#endif
}

/* Clears what a result's buffer has behind its part: in each dim all behind the part, of the dims
 * before it as much as the part has. */
static tsr_status clear_padding(const tsr_xla_work *work, const tsr_xla_part *part, const XLA_FFI_Buffer *buffer)
{
    void *self;
    const tsr_tensor *const tensor = &part->tensor;
    const tsr_device *const device = &work->lane.device;
    const tsr_device_table *const table = tsr_device_driver_table(device->driver, &self);
    tsr_box_fill box = {.element_bytes = tsr_dtype_bytes(tensor->dtype), .ndim = tensor->ndim};
    bool empty = part->bytes == 0;
    memcpy(box.dst_strides, tensor->strides, sizeof box.dst_strides);
    memcpy(box.shape, buffer->dims, (size_t)tensor->ndim * sizeof *box.shape);
    for (int d = 0; d < tensor->ndim && !empty; d++) {
        box.dst = (char *)buffer->data + tensor->shape[d] * tensor->strides[d] * (int64_t)box.element_bytes;
        box.shape[d] = buffer->dims[d] - tensor->shape[d];
        if (box.shape[d] > 0)
            TSR_TRY(table->fill(self, device->index, &box, work->lane.stream));
        box.shape[d] = tensor->shape[d];
        empty = tensor->shape[d] == 0;
    }
    return TSR_OK;
}

tsr_status tsr_xla_work_pad(const tsr_xla_work *work, const XLA_FFI_CallFrame *frame)
{
    for (int64_t at = work->operands; at < work->operands + work->results; at++)
        if (work->parts[at].padded)
            TSR_TRY(clear_padding(work, &work->parts[at], tsr_xla_work_buffer(work, frame, at)));
    return TSR_OK;
}

tsr_status tsr_xla_work_point(tsr_xla_work *work, const tsr_xla_lane *lane, const XLA_FFI_CallFrame *frame)
{
    work->lane = *lane;
    if (frame->args.size != work->operands || frame->rets.size != work->results)
        return tsr_status_set(TSR_ERROR_STATE, "the call has another number of operands or results than before");
    for (int64_t at = 0; at < work->operands + work->results; at++) {
        const XLA_FFI_Buffer *const buffer = tsr_xla_work_buffer(work, frame, at);
        const tsr_xla_part *const part = &work->parts[at];
        const tsr_dtype dtype = tsr_xla_dtype(buffer->dtype);
        if (dtype != part->tensor.dtype || (size_t)count_of(buffer) * tsr_dtype_bytes(dtype) != part->bytes)
            return tsr_status_set(TSR_ERROR_STATE, "a buffer of the call has another shape or dtype than before");
        work->tensors[at] = part->tensor;
        work->tensors[at].data = buffer->data;
        if (at >= work->operands && !tsr_xla_work_on_gpu(work))
            widen_pages(buffer->data, part->bytes);
    }
    return TSR_OK;
}
