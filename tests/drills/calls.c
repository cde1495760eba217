#include "calls.h"

#include <tessera/tessera.h>

#include <string.h>

enum { SIDE = 64, VALUES = SIDE * SIDE, TERMS = 1000, PART = 8 };

static tsr_status redistribute(tsr_comm *comm)
{
    static float values[VALUES];
    const int64_t shape[] = {SIDE, SIDE}, ranks = tsr_comm_size(comm);
    const tsr_tensor global = tsr_tensor_contiguous(values, TSR_F32, 2, shape);
    const tsr_placement rows = tsr_shard(0), columns = tsr_shard(1);
    tsr_mesh *mesh = NULL;
    tsr_dtensor *x = NULL, *y = NULL;
    tsr_status status = tsr_mesh_create(comm, 1, &ranks, NULL, NULL, &mesh);
    if (status == TSR_OK)
        status = tsr_distribute_tensor(&global, mesh, &rows, NULL, &x);
    if (status == TSR_OK)
        status = tsr_redistribute(x, &columns, &y);
    tsr_dtensor_destroy(x);
    tsr_dtensor_destroy(y);
    tsr_mesh_destroy(mesh);
    return status;
}

static tsr_status split(tsr_comm *comm)
{
    tsr_comm *group = NULL;
    tsr_status status = tsr_comm_split(comm, tsr_comm_rank(comm) % 3, 0, &group);
    if (status == TSR_OK)
        status = tsr_comm_barrier(group);
    tsr_comm_destroy(group);
    return status;
}

static tsr_status exchange(tsr_comm *comm)
{
    char out[VALUES] = {0}, in[VALUES];
    const int rank = tsr_comm_rank(comm), size = tsr_comm_size(comm);
    const tsr_message send = {(rank + 1) % size, out, sizeof out}, receive = {(rank + size - 1) % size, in, sizeof in};
    const size_t count = size > 1;
    memset(out, rank, sizeof out);
    const tsr_status status = tsr_comm_exchange(comm, &send, count, &receive, count, tsr_device_host(), NULL);
    return status == TSR_OK && count && in[VALUES - 1] != (char)receive.peer ? TSR_ERROR_INTERNAL : status;
}

static tsr_status reduce(tsr_comm *comm)
{
    const int ranks = tsr_comm_size(comm);
    int32_t send[TERMS], receive[TERMS];
    for (int i = 0; i < TERMS; i++)
        send[i] = i + tsr_comm_rank(comm);
    tsr_status status = tsr_comm_all_reduce(comm, send, receive, TERMS, TSR_I32, TSR_SUM, tsr_device_host(), NULL);
    for (int i = 0; status == TSR_OK && i < TERMS; i++)
        if (receive[i] != i * ranks + ranks * (ranks - 1) / 2)
            status = TSR_ERROR_INTERNAL;
    return status;
}

static tsr_status gather(tsr_comm *comm)
{
    const int32_t send = tsr_comm_rank(comm);
    int32_t receive[64] = {0};
    const tsr_status status = tsr_comm_all_gather(comm, &send, receive, 1, NULL, TSR_I32, tsr_device_host(), NULL);
    return status == TSR_OK && receive[tsr_comm_size(comm) - 1] != tsr_comm_size(comm) - 1 ? TSR_ERROR_INTERNAL
                                                                                           : status;
}

static tsr_status broadcast(tsr_comm *comm)
{
    const int root = tsr_comm_size(comm) - 1;
    int32_t buffer[PART] = {tsr_comm_rank(comm)};
    const tsr_status status = tsr_comm_broadcast(comm, buffer, PART, TSR_I32, root, tsr_device_host(), NULL);
    return status == TSR_OK && buffer[0] != root ? TSR_ERROR_INTERNAL : status;
}

tsr_status make_call(tsr_comm *comm, int64_t which)
{
    static tsr_status (*const calls[CALLS])(tsr_comm *) = {tsr_comm_barrier, reduce,   split,       gather,
                                                           broadcast,        exchange, redistribute};
    return calls[which](comm);
}
