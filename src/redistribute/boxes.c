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

int64_t tsr_execution_packed(const tsr_execution *e, size_t box, int64_t *strides)
{
    const int64_t *shape = tsr_plan_box(e->plan, box);
    int64_t elements = 1;
    for (int dim = e->plan->src->ndim - 1; dim >= 0; dim--) {
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

/* One side of a run of boxes: a place in which they stand at their positions, or memory in which they follow each other. */
typedef struct end {
    tsr_place place; /* strides NULL: packed, and base moves on */
    bool at_source;
} end;

/* Where a box begins on this side, with the strides that it has there. */
static char *locate(const tsr_execution *e, end *side, size_t box, int64_t *strides)
{
    if (side->place.strides) {
        for (int dim = 0; dim < e->plan->src->ndim; dim++)
            strides[dim] = side->place.strides[dim];
        return side->place.base + tsr_execution_offset(e, box, strides, side->at_source);
    }
    char *begin = side->place.base;
    side->place.base += tsr_execution_packed(e, box, strides) * (int64_t)e->plan->src->element_bytes;
    return begin;
}

static tsr_status flush(const tsr_execution *e, const tsr_box_copy *batch, size_t count)
{
    return count == 0 ? TSR_OK : e->ops.table->copy_boxes(e->ops.self, e->ops.index, batch, count, e->stream);
}

static tsr_status copy(const tsr_execution *e, size_t first_box, size_t box_count, end dst, end src)
{
    tsr_box_copy batch[BATCH];
    size_t filled = 0;
    for (size_t box = first_box; box < first_box + box_count; box++) {
        tsr_box_copy *next = &batch[filled++];
        set_shape(e, next, box);
        next->src = locate(e, &src, box, next->src_strides);
        next->dst = locate(e, &dst, box, next->dst_strides);
        if (filled == BATCH) {
            TSR_TRY(flush(e, batch, filled));
            filled = 0;
        }
    }
    return flush(e, batch, filled);
}

tsr_status tsr_execution_copy(const tsr_execution *e, size_t first_box, size_t box_count, tsr_place dst, tsr_place src)
{
    return copy(e, first_box, box_count, (end){dst, false}, (end){src, true});
}

tsr_status tsr_execution_pack(const tsr_execution *e, size_t first_box, size_t box_count, void *packed, tsr_place place, bool at_source)
{
    return copy(e, first_box, box_count, (end){{packed, NULL}, false}, (end){place, at_source});
}

tsr_status tsr_execution_unpack(const tsr_execution *e, size_t first_box, size_t box_count, tsr_place dst, void *packed)
{
    return copy(e, first_box, box_count, (end){dst, false}, (end){{packed, NULL}, false});
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
