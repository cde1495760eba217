#include "enqueued.h"

#include "support.h"

#include <stdlib.h>
#include <string.h>

void enqueued_line(enqueued_move *m, int ranks, tsr_dtype dtype, int ndim, const int64_t *shape, tsr_placement from,
                   tsr_placement to)
{
    const int64_t mesh_shape[1] = {ranks};
    m->numbers.count = 0;
    m->gaps = m->halves = false;
    m->seed = 7 * (uint64_t)dtype + (uint64_t)ranks;
    m->src = (oracle_layout){.mesh = oracle_mesh_make(1, mesh_shape, 0), .ndim = ndim, .dtype = dtype};
    memcpy(m->src.shape, shape, (size_t)ndim * sizeof *shape);
    m->dst = m->src;
    m->src.placements[0] = from;
    m->dst.placements[0] = to;
    oracle_move_make(&m->src, &m->dst, &m->move);
}

void enqueued_name(const enqueued_move *m)
{
    char mesh[300], other[300], shape[100], from[400], to[400];
    test_case("mesh %s to %s, %s %s, %s -> %s%s%s", oracle_print_mesh(&m->src.mesh, mesh, sizeof mesh),
              oracle_print_mesh(&m->dst.mesh, other, sizeof other),
              oracle_print_shape(m->src.ndim, m->src.shape, shape, sizeof(shape)), oracle_dtype_name(m->src.dtype),
              oracle_print_placements(m->src.placements, m->src.mesh.ndim, from, sizeof from),
              oracle_print_placements(m->dst.placements, m->dst.mesh.ndim, to, sizeof to), m->gaps ? ", with gaps" : "",
              m->halves ? ", in halves" : "");
}

static tsr_status make_plan(enqueued *e, const tsr_plan_options *options)
{
    const oracle_layout *from = &e->move->src, *to = &e->move->dst;
    tsr_mesh *src_mesh = NULL, *dst_mesh = NULL;
    tsr_layout *src = NULL, *dst = NULL;
    tsr_status status = tsr_mesh_create(e->comm, from->mesh.ndim, from->mesh.shape, NULL, from->mesh.ranks, &src_mesh);
    if (status == TSR_OK)
        status = tsr_mesh_create(e->comm, to->mesh.ndim, to->mesh.shape, NULL, to->mesh.ranks, &dst_mesh);
    if (status == TSR_OK)
        status = tsr_layout_create(src_mesh, from->placements, from->ndim, from->shape, from->dtype, &src);
    if (status == TSR_OK)
        status = tsr_layout_create(dst_mesh, to->placements, to->ndim, to->shape, to->dtype, &dst);
    if (status == TSR_OK)
        status = tsr_plan_create(src, dst, options, &e->plan);
    if (status == TSR_OK)
        status = tsr_plan_prepare(e->plan, e->comm);
    tsr_layout_destroy(dst);
    tsr_layout_destroy(src);
    tsr_mesh_destroy(dst_mesh);
    tsr_mesh_destroy(src_mesh);
    return status;
}

/* The stride between two elements, in elements. */
static size_t step_of(const enqueued *e)
{
    return e->move->gaps ? 2 : 1;
}

static tsr_status make_tensor(const enqueued *e, const oracle_layout *layout, tsr_tensor *tensor, size_t *bytes)
{
    oracle_shard shard;
    oracle_shard_create(layout, tsr_comm_rank(e->comm), &shard);
    *tensor = tsr_tensor_contiguous(NULL, layout->dtype, shard.ndim, shard.shape);
    tensor->device = e->device;
    for (int dim = 0; dim < tensor->ndim; dim++)
        tensor->strides[dim] *= (int64_t)step_of(e);
    *bytes = (size_t)shard.count * oracle_bytes(layout->dtype) * step_of(e);
    oracle_shard_destroy(&shard);
    return e->gpu->alloc(e->self, e->device.index, *bytes, e->stream, &tensor->data);
}

/* A tensor's expected memory in a round, before the move or (`wanted`) after it; the contents of
 * gaps are not checked. */
