/** Plans of an executable's moves. */
#ifndef TSR_OPS_PROGRAMS_PLANS_H
#define TSR_OPS_PROGRAMS_PLANS_H

#include "ops/programs/executable.h"

/** A mesh like `given` over the communicator; the caller owns it. */
tsr_status tsr_executable_open_mesh(const tsr_executable *x, tsr_comm *comm, const tsr_mesh *given, tsr_mesh **out);

/** Finds or adds the plan of `count` moves between forms. */
tsr_status tsr_executable_add_plan(tsr_executable *x, int count, const int *from, const int *to, int *out);

/** Plans all moves on meshes over a communicator. Not collective. */
tsr_status tsr_executable_open_plans(tsr_executable *x, tsr_comm *comm);

/** Raises the workspace of moves to what they want with the lengths of now, unless all lengths on
 * which they depend were as now in one of the `count` rows of `tried`, for which that was done. */
tsr_status tsr_executable_raise_plans(tsr_executable *x, tsr_comm *comm, const int64_t (*tried)[TSR_LENGTHS],
                                      size_t count);

/** Gives moves the plans that they have for the lengths of now. True: some have none, which all
 * ranks find alike. */
bool tsr_executable_find_plans(tsr_executable *x);

/** Plans the moves that have no plan for the lengths of now. Not collective. `*grown` becomes true
 * if one wants more workspace than any before. */
tsr_status tsr_executable_make_plans(tsr_executable *x, tsr_comm *comm, bool *grown);

/** Collective, where all ranks have made their plans: prepares those that are new. */
tsr_status tsr_executable_prepare_plans(tsr_executable *x, tsr_comm *comm);

/** Keeps the plans that are new; without `keep` they go. */
void tsr_executable_settle_plans(tsr_executable *x, bool keep);

#endif
