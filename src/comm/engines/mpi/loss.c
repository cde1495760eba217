#include "comm/engines/mpi/loss.h"

#include "comm/engines/mpi/notice.h"
#include "comm/engines/mpi/world.h"

#include <tessera/sys/log.h>

#include <stdio.h>

const char *tsr_mpi_name(const tsr_mpi_handle *handle, int rank, char *text)
{
    const int all = handle->names[rank];
    if (all == rank)
        snprintf(text, 64, "rank %d", rank);
    else
        snprintf(text, 64, "rank %d (rank %d of all)", rank, all);
    return text;
}

tsr_status tsr_mpi_break(tsr_mpi_handle *handle, tsr_status status)
{
    if (handle->broken)
        return status;
    handle->broken = true;
    handle->world->broken = true;
    tsr_status_keep(&handle->why);
    tsr_log(handle->world->context, TSR_LOG_ERROR, "rank %d of %d: %s", handle->rank, handle->ranks, handle->why.text);
    if (handle->gated)
        tsr_mpi_gate_lose(&handle->gate, handle->why.text);
    return status;
}

tsr_status tsr_mpi_check_whole(tsr_mpi_handle *handle)
{
    if (handle->broken)
        return tsr_status_restore(&handle->why, TSR_ERROR_PEER);
    if (handle->gated && tsr_mpi_gate_is_lost(&handle->gate))
        return tsr_mpi_break(handle, tsr_mpi_gate_say_broken(&handle->gate));
    const int aborter = tsr_mpi_world_aborter(handle->world);
    if (aborter < 0)
        return TSR_OK;
    tsr_mpi_notice_abort(handle->world);
    return tsr_mpi_break(
        handle, tsr_status_set(TSR_ERROR_PEER, "rank %d of all has aborted, so this communicator is broken", aborter));
}
