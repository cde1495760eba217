/** What crosses ranks, from the lists that a plan executes. Pure, but for memory. */
#ifndef TSR_REDISTRIBUTE_EXPLAIN_FLOWS_H
#define TSR_REDISTRIBUTE_EXPLAIN_FLOWS_H

#include "redistribute/schedule/plan.h"

/** Consecutive boxes of an item that cross ranks together: a product of intervals along dims. */
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

/** Lists all that the plan's rank receives or sends. `flows` starts zeroed; free it with
 * tsr_flows_free(), also after an error. */
tsr_status tsr_flows_list(tsr_flows *flows, const tsr_plan *plan, tsr_direction direction);
void tsr_flows_free(tsr_flows *flows, const tsr_plan *plan);

#endif
