/** The least that a move can take, from its layouts alone. Pure. */
#ifndef TSR_REDISTRIBUTE_EXPLAIN_BOUND_H
#define TSR_REDISTRIBUTE_EXPLAIN_BOUND_H

#include "redistribute/schedule/plan.h"

/** True if no Partial is reduced or made, so that each rank has a least number of bytes to receive. */
bool tsr_bound_is_exact(const tsr_item *item);

/** Adds that number for the item's rank to `*bytes`: what its destination shard holds and its source shard does not. Only where it is
 * exact. TSR_ERROR_ARGUMENT: the shards have more intervals than the meter allows. */
tsr_status tsr_bound_of_rank(const tsr_item *item, tsr_meter *meter, int64_t *bytes);

/** The least bytes that all ranks together receive, with Partial: O(destination ranks * source pieces met). Adds to `*total`.
 * TSR_ERROR_ARGUMENT: that would be more than 2^63 - 1, or takes more than the meter allows. */
tsr_status tsr_bound_add_total(const tsr_item *item, tsr_meter *meter, int64_t *total);

/** Bytes of tsr_plan_figures.gather_and_slice for the destination coordinate and the source coordinate (NULL: outside) of one rank. */
int64_t tsr_gather_and_slice(const tsr_item *item);

/** a + b of numbers from 0 up, at most INT64_MAX. */
int64_t tsr_add_saturated(int64_t a, int64_t b);

#endif
