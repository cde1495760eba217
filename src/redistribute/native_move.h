/** Moves that are one collective, for engines that have it of their own. */
#ifndef TSR_REDISTRIBUTE_NATIVE_MOVE_H
#define TSR_REDISTRIBUTE_NATIVE_MOVE_H

#include "comm/group.h"
#include "redistribute/plan.h"

/** Finds out what the move is, and lists its pieces. Kind TSR_NATIVE_NONE: several tensors, pieces that differ in length, values whose
 * reduction the engine may not do, or more workspace than options.max_workspace. The item's problem and local shapes are known. */
tsr_status tsr_native_build(tsr_item *item, const tsr_plan *plan);

/** Collective over the plan's group: makes the groups of the collective, if the engine has it, and notes that in the plan. */
tsr_status tsr_native_prepare(const tsr_plan *plan, const tsr_group *group);

/** The group over which the engine's own collective makes the move; NULL: it goes by mail. */
const tsr_group *tsr_native_group(const tsr_plan *plan, const tsr_group *group);

#endif
