/** Tensors that ranks have in short runs, and the layouts in which they are written. */
#ifndef TSR_FILES_CHECKPOINT_RUNS_H
#define TSR_FILES_CHECKPOINT_RUNS_H

#include "files/checkpoint.h"

/** Local: decides in which layout the item is written, the same on all ranks: in x's own, or, if x
 * is Partial or has short runs, in that of `item->placements`, to which it then `moves`. */
tsr_status tsr_checkpoint_choose_layout(const tsr_checkpoint_saving *s, tsr_checkpoint_item *item);

/** Collective: the item, or `part` of it (NULL: all), in the layout in which it is written. May
 * fail on this rank alone, whose caller then tells the others. The caller owns `*out`. */
tsr_status tsr_checkpoint_move(const tsr_checkpoint_item *item, const tsr_dtensor *part, tsr_dtensor **out);

/** The number of parts in which a save moves the item, so that a rank has only some MiB of a part.
 * The same on all ranks. */
int64_t tsr_checkpoint_parts(const tsr_checkpoint_item *item);

/** Local: one of the parts, as it is (NULL: there is one part, the item), and the place of its
 * first byte from the item's first byte on. The caller owns `*out`. */
tsr_status tsr_checkpoint_view_part(const tsr_checkpoint_item *item, int64_t part, int64_t *place, tsr_dtensor **out);

#endif
