/**
 * Small moves, as byte runs that are found when they are planned.
 *
 * Of an eager plan (plan.h), and of one as small in which nothing crosses ranks, the tensors are a few cache lines, and describing boxes to
 * the device, with their strides, would cost more than the bytes. Tensors that lie row by row without gaps have the same runs in every
 * execution. Ranks whose tensors do not take the general way, alone: what peers meet is the same.
 */
#ifndef TSR_REDISTRIBUTE_SMALL_H
#define TSR_REDISTRIBUTE_SMALL_H

#include "comm/call.h"
#include <tessera/dtype.h>

typedef struct tsr_plan tsr_plan;
typedef struct tsr_group tsr_group;

/** Rows of bytes out of a rank's source, its tsr_call_buffer() or this rank's own tensor, into the destination. */
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
    bool found; /**< this rank has runs, and all that follows */
    tsr_plain src, dst;
    tsr_dtype dtype;
    tsr_call call; /**< what this rank brings: the same in every execution */
    tsr_small_copy *copies;
    size_t copy_count;
    tsr_small_reduction *reductions;
    size_t reduction_count;
} tsr_small;

/** Finds the runs of a plan that is built but for them. None where the plan is larger, where this rank lacks a tensor, or where a box has
 * too many rows. To be freed also after an error. */
tsr_status tsr_small_build(tsr_plan *plan);
void tsr_small_free(tsr_plan *plan);

/** Of a plan whose runs are found: true if the tensors lie as they expect, on the host and apart, and nothing is wrong with what was given:
 * what is, the general way finds and says. */
bool tsr_small_takes(const tsr_plan *plan, const tsr_tensor *src, const tsr_tensor *dst, const void *workspace, size_t bytes,
                     tsr_stream stream);

/** tsr_plan_run() of tensors that it takes. */
tsr_status tsr_small_run(const tsr_plan *plan, const tsr_group *group, const tsr_tensor *src, const tsr_tensor *dst);

#endif
