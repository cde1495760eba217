/** The ranks of a message engine's communicator that share a node. */
#ifndef TSR_COMM_GROUPS_MATES_H
#define TSR_COMM_GROUPS_MATES_H

#include "comm/groups/group.h"

/**
 * The group of this rank's node, whose communicator is direct; NULL on a rank that is alone on its
 * node, and on all ranks if nodes are not direct, or make no difference. Borrowed from the
 * communicator, whose handle must have been entered for `call`. The first call is collective over
 * the communicator, and makes the groups of all nodes; later ones communicate with no rank.
 */
tsr_status tsr_group_find_mates(tsr_comm *comm, const char *call, const tsr_group **out);

#endif
