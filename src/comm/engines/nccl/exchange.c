/*
 * An exchange is one NCCL group of sends and receives, in bytes. Messages of device memory are
 * enqueued as they are. Messages of host memory go in rounds; each round carries the next part of
 * every message that is not done. Both ends know a message's size, so they cut it into the same
 * parts.
 */
#include "comm/engines/nccl/exchange.h"

#include "base/checked.h"
#include "comm/engines/nccl/kernel.h"
#include "comm/engines/nccl/staging.h"
#include "comm/engines/nccl/wait.h"

#include <string.h>

/* Bytes: parts of staged messages begin at multiples of it, where NCCL is faster. */
#define PART_ALIGNMENT 16

typedef enum direction { SENDS, RECEIVES } direction;

/* Bytes of a message in this round. */
static size_t part_bytes(const tsr_nccl_exchange *e, const tsr_message *message)
{
    const size_t left = message->bytes > e->done ? message->bytes - e->done : 0;
    return !e->staged || left < e->part ? left : e->part;
}

static size_t padded(size_t bytes)
{
    return tsr_round_up(bytes, PART_ALIGNMENT);
}

static size_t round_bytes(const tsr_nccl_exchange *e)
{
    size_t bytes = 0;
    for (size_t i = 0; i < e->send_count; i++)
        bytes += padded(part_bytes(e, &e->sends[i]));
    for (size_t i = 0; i < e->receive_count; i++)
        bytes += padded(part_bytes(e, &e->receives[i]));
    return bytes;
}

static ncclResult_t post_list(tsr_nccl_handle *handle, direction way, char **staged, cudaStream_t stream)
{
    const tsr_nccl_api *api = handle->family->api;
    const tsr_nccl_exchange *e = &handle->exchange;
    const tsr_message *list = way == SENDS ? e->sends : e->receives;
    const size_t count = way == SENDS ? e->send_count : e->receive_count;
    ncclResult_t result = ncclSuccess;
    for (size_t i = 0; i < count && (result == ncclSuccess || result == ncclInProgress); i++) {
        const size_t bytes = part_bytes(e, &list[i]);
        void *data = e->staged ? *staged : list[i].data;
        *staged += e->staged ? padded(bytes) : 0;
        if (bytes > 0 && way == SENDS)
            result = api->send(data, bytes, ncclUint8, list[i].peer, handle->comm, stream);
        else if (bytes > 0)
            result = api->recv(data, bytes, ncclUint8, list[i].peer, handle->comm, stream);
    }
    return result;
}

/* Posts one round as a group. A group that was begun is ended even if a call in it fails; `*ended`
 * is the result of that. */
static tsr_status post_round(tsr_nccl_handle *handle, cudaStream_t stream, ncclResult_t *ended)
{
    const tsr_nccl_api *api = handle->family->api;
    char *staged = handle->staging->at;
    const char *call = "ncclGroupStart";
    int previous;
    TSR_TRY(tsr_nccl_open_kernel(handle, stream, &previous));
    ncclResult_t result = api->group_start();
    if (result == ncclSuccess) {
        call = "ncclSend";
        result = post_list(handle, SENDS, &staged, stream);
        if (result == ncclSuccess || result == ncclInProgress) {
            call = "ncclRecv";
            result = post_list(handle, RECEIVES, &staged, stream);
        }
        *ended = api->group_end();
    }
    tsr_nccl_close(handle, previous);
    tsr_status status = tsr_nccl_check(api, result, call);
    if (status == TSR_OK)
        status = tsr_nccl_check(api, *ended, "ncclGroupEnd");
    return status == TSR_OK ? TSR_OK : tsr_nccl_break(handle, status);
}

static void copy_in(tsr_nccl_handle *handle)
{
    const tsr_nccl_exchange *e = &handle->exchange;
    char *to = handle->staging->at;
    for (size_t i = 0; i < e->send_count; i++) {
        const size_t bytes = part_bytes(e, &e->sends[i]);
        if (bytes > 0)
            memcpy(to, (const char *)e->sends[i].data + e->done, bytes);
        to += padded(bytes);
    }
}

