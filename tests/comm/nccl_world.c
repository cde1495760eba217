#include "nccl_world.h"

#include "standin_ranks.h"

tsr_status wait_for_peers(tsr_comm *comm, int k)
{
    const int peer = (tsr_comm_rank(comm) + 1) % tsr_comm_size(comm);
    char out[8] = "", in[8];
    const tsr_message send = {peer, out, 8}, receive = {peer, in, 8};
    const size_t count = tsr_comm_size(comm) > 1;
    tsr_comm *part = NULL;
    tsr_status status;
    switch (k % MOST_CALLS) {
    case 0:
        return tsr_comm_barrier(comm);
    case 1:
        return tsr_comm_exchange(comm, &send, count, &receive, count, tsr_device_host(), NULL);
    case 2:
        TSR_TRY(tsr_comm_exchange_start(comm, &send, count, &receive, count, tsr_device_host(), NULL));
        return tsr_comm_exchange_finish(comm);
    case 3:
        status = tsr_comm_split(comm, 0, 0, &part);
        tsr_comm_destroy(part);
        return status;
    default:
        return tsr_comm_all_gather(comm, out, in, 1, NULL, TSR_I8, tsr_device_host(), NULL);
    }
}

void begin_world(world *w, int devices)
{
    standin_begin(devices, 99);
    w->options = (tsr_nccl_options)TSR_NCCL_OPTIONS_INIT;
    w->options.timeout_ms = SHORT_MS;
    assert_int_equal(tsr_nccl_make_id(&standin_api, &w->id), TSR_OK);
}

void end_world(void)
{
    const char *found = standin_end();
    if (found)
        fail_msg("%s", found);
}

void assert_ran(tsr_status status)
{
    if (status != TSR_OK)
        fail_msg("%s", tsr_status_message());
}
