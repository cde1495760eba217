/** One rank's part of a plan in numbers, from the lists that it executes. Pure, but for memory. */
#ifndef TSR_REDISTRIBUTE_EXPLAIN_FIGURES_H
#define TSR_REDISTRIBUTE_EXPLAIN_FIGURES_H

#include "redistribute/schedule/plan.h"

#include <tessera/explain.h>

/** One rank's part of a plan in numbers. */
typedef struct tsr_measure {
    tsr_plan_step steps[TSR_PLAN_STEPS_MAX];
    double work; /**< seconds between meetings; 0 where the plan has no tables */
    /** bytes by phase: from all other ranks; of these, from other nodes */
    int64_t received[TSR_PHASES], crossing[TSR_PHASES];
    tsr_plan_figures figures;
} tsr_measure;

tsr_status tsr_measure_plan(const tsr_plan *plan, tsr_measure *out);

/** The plan's nodes if some item takes them into account, else NULL; borrowed. */
const tsr_node_map *tsr_told_nodes(const tsr_plan *plan);

/** `received` / `bound`; 1 if both are 0; -1 if there is no bound (it is -1), or only the bound is
 * 0. */
double tsr_told_ratio(int64_t received, int64_t bound);

#endif
