/** What tests of checkpoints have in common. */
#ifndef CHECKPOINT_SUPPORT_H
#define CHECKPOINT_SUPPORT_H

#include <tessera/comm.h>

enum { FOLDER_BYTES = 96 };

/** A folder in /tmp of this test's own. Ranks that are processes have one parent, and so one
 * name. */
void name_folder(const char *kind, char path[FOLDER_BYTES]);

/** The number of names in a folder but "." and ".."; 0 if there is none. */
int count_files(const char *folder);

/** Removes the folder of a kind, `arg`, and its files. A program for a rank. */
tsr_status remove_folder(tsr_comm *comm, void *arg);

#endif
