#include "redistribute/schedule/small.h"

#include "base/memory/memory.h"
#include "redistribute/schedule/item.h"
#include "redistribute/schedule/plan.h"
#include "redistribute/schedule/sizes.h"

#include <tessera/sys/status.h>

#include <string.h>

/* A box with more rows than this is copied by the device's kernels, which are faster at it: a row
 * costs a call. */
#define ROWS       64
#define SHORT_ROWS 32 /* the limit for rows of less than 16 bytes */

/* A box between two places, as rows. */
typedef struct rows {
    int64_t run, count, from_step, to_step; /* in elements; `count`: of rows */
} rows;

/* Merges dims from the innermost on. False if two dims of rows are left, or too many rows. */
static bool find_rows(const tsr_item *item, size_t box, const int64_t *from, const int64_t *to, rows *out)
{
    const int64_t *const shape = tsr_item_box(item, box);
    *out = (rows){1, 1, 0, 0};
    for (int dim = item->src->ndim - 1; dim >= 0; dim--) {
        const bool joins = out->count == 1 && from[dim] == out->run && to[dim] == out->run;
        const bool follows = from[dim] == out->count * out->from_step && to[dim] == out->count * out->to_step;
        if (shape[dim] == 1)
            continue;
        if (joins) {
            out->run *= shape[dim];
        } else if (out->count == 1) {
            out->count = shape[dim];
            out->from_step = from[dim];
            out->to_step = to[dim];
        } else if (follows) {
            out->count *= shape[dim];
        } else {
            return false;
        }
    }
    return out->count <= (out->run * (int64_t)item->src->element_bytes < 16 ? SHORT_ROWS : ROWS);
}

static uint32_t bytes_of(const tsr_item *item, int64_t elements)
{
    return (uint32_t)(elements * (int64_t)item->src->element_bytes);
}

/* A box's offset in bytes. */
static uint32_t begin_of(const tsr_item *item, size_t box, const int64_t *strides, bool at_source)
{
    return (uint32_t)tsr_item_offset(item, box, strides, at_source);
}

static bool add_copies(tsr_small *small, const tsr_item *item, const tsr_transfer *move)
{
    const int64_t *const from = move->peer == item->rank ? item->src_strides : item->shown_strides;
    for (size_t box = move->first_box; box < move->first_box + move->box_count; box++) {
        rows found;
        if (!find_rows(item, box, from, item->dst_strides, &found))
            return false;
        small->copies[small->copy_count++] = (tsr_small_copy){
            .peer = move->peer,
            .bytes = bytes_of(item, found.run),
            .rows = (uint32_t)found.count,
            .from = begin_of(item, box, from, true),
            .to = begin_of(item, box, item->dst_strides, false),
            .from_step = bytes_of(item, found.from_step),
            .to_step = bytes_of(item, found.to_step),
        };
    }
    return true;
}

static bool add_reductions(tsr_small *small, const tsr_item *item, const tsr_reduction *r)
{
    for (size_t box = r->first_box; box < r->first_box + r->box_count; box++) {
        rows own, shown;
        const bool dense = find_rows(item, box, item->src_strides, item->dst_strides, &own) &&
                           find_rows(item, box, item->shown_strides, item->dst_strides, &shown) && own.count == 1 &&
                           shown.count == 1;
        if (!dense)
            return false;
        small->reductions[small->reduction_count++] = (tsr_small_reduction){
            .contributors = item->contributors + r->first_term,
            .elements = own.run,
            .own = begin_of(item, box, item->src_strides, true),
            .shown = begin_of(item, box, item->shown_strides, true),
            .to = begin_of(item, box, item->dst_strides, false),
        };
    }
    return true;
}

static bool add_all(tsr_small *small, const tsr_item *item)
{
    bool found = true;
    for (size_t i = 0; i < item->moves.count && found; i++)
        found = add_copies(small, item, &item->moves.at[i]);
    for (size_t i = 0; i < item->reduction_count && found; i++)
        found = add_reductions(small, item, &item->reductions[i]);
    return found;
}

static tsr_plain plain_of(const tsr_item *item, int ndim, const int64_t *shape, const int64_t *strides)
{
    int64_t elements = 1;
    for (int dim = 0; dim < ndim; dim++)
        elements *= shape[dim];
    return (tsr_plain){ndim, shape, strides, bytes_of(item, elements)};
}

/* True if this rank's source lies as peers read it in the tsr_call_buffer(). */
static bool is_shown_as_it_lies(const tsr_item *item)
{
    for (int dim = 0; dim < item->src_ndim; dim++)
        if (item->src_shape[dim] > 1 && item->src_strides[dim] != item->shown_strides[dim])
            return false;
    return true;
}

static bool is_fit(const tsr_plan *plan)
{
    const tsr_item *const item = &plan->items[0];
    const bool meets = plan->eager && is_shown_as_it_lies(item);
    const bool reduces_alone = item->reduction_count == 0 || (item->owner_count == 1 && item->owners[0] == item->rank);
    return (meets || (plan->local && plan->count == 1)) && item->rank >= 0 && item->in_src && item->in_dst &&
           !plan->fills && reduces_alone && item->problem.terms <= TSR_SMALL_TERMS && tsr_item_is_small(item);
}

tsr_status tsr_small_build(tsr_plan *plan)
{
    tsr_small *const small = &plan->small;
    const tsr_item *const item = &plan->items[0];
    const tsr_division *const d = item->division;
    if (!is_fit(plan))
        return TSR_OK;
    TSR_TRY(tsr_allocate_array(plan->context, item->box_count, sizeof *small->copies, (void **)&small->copies));
    TSR_TRY(tsr_allocate_array(plan->context, item->box_count, sizeof *small->reductions, (void **)&small->reductions));
    small->src = d ? plain_of(item, d->from.ndim, d->from.shape, d->from.strides)
                   : plain_of(item, item->src_ndim, item->src_shape, item->src_strides);
    small->dst = d ? plain_of(item, d->to.ndim, d->to.shape, d->to.strides)
                   : plain_of(item, item->dst_ndim, item->dst_shape, item->dst_strides);
    small->dtype = item->src->dtype;
    small->call = (tsr_call){.fingerprint = plan->hash, .shows = true};
    small->found = small->src.bytes > 0 && small->dst.bytes > 0 && add_all(small, item);
    return TSR_OK;
}

void tsr_small_free(tsr_plan *plan)
{
    tsr_release(plan->context, plan->small.copies);
    tsr_release(plan->context, plan->small.reductions);
}
