#include "place/local.h"

#include <tessera/sys/device.h>

#include <stdlib.h>
#include <string.h>

static tsr_status describe(const place *p, tsr_comm *comm, const tsr_layout *layout, tsr_tensor *out)
{
    int64_t coordinate[TSR_MAX_DIMS], shape[TSR_MAX_DIMS] = {0};
    int inside;
    TSR_TRY(tsr_mesh_coordinate(tsr_layout_mesh(layout), coordinate, &inside));
    if (inside)
        TSR_TRY(tsr_layout_local(layout, coordinate, shape, NULL));
    *out = tsr_tensor_contiguous(NULL, tsr_layout_dtype(layout), inside ? tsr_layout_ndim(layout) : 1, shape);
    out->device = place_device(p, tsr_comm_rank(comm));
    return TSR_OK;
}

tsr_status local_create(const place *p, tsr_comm *comm, const tsr_layout *layout, local *out)
{
    local l = {.place = p, .comm = comm};
    int64_t count;
    TSR_TRY(describe(p, comm, layout, &l.tensor));
    TSR_TRY(tsr_tensor_count(&l.tensor, &count));
    l.bytes = (size_t)count * tsr_dtype_bytes(l.tensor.dtype);
    TSR_TRY(place_allocate(p, comm, l.bytes, &l.tensor.data));
    *out = l;
    return TSR_OK;
}

void local_free(local *l)
{
    if (l->place)
        place_release(l->place, l->comm, l->tensor.data, l->bytes);
    *l = (local){.place = NULL};
}

tsr_status local_stage(const local *l, void **out)
{
    *out = l->tensor.data;
    if (!place_enqueues(l->place))
        return TSR_OK;
    if (posix_memalign(out, 64, l->bytes > 0 ? l->bytes : 1) != 0)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for %zu bytes on the host", l->bytes);
    return TSR_OK;
}

void local_unstage(const local *l, void *staged)
{
    if (place_enqueues(l->place))
        free(staged);
}

tsr_status local_push(const local *l, const void *staged)
{
    return place_enqueues(l->place) ? place_upload(l->place, tsr_comm_rank(l->comm), l->tensor.data, staged, l->bytes)
                                    : TSR_OK;
}

tsr_status local_pull(const local *l, void *staged)
{
    return place_enqueues(l->place) ? place_download(l->place, tsr_comm_rank(l->comm), staged, l->tensor.data, l->bytes)
                                    : TSR_OK;
}

tsr_status local_set(const local *l, unsigned char byte)
{
    void *staged;
    if (l->bytes == 0)
        return TSR_OK;
    TSR_TRY(local_stage(l, &staged));
    memset(staged, byte, l->bytes);
    const tsr_status status = local_push(l, staged);
    local_unstage(l, staged);
    return status;
}

/* Copies a host tensor to contiguous host memory. */
static tsr_status pack(const tsr_tensor *host, void *staged)
{
    const tsr_tensor packed = tsr_tensor_contiguous(staged, host->dtype, host->ndim, host->shape);
    tsr_box_copy box = {
        .dst = staged, .src = host->data, .element_bytes = tsr_dtype_bytes(host->dtype), .ndim = host->ndim};
    void *self;
    memcpy(box.shape, host->shape, sizeof box.shape);
    memcpy(box.dst_strides, packed.strides, sizeof box.dst_strides);
    memcpy(box.src_strides, host->strides, sizeof box.src_strides);
    return tsr_device_driver_table(NULL, &self)->copy_boxes(self, 0, &box, 1, NULL);
}

tsr_status local_write(const local *l, const tsr_tensor *host)
{
    void *staged;
    if (l->bytes == 0)
        return TSR_OK;
    TSR_TRY(local_stage(l, &staged));
    tsr_status status = pack(host, staged);
    if (status == TSR_OK)
        status = local_push(l, staged);
    local_unstage(l, staged);
    return status;
}
