/** Chooses among the ways to make one move, from the layouts and options alone, so that every rank
 * chooses alike. */
#ifndef TSR_REDISTRIBUTE_SCHEDULE_VARIANT_H
#define TSR_REDISTRIBUTE_SCHEDULE_VARIANT_H

#include "redistribute/schedule/plan.h"

/** Sets problem.each, `nodes`, `shares` and `staged`. The item's layouts and problem are set. */
void tsr_variant_choose(tsr_item *item, const tsr_plan *plan);

#endif
