/** Which tensors lie in which file of a checkpoint, and the files' headers. */
#ifndef TSR_FILES_CHECKPOINT_PLAN_H
#define TSR_FILES_CHECKPOINT_PLAN_H

#include "files/checkpoint.h"

/** Local: checks the call's arguments, and copies what is needed of them. */
tsr_status tsr_checkpoint_take(tsr_checkpoint_saving *s, size_t count, const tsr_safetensors_tensor *tensors,
                               const tsr_checkpoint_save_options *options);

/** Collective: refuses, on every rank, calls that differ. Then decides in which layouts items are
 * written, and moves those that cannot be moved later. */
tsr_status tsr_checkpoint_agree(tsr_checkpoint_saving *s);

/** Local: divides the items among files and makes the headers. For dcp, keeps only the items that
 * this rank writes. */
tsr_status tsr_checkpoint_plan(tsr_checkpoint_saving *s);

/** Local, when files have their paths: makes the text of the index. */
tsr_status tsr_checkpoint_make_index(tsr_checkpoint_saving *s);

#endif
