/** Moves that are one collective, for engines that have it of their own. */
#ifndef TSR_REDISTRIBUTE_SCHEDULE_COLLECTIVE_H
#define TSR_REDISTRIBUTE_SCHEDULE_COLLECTIVE_H

#include "comm/core/comm.h"
#include "comm/groups/group.h"
#include "redistribute/schedule/plan.h"

/** Sets item->native: which collective the move is, and its pieces. Kind TSR_NATIVE_NONE: it is not
 * one, as with several tensors, pieces that differ in length, or a reduction that the engine may
 * not do. The item's problem and local shapes are set. */
tsr_status tsr_native_build(tsr_item *item, const tsr_plan *plan);

/** Collective over the plan's group: if the engine has the collective, makes its groups, and notes
 * their key in the plan. */
tsr_status tsr_native_prepare(const tsr_plan *plan, const tsr_group *group);

/** What this rank gives to the collective, or gets from it. */
typedef struct tsr_pieces {
    const tsr_transfer *at;
    size_t count;
    bool at_source; /**< the pieces are of the source: this rank gives them */
} tsr_pieces;

tsr_pieces tsr_native_pieces(const tsr_item *item, bool given);

/** True if under these strides (in elements) the pieces lie one after the other, in the order of
 * the group's ranks; `*offset` becomes the first piece's, in bytes from position 0. True also if
 * there are no pieces. */
bool tsr_pieces_lie(const tsr_item *item, const tsr_pieces *pieces, const int64_t *strides, int64_t *offset);

/** Elements of each piece. */
static inline int64_t tsr_native_count(const tsr_native_move *move)
{
    return move->pieces.count > 0 ? move->pieces.at[0].elements : 0;
}

/** True if the move is made as a collective whenever all ranks are able, false if it always goes by
 * mail. The same on all ranks of the plan's group. */
bool tsr_native_is_found(const tsr_plan *plan, const tsr_group *group);

/** The group over which this rank makes the collective, with all that a call needs. NULL: this rank
 * is not able, because the plan was prepared on another communicator. */
const tsr_group *tsr_native_group(const tsr_plan *plan, const tsr_group *group);

#endif
