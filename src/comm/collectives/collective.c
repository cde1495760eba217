#include "comm/collectives/collective.h"

#include "base/checked.h"
#include "base/hash.h"
#include "base/text/text.h"

#include <stdint.h>

/* A description lists at most this many counts. */
#define COUNTS_NAMED 16

static tsr_status refuse_count(const tsr_collective *call, const char *name, int rank, int64_t value)
{
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s[%d] is %lld; counts are 0 or more", call->caller, name, rank,
                          (long long)value);
}

/* Sums one count per rank; `counts` NULL: call->count each. A negative count is an error. */
static tsr_status sum_counts(const tsr_comm *comm, const tsr_collective *call, const char *name, const int64_t *counts,
                             int64_t *out)
{
    int64_t sum = 0;
    for (int r = 0; r < comm->size; r++) {
        const int64_t value = counts ? counts[r] : call->count;
        if (value < 0)
            return refuse_count(call, name, r, value);
        if (!tsr_add_sizes(sum, value, &sum))
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s sum up to more than 2^63 - 1 elements", call->caller,
                                  name);
    }
    *out = sum;
    return TSR_OK;
}

static tsr_status check_fields(const tsr_comm *comm, const tsr_collective *call)
{
    const tsr_operation *operation = call->operation;
    const tsr_dtype_info *info = tsr_dtype_get(call->dtype);
    if (!info)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: dtype is %d, which is not a dtype", call->caller,
                              (int)call->dtype);
    if (operation->reduces && ((unsigned)call->op >= TSR_REDUCE_OP_END || !(info->reduce_ops & 1u << call->op)))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: op is %s (%d), which %s does not have", call->caller,
                              tsr_reduce_op_name(call->op), (int)call->op, info->name);
    if (operation->rooted && (call->root < 0 || call->root >= comm->size))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: root is %d; the ranks are 0 to %d", call->caller, call->root,
                              comm->size - 1);
    if (!call->counts && call->count < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: count is %lld; it must be 0 or more", call->caller,
                              (long long)call->count);
    return TSR_OK;
}

/* `*whole`: elements of all parts together, or of the buffer if the operation has no parts. */
static tsr_status count_whole(const tsr_comm *comm, const tsr_collective *call, int64_t *whole)
{
    *whole = call->count;
    if (call->operation->parts)
        TSR_TRY(sum_counts(comm, call, call->receive_counts ? "send_counts" : "counts", call->counts, whole));
    return TSR_OK;
}

static tsr_status check_bytes(const tsr_collective *call, int64_t elements)
{
    int64_t bytes;
    if (!tsr_multiply(elements, (int64_t)call->bytes, &bytes))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %lld elements of %s are more than 2^63 - 1 bytes", call->caller,
                              (long long)elements, tsr_dtype_name(call->dtype));
    return TSR_OK;
}

/* Checks this rank's device and stream, and that no buffer with elements is NULL. */
static tsr_status check_buffers(const tsr_comm *comm, const tsr_collective *call)
{
    const int rank = tsr_comm_name(comm, comm->rank);
    if (!tsr_host_is_meant(call->device, call->stream))
        return tsr_refuse_host(call->caller, call->device, call->stream);
    if (call->send_total > 0 && !call->send)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL on rank %d, which %s %lld elements", call->caller,
                              call->buffer ? call->buffer : "send", rank, call->buffer ? "has" : "sends",
                              (long long)call->send_total);
    if (call->receive_total > 0 && !call->receive)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: receive is NULL on rank %d, which receives %lld elements",
                              call->caller, rank, (long long)call->receive_total);
    return TSR_OK;
}

static tsr_status check_overlap(const tsr_comm *comm, const tsr_collective *call, bool in_place)
{
    const uintptr_t send = (uintptr_t)call->send, receive = (uintptr_t)call->receive;
    const uintptr_t send_bytes = (uintptr_t)call->send_total * call->bytes,
                    receive_bytes = (uintptr_t)call->receive_total * call->bytes;
    if (in_place || send_bytes == 0 || receive_bytes == 0 || send + send_bytes <= receive ||
        receive + receive_bytes <= send)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: send and receive overlap on rank %d", call->caller,
                          tsr_comm_name(comm, comm->rank));
}

