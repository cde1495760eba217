#include "base/hash.h"
#include "comm/collective.h"
#include <string.h>

/* What a rank brings to an exchange. */
typedef struct lists {
    const tsr_message *sends, *receives;
    size_t send_count, receive_count;
} lists;

static tsr_status check_list(const tsr_comm *comm, const char *name, const tsr_message *list, size_t count)
{
    if (count > 0 && !list)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_comm_exchange: %ss is NULL, but %s_count is %zu", name, name, count);
    for (size_t i = 0; i < count; i++) {
        if (list[i].peer < 0 || list[i].peer >= comm->size || list[i].peer == comm->rank)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_comm_exchange: %ss[%zu].peer is %d; it must be a rank of 0 to %d other than %d",
                                  name, i, list[i].peer, comm->size - 1, comm->rank);
        if (list[i].bytes > 0 && !list[i].data)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_comm_exchange: %ss[%zu].data is NULL, but it has %zu bytes", name, i,
                                  list[i].bytes);
    }
    return TSR_OK;
}

static tsr_status check_lists(const tsr_comm *comm, const lists *mine)
{
    TSR_TRY(check_list(comm, "send", mine->sends, mine->send_count));
    return check_list(comm, "receive", mine->receives, mine->receive_count);
}

static void describe(const void *arg, char *text, size_t capacity)
{
    (void)arg;
    static const char words[] = "exchange";
    if (capacity >= sizeof words)
        memcpy(text, words, sizeof words);
}

static const lists *lists_of(const tsr_comm *comm, int rank)
{
    return tsr_call_of(comm, rank)->extra;
}

/* The next message of `peer` to this rank, or NULL; the cursor of `peer` passes it. */
static const tsr_message *next_from(tsr_comm *comm, int peer)
{
    const lists *theirs = lists_of(comm, peer);
    size_t *cursor = &comm->cursors[peer];
    while (*cursor < theirs->send_count) {
        const tsr_message *message = &theirs->sends[(*cursor)++];
        if (message->peer == comm->rank)
            return message;
    }
    return NULL;
}

static void rewind_cursors(tsr_comm *comm)
{
    memset(comm->cursors, 0, (size_t)comm->size * sizeof *comm->cursors);
}

/* Every receive meets a send of its size, and no send to this rank is left over. */
static tsr_status match(tsr_comm *comm, const lists *mine)
{
    rewind_cursors(comm);
    for (size_t i = 0; i < mine->receive_count; i++) {
        const tsr_message *receive = &mine->receives[i], *send = next_from(comm, receive->peer);
        if (!send)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_comm_exchange: rank %d expects %zu bytes from rank %d, which sends 0 more",
                                  comm->rank, receive->bytes, receive->peer);
        if (send->bytes != receive->bytes)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_comm_exchange: rank %d sends %zu bytes to rank %d, which expects %zu",
                                  receive->peer, send->bytes, comm->rank, receive->bytes);
    }
    for (int r = 0; r < comm->size; r++) {
        const tsr_message *left = next_from(comm, r);
        if (left)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_comm_exchange: rank %d sends %zu bytes to rank %d, which expects 0 more", r,
                                  left->bytes, comm->rank);
    }
    return TSR_OK;
}

static tsr_status pull(tsr_comm *comm, const lists *mine, const tsr_collective *bytes)
{
    rewind_cursors(comm);
    for (size_t i = 0; i < mine->receive_count; i++) {
        const tsr_message *receive = &mine->receives[i], *send = next_from(comm, receive->peer);
        TSR_TRY(tsr_collective_copy(bytes, receive->data, send->data, (int64_t)receive->bytes));
    }
    return tsr_collective_settle(bytes);
}

static uint64_t fingerprint(const tsr_collective *bytes)
{
    return tsr_hash_text(tsr_hash_text(TSR_HASH_SEED, "exchange"), bytes->ops.table->name);
}

static tsr_status exchange_directly(tsr_comm *comm, const lists *mine, tsr_status local, const tsr_collective *bytes)
{
    if (local == TSR_OK)
        local = tsr_collective_settle(bytes);
    const tsr_call call = {.fingerprint = fingerprint(bytes), .status = local, .extra = mine};
    TSR_TRY(tsr_call_begin(comm, &call, describe, NULL));
    const tsr_status matched = match(comm, mine);
    if (matched != TSR_OK)
        return tsr_call_end_shared(comm, matched);
    return tsr_call_end(comm, pull(comm, mine, bytes));
}

tsr_status tsr_comm_exchange(tsr_comm *comm, const tsr_message *sends, size_t send_count, const tsr_message *receives, size_t receive_count,
                             tsr_device device, tsr_stream stream)
{
    if (!comm)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_comm_exchange: comm is NULL");
    const lists mine = {sends, receives, send_count, receive_count};
    const tsr_status local = check_lists(comm, &mine);
    if (tsr_comm_is_direct(comm)) {
        const tsr_collective bytes = {.ops = tsr_device_resolve(comm->context, device), .bytes = 1, .stream = stream};
        return exchange_directly(comm, &mine, local, &bytes);
    }
    TSR_TRY(local);
    return comm->table.exchange(comm->self, sends, send_count, receives, receive_count, device, stream);
}
