/** Communicators out of others. */
#ifndef TSR_COMM_GROUPS_SPLIT_H
#define TSR_COMM_GROUPS_SPLIT_H

#include <tessera/comm.h>

/** tsr_comm_split() within a call that has entered already, of ranks in their order, into a communicator that does not know its parent. */
tsr_status tsr_comm_split_group(tsr_comm *comm, int color, tsr_comm **out);

#endif