static tsr_status check_buffers_apart(const tsr_comm *comm, const tsr_collective *call)
{
    TSR_TRY(check_buffers(comm, call));
    return check_overlap(comm, call, call->operation->in_place && call->operation->in_place(comm, call));
}

tsr_status tsr_collective_check(const tsr_comm *comm, tsr_collective *call)
{
    int64_t whole;
    call->ops = tsr_comm_device_ops(comm, call->device);
    TSR_TRY(check_fields(comm, call));
    call->bytes = tsr_dtype_bytes(call->dtype);
    TSR_TRY(count_whole(comm, call, &whole));
    TSR_TRY(check_bytes(call, whole));
    TSR_TRY(call->operation->extents(comm, call, whole));
    TSR_TRY(check_bytes(call, call->receive_total));
    return check_buffers_apart(comm, call);
}

tsr_status tsr_extents_gather_all(const tsr_comm *comm, tsr_collective *call, int64_t whole)
{
    call->send_total = tsr_part_count(call, comm->rank);
    call->receive_total = whole;
    return TSR_OK;
}

tsr_status tsr_extents_scatter_all(const tsr_comm *comm, tsr_collective *call, int64_t whole)
{
    call->send_total = whole;
    call->receive_total = tsr_part_count(call, comm->rank);
    return TSR_OK;
}

tsr_status tsr_extents_same(const tsr_comm *comm, tsr_collective *call, int64_t whole)
{
    (void)comm;
    call->send_total = whole;
    call->receive_total = whole;
    return TSR_OK;
}

tsr_status tsr_extents_exchange(const tsr_comm *comm, tsr_collective *call, int64_t whole)
{
    if (!call->counts != !call->receive_counts)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL; give both counts or neither", call->caller,
                              call->counts ? "receive_counts" : "send_counts");
    call->send_total = whole;
    return sum_counts(comm, call, "receive_counts", call->receive_counts, &call->receive_total);
}

tsr_status tsr_extents_from_root(const tsr_comm *comm, tsr_collective *call, int64_t whole)
{
    call->send_total = comm->rank == call->root ? whole : 0;
    call->receive_total = tsr_part_count(call, comm->rank);
    return TSR_OK;
}

tsr_status tsr_extents_to_root(const tsr_comm *comm, tsr_collective *call, int64_t whole)
{
    call->send_total = tsr_part_count(call, comm->rank);
    call->receive_total = comm->rank == call->root ? whole : 0;
    return TSR_OK;
}

bool tsr_in_place_whole(const tsr_comm *comm, const tsr_collective *call)
{
    (void)comm;
    return call->send == call->receive;
}

bool tsr_in_place_part(const tsr_comm *comm, const tsr_collective *call)
{
    return call->send == tsr_element(call, call->receive, tsr_part_offset(call, comm->rank));
}

uint64_t tsr_collective_fingerprint(const tsr_comm *comm, const tsr_collective *call)
{
    const tsr_operation *operation = call->operation;
    uint64_t hash = tsr_hash_text(TSR_HASH_SEED, operation->name);
    hash = tsr_hash_word(hash, (uint64_t)call->dtype);
    if (operation->reduces)
        hash = tsr_hash_word(hash, (uint64_t)call->op);
    if (operation->rooted)
        hash = tsr_hash_word(hash, (uint64_t)call->root);
    /* The counts of an all-to-all differ between ranks: they are compared apart, message by message
     * (tsr_direct_match(), balance.h). */
    hash = tsr_hash_word(hash, call->receive_counts ? 2 : call->counts != NULL);
    if (!call->counts)
        hash = tsr_hash_word(hash, (uint64_t)call->count);
    else if (!call->receive_counts)
        hash = tsr_hash_words(hash, call->counts, (size_t)comm->size);
    return tsr_hash_text(hash, call->ops.table->name);
}

void tsr_collective_describe(const void *arg, char *text, size_t capacity)
{
    const tsr_described *described = arg;
    const tsr_collective *call = described->call;
    tsr_text words = {text, capacity, 0};
    char device[64];
    tsr_text_append(&words, "%s of ", call->operation->name);
    if (call->receive_counts)
        tsr_text_append(&words, "counts by rank");
    else if (!call->counts)
        tsr_text_append(&words, "%lld", (long long)call->count);
    else
        for (int r = 0; r < described->ranks && r <= COUNTS_NAMED; r++)
            tsr_text_append(&words, r == COUNTS_NAMED ? ",.." : r ? ",%lld" : "%lld", (long long)call->counts[r]);
    tsr_text_append(&words, " %s", tsr_dtype_name(call->dtype));
    if (call->operation->reduces)
        tsr_text_append(&words, ", op %s", tsr_reduce_op_name(call->op));
    if (call->operation->rooted)
        tsr_text_append(&words, ", root %d", call->root);
    tsr_text_append(&words, ", on %s", tsr_device_print(call->device, device));
}

