/** The order in which placements cut, without a layout. Pure integers; nothing here checks its
 * arguments. */
#ifndef TSR_PLACEMENT_PLACEMENT_H
#define TSR_PLACEMENT_PLACEMENT_H

#include <tessera/layout.h>

#include <stdbool.h>

/** The order of a Shard; TSR_ORDER_DEFAULT counts as the number of its mesh dim. */
int tsr_placement_order(const tsr_placement *placements, int mesh_dim);

/** The order by which a Shard is printed: its place among the cuts of its tensor dim, or
 * TSR_ORDER_DEFAULT if these are in the order of mesh dims. Equal cut orders print alike, however
 * they were given. */
int tsr_placement_said_order(const tsr_placement *placements, int count, int mesh_dim);

/** Writes the mesh dims whose placement is Shard(dim), sorted by order, and returns how many there
 * are. Equal orders stay in the order of mesh dims and set `*equal`, which may be NULL. */
int tsr_placements_order(const tsr_placement *placements, int count, int dim, int *sorted, bool *equal);

#endif
