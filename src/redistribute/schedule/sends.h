/** What other ranks need of this rank's source. */
#ifndef TSR_REDISTRIBUTE_SCHEDULE_SENDS_H
#define TSR_REDISTRIBUTE_SCHEDULE_SENDS_H

#include "redistribute/schedule/plan.h"

/** Lists what other ranks need of this rank's source: the item's sends. */
tsr_status tsr_build_sends(tsr_item *item);

#endif