static unsigned char *picture(const enqueued *e, int round, bool wanted, size_t bytes)
{
    const size_t step = step_of(e), element = oracle_bytes(e->move->src.dtype);
    unsigned char *const values = calloc(1, bytes + 16), *const memory = calloc(1, bytes + 16);
    oracle_fill(&e->move->move, e->move->seed + (uint64_t)round, wanted, tsr_comm_rank(e->comm), values);
    for (size_t i = 0; i < bytes / step / element; i++)
        memcpy(memory + i * step * element, values + i * element, element);
    free(values);
    return memory;
}

static tsr_status make_memory(enqueued *e)
{
    TSR_TRY(e->gpu->stream_create(e->self, e->device.index, &e->stream));
    TSR_TRY(make_tensor(e, &e->move->src, &e->src, &e->src_bytes));
    TSR_TRY(make_tensor(e, &e->move->dst, &e->dst, &e->dst_bytes));
    e->workspace_bytes = tsr_plan_workspace_bytes(e->plan);
    TSR_TRY(e->gpu->alloc(e->self, e->device.index, e->workspace_bytes, e->stream, &e->workspace));
    for (int i = 0; i < ENQUEUED_ROUNDS; i++) {
        e->given[i] = picture(e, i, false, e->src_bytes);
        e->wanted[i] = picture(e, i, true, e->dst_bytes);
        e->got[i] = calloc(1, e->dst_bytes + 16);
    }
    return TSR_OK;
}

tsr_status enqueued_start(enqueued *e, tsr_comm *comm, const enqueued_move *move, tsr_device device,
                          const tsr_plan_options *options)
{
    *e = (enqueued){.comm = comm, .move = move, .device = device};
    e->gpu = tsr_device_driver_table(device.driver, &e->self);
    TSR_TRY(make_plan(e, options));
    return make_memory(e);
}

void enqueued_finish(enqueued *e)
{
    if (e->stream)
        e->gpu->stream_synchronize(e->self, e->device.index, e->stream);
    if (e->src.data)
        e->gpu->free(e->self, e->device.index, e->src.data, e->src_bytes, NULL);
    if (e->dst.data)
        e->gpu->free(e->self, e->device.index, e->dst.data, e->dst_bytes, NULL);
    if (e->workspace)
        e->gpu->free(e->self, e->device.index, e->workspace, e->workspace_bytes, NULL);
    if (e->stream)
        e->gpu->stream_destroy(e->self, e->device.index, e->stream);
    for (int i = 0; i < ENQUEUED_ROUNDS; i++) {
        free(e->given[i]);
        free(e->wanted[i]);
        free(e->got[i]);
    }
    tsr_plan_destroy(e->plan);
}

tsr_status enqueued_put(const enqueued *e, int i)
{
    return e->gpu->copy(e->self, e->device.index, e->src.data, e->given[i], e->src_bytes, TSR_COPY_FROM_HOST,
                        e->stream);
}

tsr_status enqueued_execute(const enqueued *e)
{
    const bool gives = oracle_mesh_position(&e->move->src.mesh, tsr_comm_rank(e->comm)) >= 0;
    const bool gets = oracle_mesh_position(&e->move->dst.mesh, tsr_comm_rank(e->comm)) >= 0;
    const tsr_tensor *const src = gives ? &e->src : NULL, *const dst = gets ? &e->dst : NULL;
    void *const workspace = e->workspace_bytes > 0 ? e->workspace : NULL;
    if (!e->move->halves)
        return tsr_plan_execute(e->plan, e->comm, src, dst, workspace, e->workspace_bytes, e->stream);
    TSR_TRY(tsr_plan_start(e->plan, e->comm, src, dst, workspace, e->workspace_bytes, e->stream));
    return tsr_plan_finish(e->plan, e->comm);
}

tsr_status enqueued_get(const enqueued *e, int i)
{
    return e->gpu->copy(e->self, e->device.index, e->got[i], e->dst.data, e->dst_bytes, TSR_COPY_TO_HOST, e->stream);
}

tsr_status enqueued_compare(const enqueued *e, int i)
{
    const size_t element = oracle_bytes(e->move->src.dtype);
    for (size_t b = 0; b < e->dst_bytes; b++)
        if (b / element % step_of(e) == 0 && e->got[i][b] != e->wanted[i][b])
            return tsr_status_set(TSR_ERROR_INTERNAL, "rank %d, move %d: byte %zu of %zu is %02x, not %02x",
                                  tsr_comm_rank(e->comm), i, b, e->dst_bytes, e->got[i][b], e->wanted[i][b]);
    return TSR_OK;
}
