/** What ranks do together before a plan is executed: they compare it, and make its groups. */
#ifndef TSR_REDISTRIBUTE_EXECUTE_PREPARE_H
#define TSR_REDISTRIBUTE_EXECUTE_PREPARE_H

#include "comm/core/comm.h"
#include "comm/groups/group.h"
#include "redistribute/schedule/plan.h"

/** TSR_ERROR_STATE: the plan is for another rank; or it is over another communicator that has a
 * common ancestor with `comm`, and numbers ranks of the plan's meshes differently. */
tsr_status tsr_plan_check_comm(const tsr_plan *plan, const tsr_comm *comm);

/** Collective over the mesh's communicator: compares a fingerprint among the ranks of the mesh.
 * Errors as tsr_group_prepare(). */
tsr_status tsr_mesh_agree(const tsr_mesh *mesh, uint64_t fingerprint, tsr_status local, tsr_call_describe *describe,
                          const void *arg);

/** tsr_plan_prepare() with `local`: TSR_OK, or a failure with which this rank takes part; `plan`
 * may then be NULL. `*group` becomes the plan's group, borrowed from `comm`; NULL if this rank is
 * not in it. */
tsr_status tsr_plan_prepare_with(const tsr_plan *plan, tsr_comm *comm, tsr_status local, const tsr_group **group);

#endif
