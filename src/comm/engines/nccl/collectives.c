/*
 * Device memory is given to NCCL as it is; moves are made in bytes. Host memory goes through the
 * staging memory, in as many calls of NCCL as it takes, each in place there. A call stages one
 * block per rank if parts are gathered or scattered, else one block.
 */
#include "comm/engines/nccl/collectives.h"

#include "comm/engines/nccl/kernel.h"
#include "comm/engines/nccl/staging.h"
#include "comm/engines/nccl/types.h"
#include "comm/engines/nccl/wait.h"

#include <string.h>

typedef struct collective collective;

/* What differs between collectives. */
typedef struct nccl_operation {
    const char *call;       /* "ncclAllGather" */
    bool many_in, many_out; /* there is one block per rank in `send`, in `receive`; else one block */
    bool reduces;
    ncclResult_t (*issue)(const tsr_nccl_handle *handle, const collective *c, size_t count, cudaStream_t stream);
} nccl_operation;

struct collective {
    const nccl_operation *operation;
    const void *send;
    void *receive;
    size_t count;                 /* elements of a block */
    size_t bytes;                 /* of an element */
    tsr_nccl_reduction reduction; /* of a move: that of bytes */
    int root;
};

static ncclResult_t issue_all_gather(const tsr_nccl_handle *handle, const collective *c, size_t count,
                                     cudaStream_t stream)
{
    return handle->family->api->all_gather(c->send, c->receive, count, c->reduction.type, handle->comm, stream);
}

static ncclResult_t issue_reduce_scatter(const tsr_nccl_handle *handle, const collective *c, size_t count,
                                         cudaStream_t stream)
{
    return handle->family->api->reduce_scatter(c->send, c->receive, count, c->reduction.type, c->reduction.op,
                                               handle->comm, stream);
}

static ncclResult_t issue_all_reduce(const tsr_nccl_handle *handle, const collective *c, size_t count,
                                     cudaStream_t stream)
{
    return handle->family->api->all_reduce(c->send, c->receive, count, c->reduction.type, c->reduction.op, handle->comm,
                                           stream);
}

static ncclResult_t issue_broadcast(const tsr_nccl_handle *handle, const collective *c, size_t count,
                                    cudaStream_t stream)
{
    return handle->family->api->broadcast(c->send, c->receive, count, c->reduction.type, c->root, handle->comm, stream);
}

/* Enqueues the collective with `count` elements per block. */
static tsr_status enqueue(tsr_nccl_handle *handle, const collective *c, size_t count, cudaStream_t stream)
{
    int previous;
    TSR_TRY(tsr_nccl_open_kernel(handle, stream, &previous));
    const ncclResult_t result = c->operation->issue(handle, c, count * c->reduction.numbers, stream);
    tsr_nccl_close(handle, previous);
    return tsr_nccl_conclude(handle, result, c->operation->call, stream);
}

/* What one call of NCCL carries of a collective over host memory: `count` elements of each block,
 * from element `first` on. */
typedef struct share {
    size_t first, count;
} share;

/* How many blocks the staging memory holds. */
static size_t blocks_of(const tsr_nccl_handle *handle, const nccl_operation *operation)
{
    return operation->many_in || operation->many_out ? (size_t)handle->ranks : 1;
}

/* The address at which this rank's own block is staged. */
static char *own_block(const tsr_nccl_handle *handle, const collective *c, share s)
{
    return handle->staging->at + (blocks_of(handle, c->operation) > 1 ? (size_t)handle->rank * s.count * c->bytes : 0);
}

/* Copies between the caller's blocks and the staged ones: one block per rank if `many`, else this
 * rank's. `in`: from `send` to the staging memory; else from there to `receive`. */
static void copy_blocks(const tsr_nccl_handle *handle, const collective *c, share s, bool many, bool in)
{
    const size_t bytes = s.count * c->bytes;
    for (size_t block = 0; block < (many ? (size_t)handle->ranks : 1); block++) {
        const size_t offset = (block * c->count + s.first) * c->bytes;
        char *staged = many ? handle->staging->at + block * bytes : own_block(handle, c, s);
        if (in)
            memcpy(staged, (const char *)c->send + offset, bytes);
        else
            memcpy((char *)c->receive + offset, staged, bytes);
    }
}

