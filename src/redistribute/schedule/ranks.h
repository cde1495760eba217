/** Which ranks a plan is about. Pure, but for memory. */
#ifndef TSR_REDISTRIBUTE_SCHEDULE_RANKS_H
#define TSR_REDISTRIBUTE_SCHEDULE_RANKS_H

#include "redistribute/schedule/plan.h"

/** Brings ranks into ascending order, each once; returns how many are left. */
int tsr_ranks_sort(int *ranks, size_t count);

/** All ranks of so many meshes, one at least, ascending, each once. The caller releases `*ranks` with the context of the first. */
tsr_status tsr_ranks_of_meshes(const tsr_mesh *const *meshes, size_t mesh_count, int **ranks, int *count);

/** The meshes of all items, each once: batches are mostly over one or two. `meshes` has room for two an item. */
size_t tsr_plan_list_meshes(const tsr_plan *plan, const tsr_mesh **meshes);

#endif
