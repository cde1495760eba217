/** Splits communicators. */
#ifndef TSR_COMM_GROUPS_SPLIT_H
#define TSR_COMM_GROUPS_SPLIT_H

#include <tessera/comm.h>

/** tsr_comm_split() that does not enter the handle and orders by rank. The new communicator is a
 * group's: its `outer` is `comm`, and it has no parent. */
tsr_status tsr_comm_split_group(tsr_comm *comm, int color, tsr_comm **out);

#endif
