/**
 * Small moves, as rows of bytes that planning finds.
 *
 * The tensors of an eager plan (plan.h), or of a local plan of an equally small tensor, are a few
 * cache lines. Describing their boxes to the device, with shapes and strides, would cost more than
 * copying the bytes. If tensors lie row by row without gaps, the rows are the same in every
 * execution. A rank whose tensors have gaps takes the general way by itself: to its peers it is the
 * same call.
 */
#ifndef TSR_REDISTRIBUTE_SCHEDULE_SMALL_H
#define TSR_REDISTRIBUTE_SCHEDULE_SMALL_H

#include "comm/core/call.h"

#include <tessera/dtype.h>

typedef struct tsr_plan tsr_plan;

/** The most terms of a small reduction, whose pointers are on the stack. */
#define TSR_SMALL_TERMS 8

/** Rows of bytes that are copied into the destination, from what `peer` shows in its
 * tsr_call_buffer(), or from this rank's own source if this rank is `peer`. */
typedef struct tsr_small_copy {
    int64_t peer;
    uint32_t bytes, rows;
    uint32_t from, to, from_step, to_step; /**< in bytes: offset of the first row, and distance between rows */
} tsr_small_copy;

/** Consecutive elements that are reduced: from offset `own` in this rank's source and `shown` in
 * the other ranks' buffers into offset `to` in the destination. */
typedef struct tsr_small_reduction {
    const int64_t *contributors; /**< ranks, one for each of the item's terms; borrowed from the item */
    int64_t elements;
    uint32_t own, shown, to; /**< in bytes */
} tsr_small_reduction;

/** What a tensor must be to be moved by rows. */
typedef struct tsr_plain {
    int ndim;
    const int64_t *shape, *strides; /**< borrowed from the item; strides in elements */
    size_t bytes;
} tsr_plain;

typedef struct tsr_small {
    bool found; /**< this rank's boxes are such rows, and the fields below are set */
    tsr_plain src, dst;
    tsr_dtype dtype;
    tsr_call call; /**< what this rank brings to the meeting: the same in every execution */
    tsr_small_copy *copies;
    size_t copy_count;
    tsr_small_reduction *reductions;
    size_t reduction_count;
} tsr_small;

/** Finds the rows of a plan that is built except for them. There are none if the tensor is larger,
 * if this rank lacks one of the two tensors, or if a box has too many rows. Free with
 * tsr_small_free(), also after an error. */
tsr_status tsr_small_build(tsr_plan *plan);
void tsr_small_free(tsr_plan *plan);

#endif
