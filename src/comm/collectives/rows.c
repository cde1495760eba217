/*
 * Rows that change ranks in numbers which only their senders know (MPI_Alltoallv with an exchange
 * of counts before it). Where ranks read one another's memory, counts and rows take one call; by
 * messages, counts travel first.
 */
#include "base/checked.h"
#include "base/hash.h"
#include "comm/collectives/collective.h"
#include "comm/core/agree.h"
#include "comm/core/traits.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

#define CALL "tsr_comm_exchange_rows"

/* One rank's call. */
typedef struct rows_call {
    const tsr_tensor *send, *receive;
    const int64_t *send_counts;
    int64_t *receive_counts;
    int64_t total;       /* rows that this rank receives; valid when receive_counts are */
    tsr_collective rows; /* copies elements of a row's size */
} rows_call;

static tsr_status check_pointers(const rows_call *e)
{
    const struct {
        const void *pointer;
        const char *name;
    } given[] = {{e->send, "send"},
                 {e->send_counts, "send_counts"},
                 {e->receive, "receive"},
                 {e->receive_counts, "receive_counts"}};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        if (!given[i].pointer)
            return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": %s is NULL", given[i].name);
    return TSR_OK;
}

/* Checks one tensor and computes the bytes of its rows. */
static tsr_status check_rows(const tsr_tensor *tensor, const char *name, size_t *row_bytes)
{
    int64_t count;
    const tsr_status status = tsr_tensor_count(tensor, &count);
    if (status != TSR_OK)
        return tsr_status_set(status, CALL ": %s: %s", name, tsr_status_message());
    if (tensor->ndim == 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": %s is a scalar, which has no rows", name);
    if (!tsr_tensor_is_contiguous(tensor))
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": %s has gaps: rows are sent from and to contiguous tensors",
                              name);
    if (count > 0 && !tensor->data)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": %s has no data", name);
    *row_bytes = tsr_dtype_bytes(tensor->dtype);
    for (int dim = 1; dim < tensor->ndim; dim++)
        *row_bytes *= (size_t)tensor->shape[dim];
    return TSR_OK;
}

static tsr_status check_pair(rows_call *e)
{
    size_t sent = 0, received = 0;
    TSR_TRY(check_rows(e->send, "send", &sent));
    TSR_TRY(check_rows(e->receive, "receive", &received));
    bool same = e->send->dtype == e->receive->dtype && e->send->ndim == e->receive->ndim;
    for (int dim = 1; same && dim < e->send->ndim; dim++)
        same = e->send->shape[dim] == e->receive->shape[dim];
    if (!same)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": send and receive have rows of another dtype or shape");
    if (!tsr_device_same(e->send->device, e->receive->device))
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": send and receive are on different devices");
    const uintptr_t from = (uintptr_t)e->send->data, to = (uintptr_t)e->receive->data;
    const size_t from_bytes = sent * (size_t)e->send->shape[0], to_bytes = sent * (size_t)e->receive->shape[0];
    if (from_bytes > 0 && to_bytes > 0 && from < to + to_bytes && to < from + from_bytes)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": send and receive overlap");
    e->rows.bytes = sent;
    return TSR_OK;
}

static tsr_status check_counts(const tsr_comm *comm, const rows_call *e)
{
    const uintptr_t sent = (uintptr_t)e->send_counts, received = (uintptr_t)e->receive_counts;
    const size_t bytes = (size_t)comm->size * sizeof(int64_t);
    int64_t sum = 0;
    if (sent < received + bytes && received < sent + bytes)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": send_counts and receive_counts overlap");
    for (int r = 0; r < comm->size; r++) {
        if (e->send_counts[r] < 0)
            return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": send_counts[%d] is %lld; counts are 0 or more", r,
                                  (long long)e->send_counts[r]);
        if (!tsr_add_sizes(sum, e->send_counts[r], &sum) || sum > e->send->shape[0])
            return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": send_counts sum up to more than the %lld rows of send",
                                  (long long)e->send->shape[0]);
    }
    return TSR_OK;
}

/* Checks this rank's arguments. A failure is the status that it brings to the call. */
static tsr_status check_exchange(const tsr_comm *comm, rows_call *e, tsr_stream stream)
{
    e->rows.ops = tsr_comm_device_ops(comm, tsr_device_host());
    TSR_TRY(check_pointers(e));
    if (!tsr_host_is_meant(e->send->device, stream))
        return tsr_refuse_host(CALL, e->send->device, stream);
    e->rows.device = e->send->device;
    e->rows.stream = stream;
    e->rows.ops = tsr_comm_device_ops(comm, e->send->device);
    TSR_TRY(check_pair(e));
    return check_counts(comm, e);
}

static uint64_t fingerprint_of(const rows_call *e, tsr_status local)
{
    uint64_t hash = tsr_hash_text(TSR_HASH_SEED, CALL);
    if (local != TSR_OK)
        return hash;
    hash = tsr_hash_word(tsr_hash_word(hash, (uint64_t)e->send->dtype), e->rows.bytes);
    return tsr_hash_text(hash, e->rows.ops.table->name);
}

