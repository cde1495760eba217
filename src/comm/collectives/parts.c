#include "comm/collectives/parts.h"

#include "comm/collectives/collective.h"

#include <tessera/sys/status.h>

tsr_status tsr_parts_exchange(tsr_comm *comm, const void *send, const int64_t *send_bytes, void *receive,
                              const int64_t *receive_bytes, tsr_device device)
{
    const tsr_collective bytes = {.bytes = 1, .device = device, .ops = tsr_comm_device_ops(comm, device)};
    tsr_traffic moves = tsr_traffic_begin(comm, &bytes, comm->messages, (size_t)comm->size);
    int64_t sent = 0, received = 0, own_sent = 0, own_received = 0;
    for (int r = 0; r < comm->size; r++) {
        tsr_traffic_send(&moves, r, send, sent, send_bytes[r]);
        tsr_traffic_receive(&moves, r, receive, received, receive_bytes[r]);
        own_sent = r == comm->rank ? sent : own_sent;
        own_received = r == comm->rank ? received : own_received;
        sent += send_bytes[r];
        received += receive_bytes[r];
    }
    TSR_TRY(tsr_traffic_deliver(&moves));
    TSR_TRY(tsr_collective_copy(&bytes, tsr_element(&bytes, receive, own_received), tsr_element(&bytes, send, own_sent),
                                send_bytes[comm->rank]));
    if (!device.driver)
        return TSR_OK;
    TSR_TRY(tsr_comm_wait_within(comm, NULL));
    return tsr_device_settle(&bytes.ops, NULL, TSR_OK);
}

tsr_status tsr_parts_probe(tsr_comm *comm, tsr_device device)
{
    return comm->engine.messages.exchange(comm->self, NULL, 0, NULL, 0, device, NULL);
}
