/** The steps of a plan, as users are told them. Pure. */
#ifndef TSR_REDISTRIBUTE_EXPLAIN_STEPS_H
#define TSR_REDISTRIBUTE_EXPLAIN_STEPS_H

#include "redistribute/schedule/plan.h"

#include <tessera/explain.h>

/** The steps of a plan; from the layouts and options alone, so the same on every rank. */
typedef struct tsr_steps {
    size_t count;
    tsr_step_op ops[TSR_PLAN_STEPS_MAX];
    size_t of_phase[TSR_PHASES]; /**< the index of each phase's step; only where anything crosses ranks */
} tsr_steps;

tsr_steps tsr_steps_of(const tsr_plan *plan);

#endif
