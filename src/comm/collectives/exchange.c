#include "comm/collectives/exchange.h"

#include "base/hash.h"
#include "comm/collectives/collective.h"
#include "comm/core/arrays.h"
#include "comm/core/balance.h"
#include "comm/core/call.h"
#include "comm/core/traits.h"

#include <string.h>

static tsr_status check_list(const tsr_comm *comm, const char *caller, const char *name, const tsr_message *list,
                             size_t count)
{
    if (count > 0 && !list)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %ss is NULL, but %s_count is %zu", caller, name, name, count);
    for (size_t i = 0; i < count; i++) {
        if (list[i].peer < 0 || list[i].peer >= comm->size || list[i].peer == comm->rank)
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "%s: %ss[%zu].peer is %d; it must be a rank of 0 to %d other than %d", caller, name,
                                  i, list[i].peer, comm->size - 1, comm->rank);
        if (list[i].bytes > 0 && !list[i].data)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %ss[%zu].data is NULL, but it has %zu bytes", caller, name,
                                  i, list[i].bytes);
    }
    return TSR_OK;
}

static tsr_status check_lists(const tsr_comm *comm, const tsr_exchange *mine)
{
    /* A rank without messages may give any device and stream. */
    if (mine->send_count + mine->receive_count > 0 && !tsr_host_is_meant(mine->device, mine->stream))
        return tsr_refuse_host(mine->caller, mine->device, mine->stream);
    TSR_TRY(check_list(comm, mine->caller, "send", mine->sends, mine->send_count));
    return check_list(comm, mine->caller, "receive", mine->receives, mine->receive_count);
}

static void describe_exchange(const void *arg, char *text, size_t capacity)
{
    (void)arg;
    static const char words[] = "exchange";
    if (capacity >= sizeof words)
        memcpy(text, words, sizeof words);
}

/* The next message that `peer` sends to this rank, or NULL; moves the cursor of `peer` past it. */
static const tsr_message *next_from(tsr_comm *comm, int peer)
{
    const tsr_call *theirs = tsr_call_of(comm, peer);
    const tsr_message *sends = theirs->extra;
    const size_t count = theirs->count;
    size_t *cursor = &comm->cursors[peer];
    while (*cursor < count) {
        const tsr_message *message = &sends[(*cursor)++];
        if (message->peer == comm->rank)
            return message;
    }
    return NULL;
}

/* Checks that every receive of this rank has a send of its size, and that no send to this rank is
 * left over. */
static tsr_status match(tsr_comm *comm, const tsr_exchange *mine)
{
    tsr_cursors_rewind(comm);
    for (size_t i = 0; i < mine->receive_count; i++) {
        const tsr_message *receive = &mine->receives[i], *send = next_from(comm, receive->peer);
        if (!send)
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "tsr_comm_exchange: rank %d expects %zu bytes from rank %d, which sends 0 more",
                                  comm->rank, receive->bytes, receive->peer);
        if (send->bytes != receive->bytes)
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "tsr_comm_exchange: rank %d sends %zu bytes to rank %d, which expects %zu",
                                  receive->peer, send->bytes, comm->rank, receive->bytes);
    }
    for (int r = 0; r < comm->size; r++) {
        const tsr_message *left = next_from(comm, r);
        if (left)
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "tsr_comm_exchange: rank %d sends %zu bytes to rank %d, which expects 0 more", r,
                                  left->bytes, comm->rank);
    }
    return TSR_OK;
}

/* A tsr_collective that copies bytes on the exchange's device. */
static tsr_collective bytes_of(const tsr_comm *comm, const tsr_exchange *mine)
{
    return (tsr_collective){.ops = tsr_comm_device_ops(comm, mine->device), .bytes = 1, .stream = mine->stream};
}

/* True if the received bytes are unpacked from the staging later. */
static bool is_staged(const tsr_exchange *mine, const tsr_message *receive)
{
    const uintptr_t at = (uintptr_t)receive->data, begin = (uintptr_t)mine->staging;
    return at >= begin && at - begin < mine->staging_bytes;
}

