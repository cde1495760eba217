#include <tessera/sys/status.h>

#include "redistribute/execute.h"

static tsr_place source_of(const tsr_execution *e, int64_t rank)
{
    if (rank == e->plan->rank)
        return (tsr_place){e->src.data, e->src.strides};
    const tsr_call *call = tsr_call_of(e->group->comm, tsr_group_position(e->group, rank));
    return (tsr_place){(char *)(uintptr_t)call->src, call->src_strides};
}

static tsr_place destination_of(const tsr_execution *e, int64_t rank)
{
    if (rank == e->plan->rank)
        return (tsr_place){e->result.data, e->result.strides};
    const tsr_call *call = tsr_call_of(e->group->comm, tsr_group_position(e->group, rank));
    return (tsr_place){call->dst, call->dst_strides};
}

static tsr_status pull(const tsr_execution *e)
{
    const tsr_transfers *moves = &e->plan->moves;
    const tsr_place dst = {e->dst.data, e->dst.strides};
    for (size_t i = 0; i < moves->count; i++) {
        const tsr_place src = source_of(e, moves->at[i].peer);
        const bool in_place = moves->at[i].peer == e->plan->rank && src.base == dst.base;
        if (!in_place)
            TSR_TRY(tsr_execution_copy(e, moves->at[i].first_box, moves->at[i].box_count, dst, src));
    }
    return TSR_OK;
}

static void point(const tsr_execution *e, const tsr_reduction *r, const tsr_reduce_arrays *arrays, size_t box)
{
    const int64_t *contributors = e->plan->contributors + r->first_term;
    for (int64_t term = 0; term < e->plan->problem.terms; term++) {
        const tsr_place place = source_of(e, contributors[term]);
        arrays->src[term] = place.base + tsr_execution_offset(e, box, place.strides, true);
        for (int dim = 0; dim < e->plan->src->ndim; dim++)
            arrays->src_strides[term][dim] = place.strides[dim];
    }
    for (size_t i = 0; i < e->plan->owner_count; i++) {
        const tsr_place place = destination_of(e, e->plan->owners[i]);
        arrays->dst[i] = place.base + tsr_execution_offset(e, box, place.strides, false);
        for (int dim = 0; dim < e->plan->src->ndim; dim++)
            arrays->dst_strides[i][dim] = place.strides[dim];
    }
}

/* Nobody else reads or writes what this rank is the home of, so results go straight to all owners, also where their source is the same
 * memory. */
static tsr_status reduce(const tsr_execution *e)
{
    const tsr_reduce_arrays arrays = tsr_execution_arrays(e);
    tsr_box_reduce reduce = tsr_execution_reduce(e, &arrays, (int)e->plan->owner_count);
    for (size_t i = 0; i < e->plan->reduction_count; i++) {
        const tsr_reduction *r = &e->plan->reductions[i];
        for (size_t box = r->first_box; box < r->first_box + r->box_count; box++) {
            point(e, r, &arrays, box);
            tsr_execution_shape(e, &reduce, box);
            TSR_TRY(e->ops.table->reduce(e->ops.self, e->ops.index, &reduce, e->stream));
        }
    }
    return TSR_OK;
}

/* Between two places of the shard's shape. */
static tsr_status copy_whole(const tsr_execution *e, const tsr_tensor *dst, const tsr_tensor *src)
{
    tsr_box_copy copy = {.dst = dst->data, .src = src->data, .element_bytes = e->plan->dst->element_bytes, .ndim = dst->ndim};
    for (int dim = 0; dim < copy.ndim; dim++) {
        copy.shape[dim] = dst->shape[dim];
        copy.dst_strides[dim] = dst->strides[dim];
        copy.src_strides[dim] = src->strides[dim];
    }
    return e->ops.table->copy_boxes(e->ops.self, e->ops.index, &copy, 1, e->stream);
}

/* What peers read of this rank's source: it, or a copy that stays when the call is over. */
static tsr_status publish(const tsr_execution *e, tsr_tensor *published)
{
    *published = e->src;
    void *buffer = e->eager && e->src.data ? tsr_call_buffer(e->group->comm) : NULL;
    if (!buffer)
        return TSR_OK;
    *published = tsr_tensor_contiguous(buffer, e->src.dtype, e->src.ndim, e->src.shape);
    return copy_whole(e, published, &e->src);
}

static tsr_status begin(const tsr_execution *e, tsr_status local)
{
    tsr_tensor src = {0};
    if (local == TSR_OK)
        local = publish(e, &src);
    tsr_call mine = {.fingerprint = e->plan->hash + e->eager, .status = local, .src = src.data, .dst = e->dst.data};
    for (int dim = 0; dim < TSR_MAX_DIMS; dim++) {
        mine.src_strides[dim] = src.strides[dim];
        mine.dst_strides[dim] = e->dst.strides[dim];
    }
    return tsr_call_begin(e->group->comm, &mine, tsr_plan_describe_call, e->plan);
}

tsr_status tsr_execute_direct(const tsr_execution *e, tsr_status local)
{
    if (!e->group)
        return local != TSR_OK ? local : pull(e);
    TSR_TRY(begin(e, local));
    tsr_status status = pull(e);
    if (status == TSR_OK && e->plan->reduction_count > 0)
        status = reduce(e);
    if (!e->eager)
        status = tsr_call_end(e->group->comm, status);
    /* From the workspace to where they belong, when nobody reads there any more. */
    const bool staged = e->plan->reduction_count > 0 && e->result.data != e->dst.data;
    return status == TSR_OK && staged ? copy_whole(e, &e->dst, &e->result) : status;
}
