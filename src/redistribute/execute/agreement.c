#include "redistribute/execute/agreement.h"

#include "comm/core/agree.h"
#include "comm/core/comm.h"
#include "comm/core/traits.h"
#include "redistribute/schedule/plan_text.h"

#include <tessera/sys/status.h>

typedef enum memory { NOWHERE, WITHOUT_STREAMS, WITH_STREAMS } memory;

static bool has_streams(tsr_device device)
{
    return device.driver && tsr_device_driver_table(device.driver, NULL)->event_record;
}

static memory memory_of(const tsr_tensor *tensor)
{
    return has_streams(tensor->device) ? WITH_STREAMS : WITHOUT_STREAMS;
}

static memory later(memory a, memory b)
{
    return a > b ? a : b;
}

/* Where this rank's tensors are; tensors that checks will refuse count too. */
static memory find_memory(const tsr_plan *plan, const tsr_tensor *src, const tsr_tensor *dst)
{
    memory found = NOWHERE;
    for (size_t i = 0; i < plan->count; i++) {
        if (src && plan->items[i].in_src)
            found = later(found, memory_of(&src[i]));
        if (dst && plan->items[i].in_dst)
            found = later(found, memory_of(&dst[i]));
    }
    return found;
}

bool tsr_execution_is_checked(const tsr_execution *e, const tsr_tensor *src, const tsr_tensor *dst)
{
    tsr_holding *const held = tsr_holding_of(e->group);
    if (tsr_comm_is_direct(e->group->comm))
        return true;
    const memory found = find_memory(e->plan, src, dst);
    held->streams = found == NOWHERE ? e->stream || held->streams : found == WITH_STREAMS;
    return !held->streams && tsr_comm_is_checked(e->group->comm);
}

void tsr_execution_go_by(const tsr_group *group, tsr_device device)
{
    if (has_streams(device))
        tsr_holding_of(group)->streams = true;
}

tsr_status tsr_execution_agree(const tsr_execution *e, tsr_status local)
{
    if (e->checked)
        return tsr_comm_agree(e->group->comm, e->plan->hash, local, tsr_plan_describe_call, e->plan);
    return local == TSR_OK ? TSR_OK : tsr_execution_give_up(e, local);
}

tsr_status tsr_execution_give_up(const tsr_execution *e, tsr_status local)
{
    tsr_kept_sentence kept;
    if (e->checked)
        return local;
    tsr_status_keep(&kept);
    tsr_comm_abort(e->group->comm);
    return tsr_status_set(
        local, "%s (peers are not told of failures in this execution, so the communicator was aborted)", kept.text);
}
