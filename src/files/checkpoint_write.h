/** The bytes of a checkpoint: to memory, and to files. */
#ifndef TSR_FILES_CHECKPOINT_WRITE_H
#define TSR_FILES_CHECKPOINT_WRITE_H

#include "files/checkpoint.h"

/** Local: copies to memory what this rank writes of each item that has not moved to memory of its
 * own. */
tsr_status tsr_checkpoint_copy(tsr_checkpoint_saving *s);

/** Writes to the files what this rank writes of each item, and brings it to the disk. Sets
 * `written` and `sentence`. Collective, since items move; with `apart` local. */
void tsr_checkpoint_write(tsr_checkpoint_saving *s);

/** Frees a snapshot. */
void tsr_checkpoint_snapshot_free(tsr_checkpoint_snapshot *snapshot);

#endif
