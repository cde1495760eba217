/**
 * Moves that stay inside nodes although the communicator spans several. Ranks exchange along some
 * mesh dims only, and each line of ranks along these dims lies in one node: tensor parallelism
 * within nodes and replicas across them, for example. The ranks of each node then read one
 * another's memory in place.
 */
#ifndef TSR_REDISTRIBUTE_MATCH_CONFINED_H
#define TSR_REDISTRIBUTE_MATCH_CONFINED_H

#include "mesh/node_map.h"
#include "placement/layout.h"

/**
 * True if a plan for this move may read peers' memory over `comm`: all of `comm` is direct, or its
 * groups of one node's ranks are and nothing moves between nodes. `nodes`: those of the plan, NULL
 * if not known. The same on every rank. The second case visits every rank of the meshes.
 */
bool tsr_move_is_direct(const tsr_comm *comm, const tsr_node_map *nodes, bool no_split, const tsr_layout *src,
                        const tsr_layout *dst);

#endif
