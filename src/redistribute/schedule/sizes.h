/** Sizes of an item's parts, and where its boxes lie in a shard. Pure. */
#ifndef TSR_REDISTRIBUTE_SCHEDULE_SIZES_H
#define TSR_REDISTRIBUTE_SCHEDULE_SIZES_H

#include "redistribute/schedule/messages.h"
#include "redistribute/schedule/plan.h"

/** A box's position in the source (destination) shard, one number for each dim. */
static inline const int64_t *tsr_item_position(const tsr_item *item, size_t box, bool at_source)
{
    return tsr_item_box(item, box) + (at_source ? item->src->ndim : 2 * item->src->ndim);
}

/** Bytes from a shard's position 0 to a box's position in the source (destination) shard; `strides`
 * in elements. */
static inline int64_t tsr_item_offset(const tsr_item *item, size_t box, const int64_t *strides, bool at_source)
{
    const int64_t *const at = tsr_item_position(item, box, at_source);
    int64_t elements = 0;
    for (int dim = 0; dim < item->src->ndim; dim++)
        elements += at[dim] * strides[dim];
    return elements * (int64_t)item->src->element_bytes;
}

/** True if a box lies without gaps under these strides. */
static inline bool tsr_item_box_is_dense(const tsr_item *item, size_t box, const int64_t *strides)
{
    const int64_t *const shape = tsr_item_box(item, box);
    int64_t expected = 1;
    for (int dim = item->src->ndim - 1; dim >= 0; dim--) {
        if (shape[dim] > 1 && strides[dim] != expected)
            return false;
        expected *= shape[dim];
    }
    return true;
}

/** Bytes of the workspace in which an item's results wait. */
static inline size_t tsr_item_staged_bytes(const tsr_item *item)
{
    size_t bytes = item->staged && item->in_dst && !item->fills ? item->src->element_bytes : 0;
    for (int dim = 0; dim < item->dst_ndim; dim++)
        bytes *= (size_t)item->dst_shape[dim];
    return tsr_mail_line(bytes);
}

/** Upper bound of the bytes of any destination shard: those of the largest, or a little more where
 * blocks interleave. The same on every rank. */
size_t tsr_item_shard_bytes(const tsr_item *item);

#endif
