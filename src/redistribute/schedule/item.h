/** Making one item of a plan: what kind of move it is, and this rank's part of it. */
#ifndef TSR_REDISTRIBUTE_SCHEDULE_ITEM_H
#define TSR_REDISTRIBUTE_SCHEDULE_ITEM_H

#include "redistribute/schedule/plan.h"

/** Fills an item of `plan` of which only the context is set; the plan's rank, mode, options and count are known. Retains the layouts. To be
 * freed also after an error. */
tsr_status tsr_item_build(tsr_item *item, const tsr_plan *plan, const tsr_layout *src, const tsr_layout *dst);
void tsr_item_free(tsr_item *item);

/** True if the whole tensor is so small that sources can be copied to where peers read them. The same on every rank. */
bool tsr_item_is_eager(const tsr_item *item, tsr_mode mode);

#endif
