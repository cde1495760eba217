/**
 * Moves that stay inside nodes, over a communicator of several: those along mesh dims whose lines each lie in one node, as where tensors
 * are parallel within nodes and replicas are not. Ranks of a node read one another's memory in place then, each node for itself.
 */
#ifndef TSR_REDISTRIBUTE_SCHEDULE_CONFINED_H
#define TSR_REDISTRIBUTE_SCHEDULE_CONFINED_H

#include "mesh/node_map.h"
#include "placement/layout.h"

/**
 * True if a plan for this move that knows `nodes` may read peers' memory over `comm`: all of it is direct, or the groups that it makes of a
 * node's ranks are and nothing moves from one to another. The same on every rank. In the second case it looks at every rank of the meshes.
 */
bool tsr_move_is_direct(const tsr_comm *comm, const tsr_node_map *nodes, bool no_split, const tsr_layout *src, const tsr_layout *dst);

#endif