static tsr_status run_share(tsr_nccl_handle *handle, const collective *c, share s)
{
    const nccl_operation *operation = c->operation;
    collective staged = *c;
    staged.send = operation->many_in ? handle->staging->at : own_block(handle, c, s);
    staged.receive = operation->many_out ? handle->staging->at : own_block(handle, c, s);
    copy_blocks(handle, c, s, operation->many_in, true);
    TSR_TRY(enqueue(handle, &staged, s.count, handle->family->stream));
    TSR_TRY(tsr_nccl_drain(handle, handle->family->stream, handle->family->timeout_ms));
    copy_blocks(handle, c, s, operation->many_out, false);
    return TSR_OK;
}

static tsr_status run_staged(tsr_nccl_handle *handle, const collective *c)
{
    const size_t block = tsr_nccl_staging_bytes(handle->ranks) / blocks_of(handle, c->operation) / c->bytes,
                 most = block > 0 ? block : 1;
    TSR_TRY(tsr_nccl_reserve(handle, (most < c->count ? most : c->count) * blocks_of(handle, c->operation) * c->bytes));
    for (size_t first = 0; first < c->count; first += most) {
        const share s = {first, most < c->count - first ? most : c->count - first};
        TSR_TRY(run_share(handle, c, s));
    }
    return TSR_OK;
}

static tsr_status run_native(tsr_nccl_handle *handle, collective *c, tsr_dtype dtype, tsr_reduce_op op,
                             tsr_device device, tsr_stream stream)
{
    bool staged;
    c->bytes = tsr_dtype_bytes(dtype);
    c->reduction = (tsr_nccl_reduction){ncclUint8, c->bytes, ncclSum};
    if (c->operation->reduces && !tsr_nccl_find_reduction(dtype, op, &c->reduction))
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s: NCCL does not reduce %s with op %s", c->operation->call,
                              tsr_dtype_name(dtype), tsr_reduce_op_name(op));
    TSR_TRY(tsr_nccl_place(handle, device, &staged));
    if (c->count == 0)
        return TSR_OK;
    return staged ? run_staged(handle, c) : enqueue(handle, c, c->count, stream);
}

tsr_status tsr_nccl_all_gather(void *self, const void *send, void *receive, int64_t count, tsr_dtype dtype,
                               tsr_device device, tsr_stream stream)
{
    static const nccl_operation all_gather = {"ncclAllGather", false, true, false, issue_all_gather};
    collective c = {.operation = &all_gather, .send = send, .receive = receive, .count = (size_t)count};
    return run_native(self, &c, dtype, TSR_SUM, device, stream);
}

tsr_status tsr_nccl_reduce_scatter(void *self, const void *send, void *receive, int64_t count, tsr_dtype dtype,
                                   tsr_reduce_op op, tsr_device device, tsr_stream stream)
{
    static const nccl_operation reduce_scatter = {"ncclReduceScatter", true, false, true, issue_reduce_scatter};
    collective c = {.operation = &reduce_scatter, .send = send, .receive = receive, .count = (size_t)count};
    return run_native(self, &c, dtype, op, device, stream);
}

tsr_status tsr_nccl_all_reduce(void *self, const void *send, void *receive, int64_t count, tsr_dtype dtype,
                               tsr_reduce_op op, tsr_device device, tsr_stream stream)
{
    static const nccl_operation all_reduce = {"ncclAllReduce", false, false, true, issue_all_reduce};
    collective c = {.operation = &all_reduce, .send = send, .receive = receive, .count = (size_t)count};
    return run_native(self, &c, dtype, op, device, stream);
}

tsr_status tsr_nccl_broadcast(void *self, void *buffer, int64_t count, tsr_dtype dtype, int root, tsr_device device,
                              tsr_stream stream)
{
    static const nccl_operation broadcast = {"ncclBroadcast", false, false, false, issue_broadcast};
    collective c = {.operation = &broadcast, .send = buffer, .receive = buffer, .count = (size_t)count, .root = root};
    return run_native(self, &c, dtype, TSR_SUM, device, stream);
}
