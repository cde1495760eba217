/** One rank's part of a plan in numbers, from the lists that it executes. Pure, but for memory. */
#ifndef TSR_REDISTRIBUTE_EXPLAIN_FIGURES_H
#define TSR_REDISTRIBUTE_EXPLAIN_FIGURES_H

#include <tessera/explain.h>

#include "redistribute/schedule/plan.h"

/** One rank's part of a plan in numbers. */
typedef struct tsr_measure {
    tsr_plan_step steps[TSR_PLAN_STEPS_MAX];
    int64_t received[TSR_PHASES], crossing[TSR_PHASES]; /**< bytes by phase: from all ranks, and those of them from other nodes */
    tsr_plan_figures figures;
} tsr_measure;

tsr_status tsr_measure_plan(const tsr_plan *plan, tsr_measure *out);

/** Who shares a node; NULL where the plan tells none apart. */
const tsr_node_map *tsr_told_nodes(const tsr_plan *plan);

/** Bytes received per byte that had to be; 1 where both are 0, -1 where there is no bound, or it alone is 0. */
double tsr_told_ratio(int64_t received, int64_t bound);

#endif
