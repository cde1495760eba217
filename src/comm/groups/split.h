/** Splits communicators. */
#ifndef TSR_COMM_GROUPS_SPLIT_H
#define TSR_COMM_GROUPS_SPLIT_H

#include <tessera/comm.h>

/** tsr_comm_split() that does not enter the handle. The new communicator is a group's: its `outer`
 * is `comm`, and it has no parent. */
tsr_status tsr_comm_split_group(tsr_comm *comm, int color, int key, tsr_comm **out);

#endif
