/** What this rank's destination needs of an item. */
#ifndef TSR_REDISTRIBUTE_SCHEDULE_RECEIVES_H
#define TSR_REDISTRIBUTE_SCHEDULE_RECEIVES_H

#include "redistribute/schedule/plan.h"

/** Lists what this rank's destination needs: the item's moves, reductions and results, and what its
 * node hands round. */
tsr_status tsr_build_receives(tsr_item *item);

#endif
