/* Boxes of a plan on their way through the device's table. */
#include <tessera/sys/status.h>

#include "redistribute/execute.h"

/* Handed to the device together, from the stack. */
#define BATCH 8

int64_t tsr_execution_offset(const tsr_execution *e, size_t box, const int64_t *strides, bool at_source)
{
    const int ndim = e->plan->src->ndim;
    const int64_t *position = tsr_plan_box(e->plan, box) + (at_source ? ndim : 2 * ndim);
    int64_t elements = 0;
    for (int dim = 0; dim < ndim; dim++)
        elements += position[dim] * strides[dim];
    return elements * (int64_t)e->plan->src->element_bytes;
}

/* Row-major strides of a box's own shape; returns its elements. */
static int64_t packed_strides(const tsr_plan *plan, size_t box, int64_t *strides)
{
    const int64_t *shape = tsr_plan_box(plan, box);
    int64_t elements = 1;
    for (int dim = plan->src->ndim - 1; dim >= 0; dim--) {
        strides[dim] = elements;
        elements *= shape[dim];
    }
    return elements;
}

static void set_shape(const tsr_execution *e, tsr_box_copy *copy, size_t box)
{
    const int64_t *shape = tsr_plan_box(e->plan, box);
    copy->element_bytes = e->plan->src->element_bytes;
    copy->ndim = e->plan->src->ndim;
    for (int dim = 0; dim < copy->ndim; dim++)
        copy->shape[dim] = shape[dim];
}

static void set_strides(int64_t *to, const int64_t *from, int ndim)
{
    for (int dim = 0; dim < ndim; dim++)
        to[dim] = from[dim];
}

static tsr_status flush(const tsr_execution *e, const tsr_box_copy *batch, size_t count)
{
    return count == 0 ? TSR_OK : e->ops.table->copy_boxes(e->ops.self, e->ops.index, batch, count, e->stream);
}

tsr_status tsr_execution_copy(const tsr_execution *e, size_t first_box, size_t box_count, tsr_place dst, tsr_place src)
{
    tsr_box_copy batch[BATCH];
    size_t filled = 0;
    for (size_t box = first_box; box < first_box + box_count; box++) {
        tsr_box_copy *copy = &batch[filled++];
        set_shape(e, copy, box);
        copy->src = src.base + tsr_execution_offset(e, box, src.strides, true);
        copy->dst = dst.base + tsr_execution_offset(e, box, dst.strides, false);
        set_strides(copy->src_strides, src.strides, copy->ndim);
        set_strides(copy->dst_strides, dst.strides, copy->ndim);
        if (filled == BATCH) {
            TSR_TRY(flush(e, batch, filled));
            filled = 0;
        }
    }
    return flush(e, batch, filled);
}

/* One side of each box is contiguous memory from `packed` on, the other a place. */
static tsr_status copy_packed(const tsr_execution *e, size_t first_box, size_t box_count, tsr_place place, char *packed, bool packs,
                              bool at_source)
{
    tsr_box_copy batch[BATCH];
    size_t filled = 0;
    for (size_t box = first_box; box < first_box + box_count; box++) {
        tsr_box_copy *copy = &batch[filled++];
        set_shape(e, copy, box);
        char *inside = place.base + tsr_execution_offset(e, box, place.strides, at_source);
        copy->src = packs ? inside : packed;
        copy->dst = packs ? packed : inside;
        const int64_t elements = packed_strides(e->plan, box, packs ? copy->dst_strides : copy->src_strides);
        set_strides(packs ? copy->src_strides : copy->dst_strides, place.strides, copy->ndim);
        packed += elements * (int64_t)copy->element_bytes;
        if (filled == BATCH) {
            TSR_TRY(flush(e, batch, filled));
            filled = 0;
        }
    }
    return flush(e, batch, filled);
}

tsr_status tsr_execution_pack(const tsr_execution *e, size_t first_box, size_t box_count, void *packed, tsr_place src, bool at_source)
{
    return copy_packed(e, first_box, box_count, src, packed, true, at_source);
}

tsr_status tsr_execution_unpack(const tsr_execution *e, size_t first_box, size_t box_count, tsr_place dst, void *packed)
{
    return copy_packed(e, first_box, box_count, dst, packed, false, false);
}

void *tsr_execution_contiguous(const tsr_execution *e, size_t first_box, size_t box_count, tsr_place place, bool at_source)
{
    if (box_count != 1)
        return NULL;
    const int64_t *shape = tsr_plan_box(e->plan, first_box);
    int64_t expected = 1;
    for (int dim = e->plan->src->ndim - 1; dim >= 0; dim--) {
        if (shape[dim] > 1 && place.strides[dim] != expected)
            return NULL;
        expected *= shape[dim];
    }
    return place.base + tsr_execution_offset(e, first_box, place.strides, at_source);
}

tsr_reduce_arrays tsr_execution_arrays(const tsr_execution *e)
{
    const size_t terms = (size_t)e->plan->problem.terms, owners = e->plan->owner_count;
    tsr_reduce_arrays arrays;
    char *at = e->group->scratch;
    arrays.src_strides = (int64_t(*)[TSR_MAX_DIMS])(void *)at;
    at += terms * sizeof *arrays.src_strides;
    arrays.dst_strides = (int64_t(*)[TSR_MAX_DIMS])(void *)at;
    at += owners * sizeof *arrays.dst_strides;
    arrays.src = (const void **)(void *)at;
    at += terms * sizeof *arrays.src;
    arrays.dst = (void **)(void *)at;
    at += owners * sizeof *arrays.dst;
    arrays.messages = (tsr_message *)(void *)at;
    return arrays;
}

tsr_box_reduce tsr_execution_reduce(const tsr_execution *e, const tsr_reduce_arrays *arrays, int dst_count)
{
    return (tsr_box_reduce){
        .dtype = e->plan->src->dtype,
        .op = e->plan->problem.op,
        .divisor = e->plan->problem.divisor,
        .ndim = e->plan->src->ndim,
        .src_count = (int)e->plan->problem.terms,
        .dst_count = dst_count,
        .src = arrays->src,
        .src_strides = (const int64_t(*)[TSR_MAX_DIMS])arrays->src_strides,
        .dst = arrays->dst,
        .dst_strides = (const int64_t(*)[TSR_MAX_DIMS])arrays->dst_strides,
    };
}

void tsr_execution_shape(const tsr_execution *e, tsr_box_reduce *reduce, size_t box)
{
    const int64_t *shape = tsr_plan_box(e->plan, box);
    for (int dim = 0; dim < reduce->ndim; dim++)
        reduce->shape[dim] = shape[dim];
}