static tsr_status pull_messages(tsr_comm *comm, const tsr_exchange *mine)
{
    tsr_collective bytes = bytes_of(comm, mine);
    void *const staging = bytes.ops.self, *const landing = mine->landing ? mine->landing : staging;
    TSR_TRY(tsr_call_follow(comm));
    tsr_cursors_rewind(comm);
    for (size_t i = 0; i < mine->receive_count; i++) {
        const tsr_message *receive = &mine->receives[i], *send = next_from(comm, receive->peer);
        bytes.ops.self = is_staged(mine, receive) ? staging : landing;
        TSR_TRY(tsr_collective_copy(&bytes, receive->data, send->data, (int64_t)receive->bytes));
    }
    return TSR_OK;
}

static tsr_sizes sizes_of(const tsr_exchange *mine)
{
    return (tsr_sizes){.caller = "tsr_comm_exchange",
                       .unit = "bytes",
                       .sends = mine->sends,
                       .receives = mine->receives,
                       .send_count = mine->send_count,
                       .receive_count = mine->receive_count};
}

/* Fills mine->call. Peers read only the list of sends: it is published as a pointer and a count, so
 * that it does not depend on this rank's handle. If peers cannot read it, the count is
 * tsr_balance_of(), from which ranks learn whether their lists match. */
static void word_call(tsr_comm *comm, tsr_exchange *mine)
{
    tsr_status local = check_lists(comm, mine);
    if (local == TSR_OK)
        local = tsr_cursors_reserve(comm);
    const tsr_sizes sizes = sizes_of(mine);
    mine->call = (tsr_call){
        .fingerprint = tsr_hash_text(TSR_HASH_SEED, "exchange"),
        .status = local,
        .reaches = tsr_comm_shares_all(comm),
        .placeless = mine->send_count == 0 && mine->receive_count == 0,
        .extra = mine->sends,
        .count = tsr_comm_shares_all(comm) || local != TSR_OK ? mine->send_count : tsr_balance_of(comm, &sizes),
    };
    if (!mine->call.placeless)
        mine->call.status = tsr_call_place(comm, &mine->call, mine->device, mine->stream, local);
}

static tsr_status exchange_by_messages(const tsr_comm *comm, const tsr_exchange *mine)
{
    return comm->engine.messages.exchange(comm->self, mine->sends, mine->send_count, mine->receives,
                                          mine->receive_count, mine->device, mine->stream);
}

/* After the begin, where peers do not reach all memory: exchanges by messages if the lists match
 * (balance.h). */
static tsr_status exchange_balanced(tsr_comm *comm, const tsr_exchange *mine)
{
    const tsr_sizes sizes = sizes_of(mine);
    return tsr_call_sum_counts(comm) == 0 ? exchange_by_messages(comm, mine) : tsr_balance_explain(comm, &sizes);
}

/* After the begin: carries the exchange out, by messages if peers do not reach all memory. */
static tsr_status deliver_exchange(tsr_comm *comm, const tsr_exchange *mine)
{
    if (!tsr_comm_shares_all(comm))
        return exchange_balanced(comm, mine);
    const tsr_status matched = match(comm, mine);
    return matched != TSR_OK ? tsr_call_end_shared(comm, matched) : tsr_call_end(comm, pull_messages(comm, mine));
}

static tsr_status run_exchange(tsr_comm *comm, const tsr_exchange *given)
{
    tsr_exchange mine = *given;
    if (tsr_comm_is_direct(comm)) {
        word_call(comm, &mine);
        TSR_TRY(tsr_call_begin(comm, &mine.call, describe_exchange, NULL));
        return deliver_exchange(comm, &mine);
    }
    TSR_TRY(tsr_comm_check_idle(comm));
    TSR_TRY(check_lists(comm, &mine));
    return exchange_by_messages(comm, &mine);
}