static void copy_out(tsr_nccl_handle *handle)
{
    const tsr_nccl_exchange *e = &handle->exchange;
    const char *from = handle->staging->at;
    for (size_t i = 0; i < e->send_count; i++)
        from += padded(part_bytes(e, &e->sends[i]));
    for (size_t i = 0; i < e->receive_count; i++) {
        const size_t bytes = part_bytes(e, &e->receives[i]);
        if (bytes > 0)
            memcpy((char *)e->receives[i].data + e->done, from, bytes);
        from += padded(bytes);
    }
}

/* The first round is the largest, so it reserves the staging memory for all. Does not wait: finish
 * waits for work that NCCL leaves to its background. */
static tsr_status start_round(tsr_nccl_handle *handle)
{
    const size_t bytes = round_bytes(&handle->exchange);
    ncclResult_t ended = ncclSuccess;
    if (bytes == 0)
        return TSR_OK;
    TSR_TRY(tsr_nccl_reserve(handle, bytes));
    copy_in(handle);
    TSR_TRY(post_round(handle, handle->family->stream, &ended));
    tsr_nccl_conclude_later(handle);
    return TSR_OK;
}

/* Waits until the messages are enqueued, so that work that the caller puts into the stream next
 * comes after them. */
static tsr_status start_on(tsr_nccl_handle *handle, cudaStream_t stream)
{
    ncclResult_t ended = ncclSuccess;
    if (round_bytes(&handle->exchange) == 0)
        return TSR_OK;
    TSR_TRY(post_round(handle, stream, &ended));
    return tsr_nccl_conclude(handle, ended, "ncclGroupEnd", stream);
}

tsr_status tsr_nccl_exchange_start(void *self, const tsr_message *sends, size_t send_count, const tsr_message *receives,
                                   size_t receive_count, tsr_device device, tsr_stream stream)
{
    tsr_nccl_handle *handle = self;
    tsr_nccl_exchange *e = &handle->exchange;
    *e = (tsr_nccl_exchange){.sends = sends,
                             .receives = receives,
                             .send_count = send_count,
                             .receive_count = receive_count,
                             .part = tsr_nccl_part_bytes(handle->ranks)};
    TSR_TRY(tsr_nccl_place(handle, device, &e->staged));
    TSR_TRY(e->staged ? start_round(handle) : start_on(handle, stream));
    e->started = true;
    return TSR_OK;
}

tsr_status tsr_nccl_exchange_finish(void *self)
{
    tsr_nccl_handle *handle = self;
    tsr_nccl_exchange *e = &handle->exchange;
    e->started = false;
    TSR_TRY(tsr_nccl_conclude_own(handle));
    while (e->staged && round_bytes(e) > 0) {
        TSR_TRY(tsr_nccl_drain(handle, handle->family->stream, handle->family->timeout_ms));
        copy_out(handle);
        e->done += e->part;
        TSR_TRY(start_round(handle));
        TSR_TRY(tsr_nccl_conclude_now(handle->family));
    }
    return tsr_nccl_settle(handle);
}

tsr_status tsr_nccl_exchange_all(void *self, const tsr_message *sends, size_t send_count, const tsr_message *receives,
                                 size_t receive_count, tsr_device device, tsr_stream stream)
{
    TSR_TRY(tsr_nccl_exchange_start(self, sends, send_count, receives, receive_count, device, stream));
    return tsr_nccl_exchange_finish(self);
}

tsr_status tsr_nccl_barrier(void *self)
{
    tsr_nccl_handle *handle = self;
    tsr_nccl_family *family = handle->family;
    int previous;
    handle->staging->at[0] = 0;
    TSR_TRY(tsr_nccl_open_kernel(handle, family->stream, &previous));
    const ncclResult_t result = family->api->all_reduce(handle->staging->at, handle->staging->at, 1, ncclUint8, ncclMax,
                                                        handle->comm, family->stream);
    tsr_nccl_close(handle, previous);
    TSR_TRY(tsr_nccl_conclude(handle, result, "ncclAllReduce", family->stream));
    return tsr_nccl_drain(handle, family->stream, family->timeout_ms);
}
