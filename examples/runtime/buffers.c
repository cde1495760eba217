#include "buffers.h"

#include <tessera/mesh.h>
#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <stdlib.h>

/* The device of a rank: ranks take turns, so that it does not matter how many there are. */
static tsr_device device_of(const tsr_device_driver *driver, int rank)
{
    const char *reason;
    void *self;
    int count = 1;
    if (driver)
        tsr_device_driver_table(driver, &self)->count(self, &count, &reason);
    return (tsr_device){driver, count > 0 ? rank % count : 0};
}

tsr_status buffers_stream(const tsr_device_driver *driver, int rank, tsr_stream *out)
{
    void *self;
    const tsr_device_table *const table = driver ? tsr_device_driver_table(driver, &self) : NULL;
    *out = NULL;
    return table && table->stream_create ? table->stream_create(self, device_of(driver, rank).index, out) : TSR_OK;
}

void buffers_end_stream(const tsr_device_driver *driver, int rank, tsr_stream stream)
{
    void *self;
    if (stream)
        tsr_device_driver_table(driver, &self)->stream_destroy(self, device_of(driver, rank).index, stream);
}

tsr_status buffers_settle(const tsr_device_driver *driver, int rank, tsr_stream stream)
{
    void *self;
    if (!stream)
        return TSR_OK;
    return tsr_device_driver_table(driver, &self)->stream_synchronize(self, device_of(driver, rank).index, stream);
}

static tsr_status take(tsr_context *context, tsr_device device, size_t bytes, void **out)
{
    void *self;
    if (!device.driver)
        return tsr_allocate(context, bytes, out);
    return tsr_device_driver_table(device.driver, &self)->alloc(self, device.index, bytes, NULL, out);
}

static void give_back(tsr_context *context, tsr_device device, void *memory, size_t bytes)
{
    void *self;
    if (!device.driver)
        tsr_release(context, memory);
    else if (memory)
        tsr_device_driver_table(device.driver, &self)->free(self, device.index, memory, bytes, NULL);
}

/* A copy between the host and a tensor, done on return. */
static tsr_status copy(const tsr_tensor *t, void *dst, const void *src, size_t bytes, tsr_copy_kind kind,
                       tsr_stream stream)
{
    void *self;
    const tsr_device_table *const table = tsr_device_driver_table(t->device.driver, &self);
    TSR_TRY(table->copy(self, t->device.index, dst, src, bytes, kind, stream));
    return table->stream_synchronize ? table->stream_synchronize(self, t->device.index, stream) : TSR_OK;
}

/* A rank's part of a layout of f32 that cuts in chunks: its shape and where it begins. */
typedef struct part {
    int64_t shape[2], offset[2], columns;
    float factor; /* of the rank's terms where the layout is Partial, else 1 */
    float whole;  /* what the factors of all terms add up to */
} part;

static tsr_status find_part(const tsr_layout *layout, int rank, part *out)
{
    const tsr_mesh *const mesh = tsr_layout_mesh(layout);
    int64_t coordinate[TSR_MAX_DIMS];
    int inside;
    TSR_TRY(tsr_mesh_coordinate_of(mesh, rank, coordinate, &inside));
    *out = (part){.columns = tsr_layout_shape(layout)[1], .factor = 1, .whole = 1};
    for (int d = 0; d < tsr_mesh_ndim(mesh); d++)
        if (tsr_layout_placements(layout)[d].kind == TSR_PARTIAL) {
            const float terms = (float)tsr_mesh_size(mesh, d);
            out->factor *= (float)(coordinate[d] + 1);
            out->whole *= terms * (terms + 1) / 2;
        }
    return tsr_layout_local(layout, coordinate, out->shape, out->offset);
}

static float value_at(const part *p, int64_t i)
{
    const int64_t row = p->offset[0] + i / p->shape[1], column = p->offset[1] + i % p->shape[1];
    return (float)(row * p->columns + column) * p->factor;
}

static tsr_status fill_source(const buffers *b, const part *p, tsr_stream stream)
{
    float *const values = malloc(b->src_bytes + 1);
    if (!values)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for %zu bytes", b->src_bytes);
    for (int64_t i = 0; i < p->shape[0] * p->shape[1]; i++)
        values[i] = value_at(p, i);
    const tsr_status status = copy(&b->src, b->src.data, values, b->src_bytes, TSR_COPY_FROM_HOST, stream);
    free(values);
    return status;
}

tsr_status buffers_open(tsr_context *context, const tsr_device_driver *driver, const tsr_plan *plan, int rank,
                        tsr_stream stream, buffers *out)
{
    const tsr_device device = device_of(driver, rank);
    part from, to;
    TSR_TRY(find_part(tsr_plan_source(plan), rank, &from));
    TSR_TRY(find_part(tsr_plan_destination(plan), rank, &to));
    out->src = tsr_tensor_contiguous(NULL, TSR_F32, 2, from.shape);
    out->dst = tsr_tensor_contiguous(NULL, TSR_F32, 2, to.shape);
    out->src.device = out->dst.device = device;
    out->src_bytes = (size_t)(from.shape[0] * from.shape[1]) * sizeof(float);
    out->dst_bytes = (size_t)(to.shape[0] * to.shape[1]) * sizeof(float);
    out->workspace_bytes = tsr_plan_workspace_bytes(plan);
    TSR_TRY(take(context, device, out->src_bytes, &out->src.data));
    TSR_TRY(take(context, device, out->dst_bytes, &out->dst.data));
    TSR_TRY(take(context, device, out->workspace_bytes, &out->workspace));
    return fill_source(out, &from, stream);
}

void buffers_close(tsr_context *context, buffers *b)
{
    give_back(context, b->src.device, b->src.data, b->src_bytes);
    give_back(context, b->src.device, b->dst.data, b->dst_bytes);
    give_back(context, b->src.device, b->workspace, b->workspace_bytes);
}

tsr_status buffers_check(const buffers *b, const tsr_plan *plan, const char *name, int rank, tsr_stream stream)
{
    part from, to;
    TSR_TRY(find_part(tsr_plan_source(plan), rank, &from));
    TSR_TRY(find_part(tsr_plan_destination(plan), rank, &to));
    to.factor = from.whole;
    float *const values = malloc(b->dst_bytes + 1);
    if (!values)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for %zu bytes", b->dst_bytes);
    tsr_status status = copy(&b->dst, values, b->dst.data, b->dst_bytes, TSR_COPY_TO_HOST, stream);
    for (int64_t i = 0; i < to.shape[0] * to.shape[1] && status == TSR_OK; i++)
        if (values[i] != value_at(&to, i))
            status = tsr_status_set(TSR_ERROR_INTERNAL, "%s on rank %d: element %lld is %g, not %g", name, rank,
                                    (long long)i, (double)values[i], (double)value_at(&to, i));
    free(values);
    return status;
}
