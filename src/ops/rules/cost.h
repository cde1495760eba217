/** What redistributions cost, by the planner. Pure. */
#ifndef TSR_OPS_RULES_COST_H
#define TSR_OPS_RULES_COST_H

#include <tessera/layout.h>

/** Costs of moves, made one after the other. */
typedef struct tsr_move_cost {
    int64_t bytes;   /**< received by all ranks that were asked */
    int64_t busiest; /**< the most that one receives */
    double seconds;
    int moves;
} tsr_move_cost;

/** Adds the cost of a move to `*cost`. Of more ranks than some dozens, some evenly spaced ones are
 * asked. */
tsr_status tsr_move_cost_add(const tsr_layout *from, const tsr_layout *to, tsr_move_cost *cost);

/** Below 0 if `a` is cheaper: by bytes, then seconds, then moves. */
int tsr_move_cost_compare(const tsr_move_cost *a, const tsr_move_cost *b);

#endif
