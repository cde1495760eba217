/** The order in which placements cut. Pure integers; nothing here checks its arguments. */
#ifndef TSR_PLACEMENT_PLACEMENT_H
#define TSR_PLACEMENT_PLACEMENT_H

#include <stdbool.h>
#include <tessera/layout.h>

/** The place in the cut order that a Shard has, by default that of its mesh dim. */
int tsr_placement_order(const tsr_placement *placements, int mesh_dim);

/** The Shard's place among the cuts of its tensor dim, or TSR_ORDER_DEFAULT where ascending mesh dims say it already: equal orders, however
 * they are given, are said alike. */
int tsr_placement_said_order(const tsr_placement *placements, int count, int mesh_dim);

/** Mesh dims by cut order for tensor dim `dim`: indices of the Shard(dim) placements, sorted; returns how many. Equal orders stay in mesh
 * order and set `*equal`. */
int tsr_placements_order(const tsr_placement *placements, int count, int dim, int *sorted, bool *equal);

#endif