static void describe_exchange(const void *arg, char *text, size_t capacity)
{
    const rows_call *e = arg;
    snprintf(text, capacity, "exchange_rows of %zu-byte rows of %s on %s", e->rows.bytes,
             e->send ? tsr_dtype_name(e->send->dtype) : "none", e->rows.ops.table->name);
}

/* Adds up receive_counts. TSR_ERROR_MEMORY: `receive` has fewer rows. */
static tsr_status check_room(const tsr_comm *comm, rows_call *e)
{
    int64_t total = 0;
    for (int r = 0; r < comm->size; r++)
        if (!tsr_add_sizes(total, e->receive_counts[r], &total))
            total = INT64_MAX;
    e->total = total;
    if (total <= e->receive->shape[0])
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_MEMORY, CALL ": %lld rows come to rank %d, but receive has room for %lld",
                          (long long)total, tsr_comm_name(comm, comm->rank), (long long)e->receive->shape[0]);
}

static int64_t rows_before(const int64_t *counts, int rank)
{
    int64_t before = 0;
    for (int r = 0; r < rank; r++)
        before += counts[r];
    return before;
}

static const rows_call *rows_call_of(const tsr_comm *comm, int rank)
{
    return tsr_call_of(comm, rank)->extra;
}

static tsr_status pull_rows(tsr_comm *comm, rows_call *e)
{
    int64_t at = 0;
    for (int r = 0; r < comm->size; r++)
        e->receive_counts[r] = rows_call_of(comm, r)->send_counts[comm->rank];
    TSR_TRY(check_room(comm, e));
    TSR_TRY(tsr_call_follow(comm));
    for (int i = 0; i < comm->size; i++) {
        const rows_call *theirs = rows_call_of(comm, i);
        const int64_t from = rows_before(theirs->send_counts, comm->rank);
        TSR_TRY(tsr_collective_copy(&e->rows, tsr_element(&e->rows, e->receive->data, at),
                                    tsr_element(&e->rows, theirs->send->data, from), e->receive_counts[i]));
        at += e->receive_counts[i];
    }
    return TSR_OK;
}

static tsr_status exchange_directly(tsr_comm *comm, rows_call *e, tsr_status local)
{
    tsr_call mine = {.fingerprint = fingerprint_of(e, local), .reaches = true, .extra = e};
    mine.status = tsr_call_place(comm, &mine, e->rows.device, e->rows.stream, local);
    TSR_TRY(tsr_call_begin(comm, &mine, describe_exchange, e));
    return tsr_call_end(comm, pull_rows(comm, e));
}

/* Sends each peer its count, on the host. */
static tsr_status send_counts(tsr_comm *comm, rows_call *e)
{
    const tsr_collective counts = {.bytes = sizeof(int64_t)};
    tsr_traffic moves = tsr_traffic_begin(comm, &counts, comm->messages, (size_t)comm->size);
    for (int r = 0; r < comm->size; r++) {
        tsr_traffic_send(&moves, r, e->send_counts, r, 1);
        tsr_traffic_receive(&moves, r, e->receive_counts, r, 1);
    }
    e->receive_counts[comm->rank] = e->send_counts[comm->rank];
    return tsr_traffic_deliver(&moves);
}

static tsr_status send_rows(tsr_comm *comm, const rows_call *e)
{
    tsr_traffic moves = tsr_traffic_begin(comm, &e->rows, comm->messages, (size_t)comm->size);
    for (int r = 0; r < comm->size; r++) {
        tsr_traffic_send(&moves, r, e->send->data, rows_before(e->send_counts, r), e->send_counts[r]);
        tsr_traffic_receive(&moves, r, e->receive->data, rows_before(e->receive_counts, r), e->receive_counts[r]);
    }
    TSR_TRY(tsr_traffic_deliver(&moves));
    const int64_t from = rows_before(e->send_counts, comm->rank), to = rows_before(e->receive_counts, comm->rank);
    return tsr_collective_copy(&e->rows, tsr_element(&e->rows, e->receive->data, to),
                               tsr_element(&e->rows, e->send->data, from), e->send_counts[comm->rank]);
}

static tsr_status exchange_by_messages(tsr_comm *comm, rows_call *e, tsr_status local)
{
    const uint64_t fingerprint = fingerprint_of(e, local);
    TSR_TRY(tsr_comm_agree(comm, fingerprint, local, describe_exchange, e));
    TSR_TRY(send_counts(comm, e));
    TSR_TRY(tsr_comm_agree(comm, fingerprint, check_room(comm, e), describe_exchange, e));
    return send_rows(comm, e);
}

static tsr_status exchange_rows(tsr_comm *comm, rows_call *e, tsr_stream stream)
{
    const tsr_status local = check_exchange(comm, e, stream);
    return tsr_comm_shares_all(comm) ? exchange_directly(comm, e, local) : exchange_by_messages(comm, e, local);
}

tsr_status tsr_comm_exchange_rows(tsr_comm *comm, const tsr_tensor *send, const int64_t *send_counts,
                                  const tsr_tensor *receive, int64_t *receive_counts, tsr_stream stream)
{
    if (!comm)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": comm is NULL");
    rows_call e = {.send = send, .receive = receive, .send_counts = send_counts, .receive_counts = receive_counts};
    TSR_TRY(tsr_comm_enter(comm, CALL));
    return tsr_comm_leave(comm, exchange_rows(comm, &e, stream));
}
