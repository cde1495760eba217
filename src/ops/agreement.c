#include "ops/agreement.h"

#include <stdint.h>
#include <tessera/sys/status.h>

/* All learn the sentence of the lowest rank that failed. */
static tsr_status tell(tsr_comm *comm, int failed, const tsr_kept_sentence *own)
{
    tsr_kept_sentence told = {.text = ""};
    if (tsr_comm_rank(comm) == failed)
        told = *own;
    TSR_TRY(tsr_comm_broadcast(comm, told.text, sizeof told.text, TSR_U8, failed, tsr_device_host(), NULL));
    return tsr_status_set(TSR_ERROR_PEER, "rank %d failed: %s", failed, told.text);
}

tsr_status tsr_agree(tsr_comm *comm, tsr_status local)
{
    const int64_t mine = local == TSR_OK ? INT64_MAX : tsr_comm_rank(comm);
    int64_t lowest = INT64_MAX;
    tsr_kept_sentence own;
    if (local != TSR_OK)
        tsr_status_keep(&own);
    tsr_status status = tsr_comm_all_reduce(comm, &mine, &lowest, 1, TSR_I64, TSR_MIN, tsr_device_host(), NULL);
    if (status == TSR_OK && lowest != INT64_MAX)
        status = tell(comm, (int)lowest, &own);
    return local == TSR_OK ? status : tsr_status_restore(&own, local);
}

tsr_comm *tsr_agreement_comm(const tsr_layout *const *layouts, int count)
{
    for (int i = 0; i < count; i++)
        if (layouts[i] && tsr_mesh_comm(tsr_layout_mesh(layouts[i])))
            return tsr_mesh_comm(tsr_layout_mesh(layouts[i]));
    return NULL;
}

const tsr_layout *tsr_agreement_layout(const tsr_dtensor *tensor)
{
    return tensor ? tsr_dtensor_layout(tensor) : NULL;
}
