/**
 * Small moves, as rows of bytes that are found when they are planned.
 *
 * The tensors of an eager plan (plan.h), and of one as small in which nothing crosses ranks, are a few cache lines. Describing their boxes
 * to the device, with shapes and strides, would cost more than the bytes. Of tensors that lie row by row without gaps the rows are the same
 * in every execution. A rank whose tensors do not lie so takes the general way, alone: to its peers it is the same call.
 */
#ifndef TSR_REDISTRIBUTE_SCHEDULE_SMALL_H
#define TSR_REDISTRIBUTE_SCHEDULE_SMALL_H

#include "comm/core/call.h"
#include <tessera/dtype.h>

typedef struct tsr_plan tsr_plan;

/** Terms of a reduction whose pointers the stack has room for. */
#define TSR_SMALL_TERMS 8

/** Rows of bytes into the destination, out of what `peer` shows in its tsr_call_buffer(), or out of this rank's own source. */
typedef struct tsr_small_copy {
    int64_t peer;
    uint32_t bytes, rows;
    uint32_t from, to, from_step, to_step; /**< bytes: where the first row begins, and from a row to the next */
} tsr_small_copy;

/** Elements that are reduced: from `own` in this rank's source and from `shown` in the others'. */
typedef struct tsr_small_reduction {
    const int64_t *contributors; /**< ranks: as many as the item has terms */
    int64_t elements;
    uint32_t own, shown, to; /**< bytes */
} tsr_small_reduction;

/** What a tensor must be for it. */
typedef struct tsr_plain {
    int ndim;
    const int64_t *shape, *strides; /**< the item's */
    size_t bytes;
} tsr_plain;

typedef struct tsr_small {
    bool found; /**< this rank's boxes are such rows, and all that follows is set */
    tsr_plain src, dst;
    tsr_dtype dtype;
    tsr_call call; /**< what this rank brings: the same in every execution */
    tsr_small_copy *copies;
    size_t copy_count;
    tsr_small_reduction *reductions;
    size_t reduction_count;
} tsr_small;

/** Finds the rows of a plan that is built but for them. There are none where the tensor is larger, where this rank lacks one of the two
 * tensors, or where a box has too many rows. To be freed also after an error. */
tsr_status tsr_small_build(tsr_plan *plan);
void tsr_small_free(tsr_plan *plan);

#endif
