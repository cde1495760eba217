#include "hosts/tvm/disco/collectives.h"

#include "hosts/tvm/disco/seats.h"
#include "hosts/tvm/tensors.h"

#include <tessera/sys/status.h>

#include <string.h>

static tsr_status take_seat(const tsr_tvm_call *call, tsr_disco_seat **out)
{
    *out = tsr_disco_sitting();
    return *out ? TSR_OK
                : tsr_status_set(TSR_ERROR_STATE, "%s: this thread is not a worker of a session with this library",
                                 call->name);
}

/* The communicator of a collective, by its argument `in_group`. */
static tsr_status take_comm(tsr_tvm_call *call, int32_t index, tsr_comm **out)
{
    tsr_disco_seat *seat;
    int64_t in_group;
    TSR_TRY(take_seat(call, &seat));
    TSR_TRY(tsr_tvm_integer(call, index, "in_group", &in_group));
    *out = in_group ? seat->group : seat->all;
    return TSR_OK;
}

/* A dense tensor, and the number of its elements. */
static tsr_status take_dense(tsr_tvm_call *call, int32_t index, const char *what, tsr_tensor *out, int64_t *count)
{
    bool given;
    TSR_TRY(tsr_tvm_tensor(call, index, what, &given, out));
    if (!given)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is None: this worker needs it", call->name, what);
    if (!tsr_tensor_is_contiguous(out))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is strided: it must be contiguous", call->name, what);
    return tsr_tensor_count(out, count);
}

/* What a worker sends and receives, and how many elements these have. */
typedef struct pair {
    tsr_tensor send, receive;
    int64_t sent, received;
} pair;

/* `sent` times the elements of one tensor must be `received` times those of the other. */
static tsr_status check_pair(const tsr_tvm_call *call, const pair *p, int64_t sent, int64_t received)
{
    if (p->send.dtype != p->receive.dtype)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: send is %s and receive is %s: they must be alike", call->name,
                              tsr_dtype_name(p->send.dtype), tsr_dtype_name(p->receive.dtype));
    if (p->sent * sent == p->received * received)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: send has %lld elements and receive %lld: %s must have %lld times as many", call->name,
                          (long long)p->sent, (long long)p->received, sent >= received ? "receive" : "send",
                          (long long)(sent >= received ? sent : received));
}

static tsr_status take_pair(tsr_tvm_call *call, int32_t send, int32_t receive, pair *out)
{
    TSR_TRY(take_dense(call, send, "send", &out->send, &out->sent));
    return take_dense(call, receive, "receive", &out->receive, &out->received);
}

static tsr_status read_kind(tsr_tvm_call *call, tsr_reduce_op *out)
{
    static const tsr_reduce_op ops[] = {TSR_SUM, TSR_PROD, TSR_MIN, TSR_MAX, TSR_AVG};
    int64_t kind;
    TSR_TRY(tsr_tvm_integer(call, 1, "kind", &kind));
    if (kind < 0 || kind > 4)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: kind %lld: sum, prod, min, max and avg are 0 to 4", call->name,
                              (long long)kind);
    *out = ops[kind];
    return TSR_OK;
}

tsr_status tsr_disco_allreduce(tsr_tvm_call *call)
{
    tsr_comm *comm;
    tsr_reduce_op op = TSR_SUM;
    pair p;
    TSR_TRY(take_comm(call, 2, &comm));
    TSR_TRY(read_kind(call, &op));
    TSR_TRY(take_pair(call, 0, 3, &p));
    TSR_TRY(check_pair(call, &p, 1, 1));
    return tsr_comm_all_reduce(comm, p.send.data, p.receive.data, p.sent, p.send.dtype, op, tsr_device_host(), NULL);
}

tsr_status tsr_disco_allgather(tsr_tvm_call *call)
{
    tsr_comm *comm;
    pair p;
    TSR_TRY(take_comm(call, 1, &comm));
    TSR_TRY(take_pair(call, 0, 2, &p));
    TSR_TRY(check_pair(call, &p, tsr_comm_size(comm), 1));
    return tsr_comm_all_gather(comm, p.send.data, p.receive.data, p.sent, NULL, p.send.dtype, tsr_device_host(), NULL);
}

