#include "ops/agreement.h"

#include <stdint.h>
#include <tessera/sys/status.h>

tsr_status tsr_agree(tsr_comm *comm, const char *caller, tsr_status local)
{
    tsr_kept_sentence kept;
    if (local != TSR_OK)
        tsr_status_keep(&kept);
    const int64_t mine = local == TSR_OK ? INT64_MAX : tsr_comm_rank(comm);
    int64_t lowest = INT64_MAX;
    const tsr_status status = tsr_comm_all_reduce(comm, &mine, &lowest, 1, TSR_I64, TSR_MIN, tsr_device_host(), NULL);
    if (local != TSR_OK)
        return tsr_status_restore(&kept, local);
    if (status != TSR_OK || lowest == INT64_MAX)
        return status;
    return tsr_status_set(TSR_ERROR_PEER, "%s: rank %lld failed in its own part; its status and sentence are there", caller,
                          (long long)lowest);
}
