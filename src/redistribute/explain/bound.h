/** The fewest bytes that a move can take, from its layouts alone. Pure. */
#ifndef TSR_REDISTRIBUTE_EXPLAIN_BOUND_H
#define TSR_REDISTRIBUTE_EXPLAIN_BOUND_H

#include "redistribute/schedule/plan.h"

/** True if no Partial is reduced or made, so that each rank has a lower bound of the bytes that it
 * receives. */
bool tsr_bound_is_exact(const tsr_item *item);

/** Adds the lower bound of the item's rank to `*bytes`: what its destination shard holds and its
 * source shard does not. Only if tsr_bound_is_exact(). TSR_ERROR_ARGUMENT: the shards have more
 * intervals than the meter allows. */
tsr_status tsr_bound_of_rank(const tsr_item *item, tsr_meter *meter, int64_t *bytes);

/** Adds to `*total` the fewest bytes that all ranks together receive, also with Partial:
 * O(destination ranks * source pieces met). TSR_ERROR_ARGUMENT: the total would be more than 2^63
 * - 1, or finding it takes more than the meter allows. */
tsr_status tsr_bound_add_total(const tsr_item *item, tsr_meter *meter, int64_t *total);

/** Bytes of tsr_plan_figures.gather_and_slice for the item's rank. */
int64_t tsr_gather_and_slice(const tsr_item *item);

/** a + b, or INT64_MAX where that is less; both are 0 or more. */
int64_t tsr_add_saturated(int64_t a, int64_t b);

#endif
