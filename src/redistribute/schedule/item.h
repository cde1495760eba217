/** Making one item of a plan: what kind of move it is, and this rank's part of it. */
#ifndef TSR_REDISTRIBUTE_SCHEDULE_ITEM_H
#define TSR_REDISTRIBUTE_SCHEDULE_ITEM_H

#include "redistribute/schedule/plan.h"

/** Builds an item of `plan` of which only the context and the meter are set; the plan's options,
 * its count, links and nodes are set. Retains the layouts. Free the item with tsr_item_free(),
 * also after an error. */
tsr_status tsr_item_build(tsr_item *item, const tsr_plan *plan, const tsr_layout *src, const tsr_layout *dst);
void tsr_item_free(tsr_item *item);

/** True if the whole tensor fits a tsr_call_buffer(). */
bool tsr_item_is_small(const tsr_item *item);

/** True if sources can be copied to where peers read them, in direct mode: the whole tensor is
 * small, something crosses ranks, and there is one phase. The same on every rank. */
bool tsr_item_is_eager(const tsr_item *item, tsr_mode mode);

#endif
