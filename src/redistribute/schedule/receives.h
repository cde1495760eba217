/** What this rank's destination needs of an item. */
#ifndef TSR_REDISTRIBUTE_SCHEDULE_RECEIVES_H
#define TSR_REDISTRIBUTE_SCHEDULE_RECEIVES_H

#include "redistribute/schedule/plan.h"

/** What this rank's destination needs: moves, reductions, results. */
tsr_status tsr_build_receives(tsr_item *item);

#endif
