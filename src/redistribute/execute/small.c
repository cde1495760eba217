#include "redistribute/execute/small.h"

#include "redistribute/schedule/plan_text.h"

#include <tessera/sys/status.h>

#include <string.h>

/* Strides of operands of one dim without gaps, one for each term. */
static const int64_t contiguous[TSR_SMALL_TERMS][TSR_MAX_DIMS] = {{1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}};

static bool tensor_fits(const tsr_plain *expected, tsr_dtype dtype, const tsr_tensor *t, tsr_stream stream)
{
    if (!t || !t->data || t->dtype != dtype || t->ndim != expected->ndim || t->device.driver ||
        !tsr_host_is_meant(t->device, stream))
        return false;
    int64_t differs = 0;
    for (int dim = 0; dim < expected->ndim; dim++)
        differs |= (t->shape[dim] ^ expected->shape[dim]) | (t->strides[dim] ^ expected->strides[dim]);
    return differs == 0;
}

/* Small moves do not use the workspace, but tsr_plan_execute() promises to check it. */
static bool has_room(const tsr_plan *plan, const void *workspace, size_t bytes)
{
    return plan->workspace_bytes == 0 || (workspace && bytes >= plan->workspace_bytes);
}

bool tsr_small_takes(const tsr_plan *plan, const tsr_tensor *src, const tsr_tensor *dst, const void *workspace,
                     size_t bytes, tsr_stream stream)
{
    const tsr_small *const small = &plan->small;
    if (!has_room(plan, workspace, bytes) || !tensor_fits(&small->src, small->dtype, src, stream) ||
        !tensor_fits(&small->dst, small->dtype, dst, stream))
        return false;
    const uintptr_t from = (uintptr_t)src->data, to = (uintptr_t)dst->data;
    return from >= to + small->dst.bytes || to >= from + small->src.bytes;
}

/* Where this rank reads the source of `rank`. */
static const char *source_of(const tsr_plan *plan, const tsr_group *group, const tsr_tensor *src, int64_t rank)
{
    if (rank == plan->options.rank)
        return src->data;
    return tsr_call_buffer_of(group->comm, tsr_group_position(group, rank));
}

static inline __attribute__((always_inline)) void copy_rows_of(size_t bytes, const tsr_small_copy *copy, char *dst,
                                                               const char *src)
{
    for (uint32_t row = 0; row < copy->rows; row++)
        memcpy(dst + copy->to + row * copy->to_step, src + copy->from + row * copy->from_step, bytes);
}

/* Many rows of a common length: with a constant, memcpy() is moves of registers, not a call. Apart,
 * so that it takes no registers from the moves of a few rows. */
static __attribute__((noinline)) bool copy_many_rows(const tsr_small_copy *copy, char *dst, const char *src)
{
    switch (copy->bytes) {
    case 16:
        copy_rows_of(16, copy, dst, src);
        return true;
    case 32:
        copy_rows_of(32, copy, dst, src);
        return true;
    case 64:
        copy_rows_of(64, copy, dst, src);
        return true;
    default:
        return false;
    }
}

/* From this many rows on, calls of memcpy() cost more than finding a loop without them. */
#define MANY_ROWS 4

static void copy_rows(const tsr_small_copy *copy, char *dst, const char *src)
{
    if (copy->rows < MANY_ROWS || !copy_many_rows(copy, dst, src))
        copy_rows_of(copy->bytes, copy, dst, src);
}

static tsr_status reduce_elements(const tsr_plan *plan, const tsr_group *group, const tsr_tensor *src,
                                  const tsr_tensor *dst, const tsr_small_reduction *r)
{
    const tsr_item *const item = &plan->items[0];
    const void *from[TSR_SMALL_TERMS];
    void *to = (char *)dst->data + r->to;
    for (int64_t term = 0; term < item->problem.terms; term++) {
        const bool own = r->contributors[term] == plan->options.rank;
        from[term] = source_of(plan, group, src, r->contributors[term]) + (own ? r->own : r->shown);
    }
    const tsr_box_reduce box = {
        .dtype = plan->small.dtype,
        .op = item->problem.op,
        .divisor = item->problem.divisor,
        .ndim = 1,
        .shape = {r->elements},
        .src_count = (int)item->problem.terms,
        .dst_count = 1,
        .src = from,
        .src_strides = contiguous,
        .dst = &to,
        .dst_strides = contiguous,
    };
    return plan->host.table->reduce(plan->host.self, plan->host.index, &box, NULL);
}

/* Copies this rank's source to where peers read it, and meets the peers; their copies are then
 * there too. */
static tsr_status show_source(const tsr_plan *plan, const tsr_group *group, const tsr_tensor *src)
{
    void *const shown = tsr_call_buffer(group->comm);
    if (shown)
        memcpy(shown, src->data, plan->small.src.bytes);
    return tsr_call_begin(group->comm, &plan->small.call, tsr_plan_describe_call, plan);
}

tsr_status tsr_small_run(const tsr_plan *plan, const tsr_group *group, const tsr_tensor *src, const tsr_tensor *dst)
{
    const tsr_small *const small = &plan->small;
    if (!plan->local)
        TSR_TRY(show_source(plan, group, src));
    for (size_t i = 0; i < small->copy_count; i++)
        copy_rows(&small->copies[i], dst->data, source_of(plan, group, src, small->copies[i].peer));
    for (size_t i = 0; i < small->reduction_count; i++)
        TSR_TRY(reduce_elements(plan, group, src, dst, &small->reductions[i]));
    return TSR_OK;
}