/* An exchange of a public call: no staging. */
static tsr_exchange given_to(const char *call, const tsr_message *sends, size_t send_count, const tsr_message *receives,
                             size_t receive_count, tsr_device device, tsr_stream stream)
{
    return (tsr_exchange){.caller = call,
                          .sends = sends,
                          .receives = receives,
                          .send_count = send_count,
                          .receive_count = receive_count,
                          .device = device,
                          .stream = stream};
}

tsr_status tsr_comm_exchange(tsr_comm *comm, const tsr_message *sends, size_t send_count, const tsr_message *receives,
                             size_t receive_count, tsr_device device, tsr_stream stream)
{
    static const char call[] = "tsr_comm_exchange";
    if (!comm)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: comm is NULL", call);
    TSR_TRY(tsr_comm_enter(comm, call));
    const tsr_exchange given = given_to(call, sends, send_count, receives, receive_count, device, stream);
    return tsr_comm_leave(comm, run_exchange(comm, &given));
}

static tsr_status start_by_messages(tsr_comm *comm, const tsr_exchange *mine)
{
    TSR_TRY(check_lists(comm, mine));
    if (comm->engine.messages.start)
        TSR_TRY(comm->engine.messages.start(comm->self, mine->sends, mine->send_count, mine->receives,
                                            mine->receive_count, mine->device, mine->stream));
    comm->started = true;
    return TSR_OK;
}

tsr_status tsr_exchange_start(tsr_comm *comm, const tsr_exchange *given)
{
    TSR_TRY(tsr_comm_check_idle(comm));
    comm->exchange = *given;
    if (tsr_comm_is_direct(comm)) {
        word_call(comm, &comm->exchange);
        TSR_TRY(tsr_call_start(comm, &comm->exchange.call));
    } else {
        TSR_TRY(start_by_messages(comm, &comm->exchange));
    }
    comm->exchanging = true;
    return TSR_OK;
}

tsr_status tsr_comm_exchange_start(tsr_comm *comm, const tsr_message *sends, size_t send_count,
                                   const tsr_message *receives, size_t receive_count, tsr_device device,
                                   tsr_stream stream)
{
    static const char call[] = "tsr_comm_exchange_start";
    if (!comm)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: comm is NULL", call);
    TSR_TRY(tsr_comm_enter(comm, call));
    const tsr_exchange given = given_to(call, sends, send_count, receives, receive_count, device, stream);
    return tsr_comm_leave(comm, tsr_exchange_start(comm, &given));
}

static tsr_status check_started(const tsr_comm *comm)
{
    if (!comm->exchanging)
        return tsr_status_set(TSR_ERROR_STATE,
                              "tsr_comm_exchange_finish: rank %d of %d has started no exchange on this communicator",
                              comm->rank, comm->size);
    if (tsr_group_is_busy(&comm->whole.group))
        return tsr_status_set(
            TSR_ERROR_STATE,
            "tsr_comm_exchange_finish: the exchange of rank %d of %d was started by a plan: call tsr_plan_finish()",
            comm->rank, comm->size);
    return TSR_OK;
}

tsr_status tsr_exchange_finish(tsr_comm *comm)
{
    TSR_TRY(check_started(comm));
    const tsr_exchange *mine = &comm->exchange;
    comm->exchanging = false;
    if (tsr_comm_is_direct(comm)) {
        TSR_TRY(tsr_call_join(comm, &mine->call, describe_exchange, NULL));
        return deliver_exchange(comm, mine);
    }
    comm->started = false;
    return comm->engine.messages.finish ? comm->engine.messages.finish(comm->self) : exchange_by_messages(comm, mine);
}

tsr_status tsr_comm_exchange_finish(tsr_comm *comm)
{
    static const char call[] = "tsr_comm_exchange_finish";
    if (!comm)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: comm is NULL", call);
    TSR_TRY(tsr_comm_enter(comm, call));
    return tsr_comm_leave(comm, tsr_exchange_finish(comm));
}
