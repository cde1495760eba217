/** The host memory of one execution, in the group's scratch: executing allocates nothing. */
#ifndef TSR_REDISTRIBUTE_EXECUTE_SCRATCH_H
#define TSR_REDISTRIBUTE_EXECUTE_SCRATCH_H

#include "redistribute/schedule/messages.h"

#include <tessera/comm.h>

typedef struct tsr_execution tsr_execution;
typedef struct tsr_bound tsr_bound;

/** Pointers and strides of one reduction. */
typedef struct tsr_reduce_arrays {
    int64_t (*src_strides)[TSR_MAX_DIMS];
    int64_t (*dst_strides)[TSR_MAX_DIMS];
    const void **src;
    void **dst;
} tsr_reduce_arrays;

/** Memory from a tensor's first byte to its last. */
typedef struct tsr_span {
    uintptr_t begin, end; /**< equal: no memory */
    size_t item;
    bool written;
} tsr_span;

/** What a rank shows its peers of one item. */
typedef struct tsr_view {
    const void *src;
    void *dst;
    int64_t src_strides[TSR_MAX_DIMS], dst_strides[TSR_MAX_DIMS];
} tsr_view;

typedef struct tsr_scratch {
    tsr_execution *pending; /**< the execution between tsr_plan_start() and tsr_plan_finish() */
    tsr_bound *bound;       /**< one for each item */
    tsr_span *spans;        /**< two for each item, where there are several items: to find memory that they share */
    tsr_view *views;        /**< one for each item, in direct mode */
    tsr_tensor *tensors;    /**< copies of a started execution's tensors: all sources, then all destinations */
    tsr_reduce_arrays reduce;
    tsr_message *messages[2]; /**< for each of the two rounds in flight: sends, then receives */
    /** for each of the two rounds in flight: where incoming parcels lie in the staging, in bytes */
    size_t *offsets[2];
    size_t bytes; /**< of the whole scratch */
} tsr_scratch;

/** Divides the scratch at `base`; NULL only measures it. */
tsr_scratch tsr_scratch_divide(const tsr_plan *plan, void *base);

#endif
