/** The ranks of meshes and the meshes of plans. Pure, but for memory. */
#ifndef TSR_REDISTRIBUTE_SCHEDULE_RANKS_H
#define TSR_REDISTRIBUTE_SCHEDULE_RANKS_H

#include "redistribute/schedule/plan.h"

/** Sorts ranks into ascending order and drops repeated ones; returns how many are left. */
int tsr_ranks_sort(int *ranks, size_t count);

/** Lists the ranks of `mesh_count` meshes, at least one, ascending, each once. The caller releases
 * `*ranks` with the first mesh's context. */
tsr_status tsr_ranks_of_meshes(const tsr_mesh *const *meshes, size_t mesh_count, int **ranks, int *count);

/** Lists the meshes of all items, each once, and returns how many there are: mostly one or two.
 * `meshes` has room for two an item. */
size_t tsr_plan_list_meshes(const tsr_plan *plan, const tsr_mesh **meshes);

#endif