tsr_status tsr_disco_broadcast(tsr_tvm_call *call)
{
    tsr_comm *comm;
    pair p;
    TSR_TRY(take_comm(call, 1, &comm));
    TSR_TRY(take_dense(call, 2, "receive", &p.receive, &p.received));
    if (tsr_comm_rank(comm) == 0) {
        TSR_TRY(take_dense(call, 0, "send", &p.send, &p.sent));
        TSR_TRY(check_pair(call, &p, 1, 1));
        if (p.received > 0)
            memmove(p.receive.data, p.send.data, (size_t)p.received * tsr_dtype_bytes(p.receive.dtype));
    }
    return tsr_comm_broadcast(comm, p.receive.data, p.received, p.receive.dtype, 0, tsr_device_host(), NULL);
}

tsr_status tsr_disco_scatter(tsr_tvm_call *call)
{
    tsr_comm *comm;
    pair p = {.sent = 0};
    TSR_TRY(take_comm(call, 1, &comm));
    TSR_TRY(take_dense(call, 2, "receive", &p.receive, &p.received));
    if (tsr_comm_rank(comm) == 0) {
        TSR_TRY(take_dense(call, 0, "send", &p.send, &p.sent));
        TSR_TRY(check_pair(call, &p, 1, tsr_comm_size(comm)));
    }
    return tsr_comm_scatter(comm, p.send.data, p.receive.data, p.received, NULL, p.receive.dtype, 0, tsr_device_host(),
                            NULL);
}

tsr_status tsr_disco_gather(tsr_tvm_call *call)
{
    tsr_comm *comm;
    pair p = {.received = 0};
    TSR_TRY(take_comm(call, 1, &comm));
    TSR_TRY(take_dense(call, 0, "send", &p.send, &p.sent));
    if (tsr_comm_rank(comm) == 0) {
        TSR_TRY(take_dense(call, 2, "receive", &p.receive, &p.received));
        TSR_TRY(check_pair(call, &p, tsr_comm_size(comm), 1));
    }
    return tsr_comm_gather(comm, p.send.data, p.receive.data, p.sent, NULL, p.send.dtype, 0, tsr_device_host(), NULL);
}

/* One message between two workers, of which both call. */
static tsr_status message(tsr_tvm_call *call, int64_t peer, bool send)
{
    tsr_disco_seat *seat;
    tsr_tensor buffer;
    int64_t count;
    tsr_comm *comm;
    TSR_TRY(take_seat(call, &seat));
    TSR_TRY(take_dense(call, 0, "buffer", &buffer, &count));
    if (peer < 0 || peer >= seat->workers || peer == seat->id)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: worker %lld: there are %d workers, and this is worker %d",
                              call->name, (long long)peer, seat->workers, seat->id);
    TSR_TRY(tsr_disco_seat_pair(seat, (int)peer, &comm));
    const tsr_message whole = {peer < seat->id ? 0 : 1, buffer.data, (size_t)count * tsr_dtype_bytes(buffer.dtype)};
    return tsr_comm_exchange(comm, &whole, send ? 1 : 0, &whole, send ? 0 : 1, tsr_device_host(), NULL);
}

tsr_status tsr_disco_receive_from_first(tsr_tvm_call *call)
{
    return message(call, 0, false);
}

/* A worker at this one's place, `groups` groups further on. */
static tsr_status message_to_group(tsr_tvm_call *call, int groups, bool send)
{
    tsr_disco_seat *seat;
    TSR_TRY(take_seat(call, &seat));
    const int peer = seat->id + groups * seat->group_size;
    if (peer < 0 || peer >= seat->workers)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: worker %d is in the %s group", call->name, seat->id,
                              groups > 0 ? "last" : "first");
    return message(call, peer, send);
}

tsr_status tsr_disco_send_to_next_group(tsr_tvm_call *call)
{
    return message_to_group(call, 1, true);
}

tsr_status tsr_disco_receive_from_previous_group(tsr_tvm_call *call)
{
    return message_to_group(call, -1, false);
}

tsr_status tsr_disco_send(tsr_tvm_call *call)
{
    int64_t worker;
    TSR_TRY(tsr_tvm_integer(call, 1, "worker", &worker));
    return message(call, worker, true);
}

tsr_status tsr_disco_receive(tsr_tvm_call *call)
{
    int64_t worker;
    TSR_TRY(tsr_tvm_integer(call, 1, "worker", &worker));
    return message(call, worker, false);
}

tsr_status tsr_disco_sync(tsr_tvm_call *call)
{
    (void)call;
    return TSR_OK;
}