int64_t tsr_part_count(const tsr_collective *call, int rank)
{
    return call->counts ? call->counts[rank] : call->count;
}

int64_t tsr_part_offset(const tsr_collective *call, int rank)
{
    if (!call->counts)
        return call->count * rank;
    int64_t offset = 0;
    for (int r = 0; r < rank; r++)
        offset += call->counts[r];
    return offset;
}

tsr_share tsr_share_of(const tsr_comm *comm, const tsr_collective *call, int rank)
{
    const int64_t line = (int64_t)(TSR_LINE / call->bytes);
    const int64_t lines = tsr_ceil_div(call->count, line);
    const int64_t each = lines / comm->size, more = lines % comm->size;
    const int64_t begin = each * rank + tsr_min_i64(rank, more);
    const int64_t end = begin + each + (rank < more);
    return (tsr_share){tsr_min_i64(begin * line, call->count), tsr_min_i64(end * line, call->count)};
}

tsr_status tsr_collective_copy(const tsr_collective *call, void *dst, const void *src, int64_t count)
{
    if (count == 0 || dst == src)
        return TSR_OK;
    const tsr_device_ops *ops = &call->ops;
    return ops->table->copy(ops->self, ops->index, dst, src, (size_t)count * call->bytes, TSR_COPY_WITHIN,
                            call->stream);
}

tsr_status tsr_collective_reduce(tsr_comm *comm, const tsr_collective *call, int64_t count, int destinations)
{
    if (count == 0)
        return TSR_OK;
    const tsr_device_ops *ops = &call->ops;
    const tsr_box_reduce reduce = {
        .dtype = call->dtype,
        .op = call->op,
        .divisor = call->op == TSR_AVG ? comm->size : 1,
        .ndim = 1,
        .shape = {count},
        .src_count = comm->size,
        .dst_count = destinations,
        .src = comm->sources,
        .src_strides = call->ones,
        .dst = comm->destinations,
        .dst_strides = call->ones,
    };
    return ops->table->reduce(ops->self, ops->index, &reduce, call->stream);
}

tsr_traffic tsr_traffic_begin(tsr_comm *comm, const tsr_collective *call, tsr_message *messages, size_t room)
{
    return (tsr_traffic){comm, call, messages, messages + room, 0, 0};
}

static bool crosses(const tsr_traffic *traffic, int rank, int64_t count)
{
    return rank != traffic->comm->rank && count > 0;
}

static tsr_message message_of(const tsr_traffic *traffic, int rank, const void *base, int64_t offset, int64_t count)
{
    return (tsr_message){rank, tsr_element(traffic->call, base, offset), (size_t)count * traffic->call->bytes};
}

void tsr_traffic_send(tsr_traffic *traffic, int rank, const void *base, int64_t offset, int64_t count)
{
    if (crosses(traffic, rank, count))
        traffic->sends[traffic->send_count++] = message_of(traffic, rank, base, offset, count);
}

void tsr_traffic_receive(tsr_traffic *traffic, int rank, const void *base, int64_t offset, int64_t count)
{
    if (crosses(traffic, rank, count))
        traffic->receives[traffic->receive_count++] = message_of(traffic, rank, base, offset, count);
}

tsr_status tsr_traffic_deliver(const tsr_traffic *traffic)
{
    const tsr_comm *comm = traffic->comm;
    return comm->engine.messages.exchange(comm->self, traffic->sends, traffic->send_count, traffic->receives,
                                          traffic->receive_count, traffic->call->device, traffic->call->stream);
}

bool tsr_native_is_exact(tsr_dtype dtype)
{
    const tsr_dtype_class kind = tsr_dtype_get(dtype)->kind;
    return kind == TSR_CLASS_SIGNED || kind == TSR_CLASS_UNSIGNED || kind == TSR_CLASS_BOOL;
}
