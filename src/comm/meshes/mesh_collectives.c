/* The public calls of <tessera/mesh_comm.h>, but for tsr_mesh_split(). */
#include "comm/collectives/collectives.h"
#include "comm/meshes/along.h"
#include "comm/meshes/sets.h"

#include <tessera/mesh_comm.h>
#include <tessera/sys/status.h>

static tsr_status run_in_group(const tsr_mesh *mesh, const char *dims, tsr_collective *call)
{
    const tsr_group *group;
    TSR_TRY(tsr_mesh_find_group(mesh, call->caller, dims, &group));
    return group ? tsr_collective_run(group->comm, call) : TSR_OK;
}

static tsr_status run_along(const tsr_mesh *mesh, const char *dims, tsr_collective *call)
{
    TSR_TRY(tsr_mesh_check_comm(mesh, call->caller));
    tsr_comm *const comm = tsr_mesh_comm(mesh);
    TSR_TRY(tsr_comm_enter(comm, call->caller));
    return tsr_comm_leave(comm, run_in_group(mesh, dims, call));
}

tsr_status tsr_mesh_all_reduce(const tsr_mesh *mesh, const char *dims, const void *send, void *receive, int64_t count,
                               tsr_dtype dtype, tsr_reduce_op op, tsr_device device, tsr_stream stream)
{
    tsr_collective call = tsr_collective_of("tsr_mesh_all_reduce", &tsr_all_reduce_operation, send, receive, count,
                                            dtype, device, stream);
    call.op = op;
    return run_along(mesh, dims, &call);
}

tsr_status tsr_mesh_all_gather(const tsr_mesh *mesh, const char *dims, const void *send, void *receive, int64_t count,
                               const int64_t *counts, tsr_dtype dtype, tsr_device device, tsr_stream stream)
{
    tsr_collective call = tsr_collective_of("tsr_mesh_all_gather", &tsr_all_gather_operation, send, receive, count,
                                            dtype, device, stream);
    call.counts = counts;
    return run_along(mesh, dims, &call);
}

tsr_status tsr_mesh_reduce_scatter(const tsr_mesh *mesh, const char *dims, const void *send, void *receive,
                                   int64_t count, const int64_t *counts, tsr_dtype dtype, tsr_reduce_op op,
                                   tsr_device device, tsr_stream stream)
{
    tsr_collective call = tsr_collective_of("tsr_mesh_reduce_scatter", &tsr_reduce_scatter_operation, send, receive,
                                            count, dtype, device, stream);
    call.counts = counts;
    call.op = op;
    return run_along(mesh, dims, &call);
}

tsr_status tsr_mesh_all_to_all(const tsr_mesh *mesh, const char *dims, const void *send, void *receive, int64_t count,
                               const int64_t *send_counts, const int64_t *receive_counts, tsr_dtype dtype,
                               tsr_device device, tsr_stream stream)
{
    tsr_collective call = tsr_collective_of("tsr_mesh_all_to_all", &tsr_all_to_all_operation, send, receive, count,
                                            dtype, device, stream);
    call.counts = send_counts;
    call.receive_counts = receive_counts;
    return run_along(mesh, dims, &call);
}

tsr_status tsr_mesh_broadcast(const tsr_mesh *mesh, const char *dims, void *buffer, int64_t count, tsr_dtype dtype,
                              int root, tsr_device device, tsr_stream stream)
{
    tsr_collective call =
        tsr_collective_of("tsr_mesh_broadcast", &tsr_broadcast_operation, buffer, buffer, count, dtype, device, stream);
    call.buffer = "buffer";
    call.root = root;
    return run_along(mesh, dims, &call);
}

/* A call for one number on the host, in place. */
static tsr_collective call_of_number(const char *caller, const tsr_operation *operation, void *value, tsr_dtype dtype)
{
    tsr_collective call = tsr_collective_of(caller, operation, value, value, 1, dtype, tsr_device_host(), NULL);
    call.buffer = "value";
    return call;
}

tsr_status tsr_mesh_all_reduce_f64(const tsr_mesh *mesh, const char *dims, double *value, tsr_reduce_op op)
{
    tsr_collective call = call_of_number("tsr_mesh_all_reduce_f64", &tsr_all_reduce_operation, value, TSR_F64);
    call.op = op;
    return run_along(mesh, dims, &call);
}

tsr_status tsr_mesh_all_reduce_i64(const tsr_mesh *mesh, const char *dims, int64_t *value, tsr_reduce_op op)
{
    tsr_collective call = call_of_number("tsr_mesh_all_reduce_i64", &tsr_all_reduce_operation, value, TSR_I64);
    call.op = op;
    return run_along(mesh, dims, &call);
}

tsr_status tsr_mesh_broadcast_f64(const tsr_mesh *mesh, const char *dims, double *value, int root)
{
    tsr_collective call = call_of_number("tsr_mesh_broadcast_f64", &tsr_broadcast_operation, value, TSR_F64);
    call.root = root;
    return run_along(mesh, dims, &call);
}

tsr_status tsr_mesh_broadcast_i64(const tsr_mesh *mesh, const char *dims, int64_t *value, int root)
{
    tsr_collective call = call_of_number("tsr_mesh_broadcast_i64", &tsr_broadcast_operation, value, TSR_I64);
    call.root = root;
    return run_along(mesh, dims, &call);
}
