#include "comm/collectives/parts.h"

#include "base/checked.h"
#include "comm/collectives/collective.h"

#include <tessera/sys/status.h>

#include <string.h>

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

static int64_t bytes_in_range(const tsr_parts *parts, int rank, int64_t from, int64_t to)
{
    return tsr_max_i64(tsr_min_i64(parts->bytes[rank], to) - from, 0);
}

tsr_status tsr_parts_exchange_range(tsr_comm *comm, const tsr_parts *send, const tsr_parts *receive, int64_t from,
                                    int64_t to)
{
    const tsr_device host = tsr_device_host();
    const tsr_collective bytes = {.bytes = 1, .device = host, .ops = tsr_comm_device_ops(comm, host)};
    tsr_traffic moves = tsr_traffic_begin(comm, &bytes, comm->messages, (size_t)comm->size);
    const int64_t own = bytes_in_range(send, comm->rank, from, to);
    for (int r = 0; r < comm->size; r++) {
        tsr_traffic_send(&moves, r, send->memory, send->begins[r] + from, bytes_in_range(send, r, from, to));
        tsr_traffic_receive(&moves, r, receive->memory, receive->begins[r] + from,
                            bytes_in_range(receive, r, from, to));
    }
    TSR_TRY(tsr_traffic_deliver(&moves));
    if (own > 0)
        memcpy((char *)receive->memory + receive->begins[comm->rank] + from,
               (const char *)send->memory + send->begins[comm->rank] + from, (size_t)own);
    return TSR_OK;
}

tsr_status tsr_parts_probe(tsr_comm *comm, tsr_device device)
{
    return comm->engine.messages.exchange(comm->self, NULL, 0, NULL, 0, device, NULL);
}
