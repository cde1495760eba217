/** The folder and the files of a checkpoint that is being saved. */
#ifndef TSR_FILES_CHECKPOINT_FILES_H
#define TSR_FILES_CHECKPOINT_FILES_H

#include "files/checkpoint.h"

/** Local, on rank 0: makes the folder, unless it is there, and chooses the stamp. */
tsr_status tsr_checkpoint_make_folder(tsr_checkpoint_saving *s);

/** Local, when the stamp is known: names the files, and makes those that this rank completes, in
 * their full size. */
tsr_status tsr_checkpoint_make_files(tsr_checkpoint_saving *s);

/** Local: writes the headers of the files that this rank made, brings them to the disk, and gives
 * them their names. */
tsr_status tsr_checkpoint_complete_files(tsr_checkpoint_saving *s);

/** Local, on rank 0: makes the files the folder's checkpoint, and removes those of older ones. */
tsr_status tsr_checkpoint_publish(tsr_checkpoint_saving *s);

/** Local: removes the files that this rank made, and on rank 0 the folder of a dcp's, if files
 * and folder did not become the checkpoint. */
void tsr_checkpoint_remove_files(tsr_checkpoint_saving *s);

#endif
