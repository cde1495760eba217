/**
 * What plans say of themselves, from the lists that they execute: flows, steps and figures of one rank; and from the layouts alone, what
 * the least would be. Pure, but for memory.
 */
#ifndef TSR_REDISTRIBUTE_EXPLAIN_TOLD_H
#define TSR_REDISTRIBUTE_EXPLAIN_TOLD_H

#include <tessera/explain.h>

#include "redistribute/schedule/plan.h"

/** The steps of a plan; from the layouts and options alone, so the same on every rank. */
typedef struct tsr_steps {
    size_t count;
    tsr_step_op ops[TSR_PLAN_STEPS_MAX];
    size_t of_phase[TSR_PHASES]; /**< which step each phase of an execution belongs to; only where anything crosses ranks */
} tsr_steps;

tsr_steps tsr_steps_of(const tsr_plan *plan);

/** Boxes that cross ranks together: a product of intervals along each dim. */
typedef struct tsr_flow {
    size_t step, phase, item;
    int64_t peer;
    size_t first_box, box_count;
    int64_t elements;
} tsr_flow;

typedef struct tsr_flows {
    tsr_flow *at; /**< sorted by step, peer and item */
    size_t count, capacity;
} tsr_flows;

typedef enum tsr_direction { TSR_RECEIVES, TSR_SENDS } tsr_direction;

/** All that the plan's rank receives or sends. `flows` starts zeroed and is released with tsr_flows_free(), also after an error. */
tsr_status tsr_flows_list(tsr_flows *flows, const tsr_plan *plan, tsr_direction direction);
void tsr_flows_free(tsr_flows *flows, const tsr_plan *plan);

/** One rank's part of a plan in numbers. */
typedef struct tsr_measure {
    tsr_plan_step steps[TSR_PLAN_STEPS_MAX];
    double work;                                        /**< seconds, where the plan has tables: without meetings */
    int64_t received[TSR_PHASES], crossing[TSR_PHASES]; /**< bytes by phase: from all ranks, and those of them from other nodes */
    tsr_plan_figures figures;
} tsr_measure;

tsr_status tsr_measure_plan(const tsr_plan *plan, tsr_measure *out);

/** Who shares a node; NULL where the plan tells none apart. */
const tsr_node_map *tsr_told_nodes(const tsr_plan *plan);

/** Bytes received per byte that had to be; 1 where both are 0, -1 where there is no bound, or it alone is 0. */
double tsr_told_ratio(int64_t received, int64_t bound);

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
