#include "ops/eager/attend.h"

#include "ops/eager/compute.h"
#include "ops/rows/table.h"

#include <tessera/sys/dtensor.h>
#include <tessera/sys/status.h>

/* Goes to the exchanges of a kernel, or to a move. */
static tsr_status attend_computation(const tsr_op_case *c, unsigned exchanged, const tsr_dtensor *x, tsr_status failed)
{
    int inside;
    int64_t coordinate[TSR_MAX_DIMS];
    tsr_kept_sentence kept;
    const tsr_dtensor *const operands[TSR_OP_MOST_OPERANDS] = {x};
    const tsr_mesh *const mesh = tsr_layout_mesh(tsr_dtensor_layout(x));
    tsr_status_keep_returned(&kept, failed);
    const tsr_status found = tsr_mesh_coordinate(mesh, coordinate, &inside);
    tsr_status_restore(&kept, failed);
    if (found != TSR_OK)
        return failed;
    const tsr_computation computation = {.c = c,
                                         .exchanged = c->op->exchanges ? exchanged : 0,
                                         .mesh = mesh,
                                         .coordinate = coordinate,
                                         .inside = inside,
                                         .device = tsr_dtensor_to_local(x).device,
                                         .operands = operands};
    return tsr_eager_compute(&computation, failed);
}

tsr_status tsr_eager_attend_outlook(const tsr_op_case *c, const tsr_op_outlook *outlook, const tsr_dtensor *x,
                                    bool is_first, tsr_status failed)
{
    if (outlook->settles)
        return tsr_comm_share_status(tsr_mesh_comm(tsr_layout_mesh(tsr_dtensor_layout(x))), c->caller, failed);
    if (c->op->moves_to && !is_first)
        return tsr_redistribute_failed(x, NULL, failed);
    return attend_computation(c, outlook->inferred.exchanged, x, failed);
}

tsr_status tsr_eager_attend(const tsr_op_case *c, const tsr_dtensor *const *operands, tsr_status failed)
{
    int some = 0;
    tsr_kept_sentence kept;
    tsr_op_shadow shadow;
    tsr_op_case copied;
    tsr_op_outlook outlook = {.settles = false};
    tsr_status_keep_returned(&kept, failed);
    while (!operands[some])
        some++;
    tsr_status status = tsr_op_shadow_case(c, NULL, &shadow, &copied);
    if (status == TSR_OK)
        status = tsr_op_foresee(&copied, &outlook);
    tsr_status_restore(&kept, failed);
    if (status == TSR_OK)
        tsr_eager_attend_outlook(&copied, &outlook, operands[some], some == 0, failed);
    tsr_op_inferred_clear(&outlook.inferred);
    tsr_op_shadow_clear(&shadow);
    return tsr_status_restore(&kept, failed);
}
