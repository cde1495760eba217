#include "comm/core/call.h"

#include "comm/core/clock.h"
#include "comm/core/object.h"
#include "comm/core/traits.h"
#include "device/driver.h"

#include <tessera/sys/log.h>

#include <string.h>

/* A live peer finishes any copy within COPY_MS; after it the peer is presumed dead. A stopped
 * process may never go on: it is given STOPPED_MS. */
#define COPY_MS    10000
#define STOPPED_MS 2000

/* The part of a fingerprint that depends on where memory is; 0 on the host. */
static uint64_t place_of(const tsr_call *call)
{
    return call->kind + call->capture * UINT64_C(0x9e3779b97f4a7c15);
}

tsr_status tsr_call_place_on(tsr_comm *comm, tsr_call *mine, tsr_device device, tsr_stream stream)
{
    /* Peers never see the place of this call: it will be refused, or return at once. */
    if (comm->started || comm->broken)
        return TSR_OK;
    if (!tsr_comm_shares_all(comm))
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              "ranks of engine \"%s\" share host memory alone, and this is on another device",
                              comm->engine.table.name);
    tsr_order *order;
    TSR_TRY(tsr_order_find(comm, device, &order));
    if (order->ops.table->capture)
        TSR_TRY(order->ops.table->capture(order->ops.self, order->ops.index, stream, &mine->capture));
    mine->order = order;
    mine->stream = stream;
    mine->kind = tsr_device_kind(device);
    mine->fingerprint += place_of(mine);
    return tsr_order_record(order, stream, TSR_MEETING_BEGIN, TSR_OK);
}

static tsr_slot *own_slot(const tsr_comm *comm)
{
    return comm->slots[comm->rank];
}

/* Marks this rank as inside peers' memory. False if a peer is gone: then no memory may be
 * touched. */
static bool enter_memory(const tsr_comm *comm)
{
    __atomic_store_n(&own_slot(comm)->inside, 1, __ATOMIC_SEQ_CST);
    for (int r = 0; r < comm->size; r++)
        if (__atomic_load_n(&comm->slots[r]->gone, __ATOMIC_SEQ_CST))
            return false;
    return true;
}

static void leave_memory(const tsr_comm *comm)
{
    __atomic_store_n(&own_slot(comm)->inside, 0, __ATOMIC_RELEASE);
}

/* Waits for the device work that peers have enqueued. While this rank is `inside`, a peer that is
 * not gone yet keeps its events. */
static void await_peers(const tsr_comm *comm, const tsr_order *order, tsr_stream stream)
{
    __atomic_store_n(&own_slot(comm)->inside, 1, __ATOMIC_SEQ_CST);
    for (int r = 0; r < comm->size; r++)
        if (r != comm->rank && !__atomic_load_n(&comm->slots[r]->gone, __ATOMIC_SEQ_CST))
            tsr_order_follow(order, stream, __atomic_load_n(&comm->slots[r]->order, __ATOMIC_ACQUIRE));
    leave_memory(comm);
    tsr_order_drain(order, stream);
}

/* 1: the rank runs, 0: it is stopped, -1: it is dead. Without the entry `life` a rank runs as long
 * as this one does. */
static int life_of(const tsr_comm *comm, int rank)
{
    return comm->engine.direct.life ? comm->engine.direct.life(comm->self, rank) : 1;
}

/* Returns when rank `rank` is not inside, is dead, is stopped after time `stopped`, or when time
 * `copied` has passed. */
static void await_exit(const tsr_comm *comm, int rank, tsr_deadline copied, tsr_deadline stopped)
{
    for (int look = 0; __atomic_load_n(&comm->slots[rank]->inside, __ATOMIC_SEQ_CST); look++) {
        tsr_pause(look);
        const int life = tsr_deadline_passed(copied) ? -1 : life_of(comm, rank);
        if (life < 0 || (life == 0 && tsr_deadline_passed(stopped)))
            return;
    }
}

/* When this returns, no peer touches this rank's memory. On a device (`order` is that of the call)
 * the rank waits for its own stream before it says that it is gone; then its stream waits for the
 * work of the peers that are not gone, and the host for the stream. A peer in another process may
 * have died inside. */
static void give_up(const tsr_comm *comm, const tsr_order *order, tsr_stream stream)
{
    const tsr_deadline copied = tsr_deadline_in(tsr_comm_shares_all(comm) ? 0 : COPY_MS),
                       stopped = tsr_deadline_in(STOPPED_MS);
    tsr_order_drain(order, stream);
    leave_memory(comm);
    __atomic_store_n(&own_slot(comm)->gone, 1, __ATOMIC_SEQ_CST);
    for (int r = 0; r < comm->size; r++)
        await_exit(comm, r, copied, stopped);
    if (order)
        await_peers(comm, order, stream);
}

/* To be called with the status of each meet or half of a meet: a failure breaks the
 * communicator. */
static tsr_status note_meet(tsr_comm *comm, tsr_status status)
{
    if (status == TSR_OK)
        return TSR_OK;
    comm->broken = true;
    give_up(comm, comm->order, comm->stream);
    comm->order = NULL;
    tsr_log(comm->context, TSR_LOG_ERROR, "rank %d of %d: %s", comm->rank, comm->size, tsr_status_message());
    return status;
}

/* Cleanup for a thread that is cancelled while it waits: its stack, which peers may read, is about
 * to go, so peers are told and waited for, as when a meet fails. */
static void give_up_unwound(tsr_comm *const *unwound)
{
    tsr_comm *comm = *unwound;
    if (!comm)
        return;
    const tsr_call *call = &own_slot(comm)->call[comm->turn];
    comm->broken = true;
    give_up(comm, call->order, call->stream);
    comm->order = NULL;
    tsr_comm_forget_call(comm);
}

/* Runs a meet, or the second half of one. */
static tsr_status wait_for_meet(tsr_comm *comm, tsr_status (*meet_or_await)(void *self))
{
    __attribute__((cleanup(give_up_unwound))) tsr_comm *unwound = comm;
    const tsr_status status = meet_or_await(comm->self);
    unwound = NULL;
    return note_meet(comm, status);
}

static tsr_status meet_ranks(tsr_comm *comm)
{
    return wait_for_meet(comm, comm->engine.direct.meet);
}

static void publish_text(const tsr_comm *comm, const char *text)
{
    char *slot = own_slot(comm)->text;
    const size_t length = strnlen(text, TSR_SLOT_TEXT_BYTES - 1);
    memcpy(slot, text, length);
    slot[length] = '\0';
}

tsr_status tsr_disagreement(int base, const char *base_text, int odd, const char *odd_text)
{
    return tsr_status_set(TSR_ERROR_ARGUMENT, "ranks disagree: rank %d calls %s, but rank %d calls %s", base, base_text,
                          odd, odd_text);
}

tsr_status tsr_peer_failed(int rank, const char *text)
{
    return tsr_status_set(TSR_ERROR_PEER, "rank %d failed: %s", rank, text);
}

/* Every rank reads the same calls, so all ranks take this branch; one more meet makes the failed
 * rank's sentence readable. */
static tsr_status explain_failure(tsr_comm *comm, tsr_status mine, int failed)
{
    const tsr_status cause = tsr_call_of(comm, failed)->status;
    if (mine != TSR_OK)
        publish_text(comm, tsr_status_message());
    TSR_TRY(meet_ranks(comm));
    if (!tsr_status_yields(mine, cause))
        return mine;
    return tsr_peer_failed(tsr_comm_name(comm, failed), comm->slots[failed]->text);
}

static tsr_status brought_by(const tsr_comm *comm, int rank)
{
    return tsr_call_of(comm, rank)->status;
}

static tsr_status explain_disagreement(tsr_comm *comm, int odd, tsr_call_describe *describe, const void *arg)
{
    if (comm->rank == 0 || comm->rank == odd) {
        tsr_slot *slot = own_slot(comm);
        slot->text[0] = '\0';
        describe(arg, slot->text, sizeof slot->text);
    }
    TSR_TRY(meet_ranks(comm));
    return tsr_disagreement(tsr_comm_name(comm, 0), comm->slots[0]->text, tsr_comm_name(comm, odd),
                            comm->slots[odd]->text);
}

/* The fingerprint of a call without the part that depends on where memory is. */
static uint64_t operation_of(const tsr_call *call)
{
    return call->fingerprint - place_of(call);
}

static tsr_status explain_kinds(tsr_comm *comm, const tsr_call *mine, int base, int odd)
{
    if (comm->rank == base || comm->rank == odd) {
        char device[64];
        publish_text(comm, tsr_device_print(mine->order ? mine->order->device : tsr_device_host(), device));
    }
    TSR_TRY(meet_ranks(comm));
    return tsr_status_set(
        TSR_ERROR_ARGUMENT,
        "ranks disagree: the memory of rank %d is on %s, but that of rank %d on %s: a call takes one kind of device",
        tsr_comm_name(comm, base), comm->slots[base]->text, tsr_comm_name(comm, odd), comm->slots[odd]->text);
}

static tsr_status refuse_captures(const tsr_comm *comm, int base, int odd)
{
    static const char *const words[] = {"runs", "is captured", "is captured apart"};
    const bool both = tsr_call_of(comm, base)->capture && tsr_call_of(comm, odd)->capture;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "ranks disagree: the stream of rank %d %s, but that of rank %d %s: fork the streams of all "
                          "ranks from one capture, "
                          "and join them to it",
                          tsr_comm_name(comm, base), words[tsr_call_of(comm, base)->capture != 0],
                          tsr_comm_name(comm, odd), words[both ? 2 : tsr_call_of(comm, odd)->capture != 0]);
}

/* For ranks that agree on the operation: those with memory must have it on one kind of device, and
 * one capture must record all of their streams, or no capture any of them. */
static tsr_status compare_places(tsr_comm *comm, const tsr_call *mine)
{
    int base = 0;
    while (base < comm->size && tsr_call_of(comm, base)->placeless)
        base++;
    for (int r = base; r < comm->size; r++)
        if (!tsr_call_of(comm, r)->placeless && tsr_call_of(comm, r)->kind != tsr_call_of(comm, base)->kind)
            return explain_kinds(comm, mine, base, r);
    for (int r = base; r < comm->size; r++)
        if (!tsr_call_of(comm, r)->placeless && tsr_call_of(comm, r)->capture != tsr_call_of(comm, base)->capture)
            return refuse_captures(comm, base, r);
    return TSR_OK;
}

static tsr_status explain_calls(tsr_comm *comm, const tsr_call *mine, tsr_call_describe *describe, const void *arg)
{
    int odd = 0;
    for (int r = comm->size - 1; r >= 0; r--)
        if (operation_of(tsr_call_of(comm, r)) != operation_of(tsr_call_of(comm, 0)))
            odd = r;
    const int failed = tsr_find_failed(comm, brought_by);
    if (failed >= 0)
        return explain_failure(comm, mine->status, failed);
    return odd > 0 ? explain_disagreement(comm, odd, describe, arg) : compare_places(comm, mine);
}

/* A call on a broken communicator: it publishes nothing, since a peer may still read what this
 * rank's last call published. */
static tsr_status say_broken(tsr_comm *comm)
{
    const tsr_status status = meet_ranks(comm);
    return status != TSR_OK
               ? status
               : tsr_status_set(TSR_ERROR_PEER, "an earlier call has lost a rank: this communicator is broken");
}

tsr_status tsr_comm_check_idle(const tsr_comm *comm)
{
    if (!comm->started)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_STATE,
                          "rank %d of %d has started a call on this communicator: it is to be finished before the next",
                          comm->rank, comm->size);
}

static void publish(tsr_comm *comm, const tsr_call *mine)
{
    comm->turn = !comm->turn;
    tsr_call *published = &own_slot(comm)->call[comm->turn];
    /* If the call repeats the last but one, nothing is written, and its cache lines stay in peers'
     * caches. */
    if (memcmp(published, mine, sizeof *mine) != 0)
        memcpy(published, mine, sizeof *mine);
    comm->phase = 0;
}

/* From here on this rank reads and writes peers' memory. */
static tsr_status reach_memory(tsr_comm *comm)
{
    if (enter_memory(comm))
        return TSR_OK;
    leave_memory(comm);
    return say_broken(comm);
}

/* Publishes this rank's order for peers that give up: they wait for its device work once this rank
 * is not inside. */
static tsr_status reach_first(tsr_comm *comm, const tsr_call *mine)
{
    if (mine->order)
        __atomic_store_n(&own_slot(comm)->order, mine->order, __ATOMIC_RELEASE);
    comm->meeting = TSR_MEETING_BEGIN;
    comm->order = mine->order;
    comm->stream = mine->stream;
    TSR_TRY(reach_memory(comm));
    tsr_order_meet_peers(comm);
    return TSR_OK;
}

/* After the meet: compares the calls of all ranks; if they agree, and this one reaches, this rank
 * is inside from here on. */
static tsr_status compare(tsr_comm *comm, const tsr_call *mine, tsr_call_describe *describe, const void *arg)
{
    for (int r = 0; r < comm->size; r++) {
        const tsr_call *call = tsr_call_of(comm, r);
        if (call->fingerprint == mine->fingerprint && call->status == TSR_OK)
            continue;
        const tsr_status status = explain_calls(comm, mine, describe, arg);
        if (status == TSR_OK)
            break;
        tsr_log(comm->context, TSR_LOG_WARN, "rank %d of %d: %s", comm->rank, comm->size, tsr_status_message());
        return status;
    }
    return mine->reaches ? reach_first(comm, mine) : TSR_OK;
}

/* Peers' buffers are in the caches of peers' cores: prefetched, they arrive while the calls are
 * compared. */
static void fetch_buffers(const tsr_comm *comm)
{
    for (int r = 0; r < comm->size; r++)
        __builtin_prefetch(comm->slots[r]->buffer[comm->turn]);
}

tsr_status tsr_call_begin(tsr_comm *comm, const tsr_call *mine, tsr_call_describe *describe, const void *arg)
{
    TSR_TRY(tsr_comm_check_idle(comm));
    if (comm->broken)
        return say_broken(comm);
    comm->describe = describe;
    comm->described = arg;
    publish(comm, mine);
    TSR_TRY(meet_ranks(comm));
    if (mine->shows)
        fetch_buffers(comm);
    return compare(comm, mine, describe, arg);
}

/* An arrive that fails breaks the communicator; join returns the error. */
tsr_status tsr_call_start(tsr_comm *comm, const tsr_call *mine)
{
    TSR_TRY(tsr_comm_check_idle(comm));
    comm->started = true;
    if (mine->status != TSR_OK)
        tsr_status_keep(&comm->fault);
    if (comm->broken)
        return TSR_OK;
    publish(comm, mine);
    if (comm->engine.direct.arrive)
        note_meet(comm, comm->engine.direct.arrive(comm->self));
    return TSR_OK;
}

tsr_status tsr_call_join(tsr_comm *comm, const tsr_call *mine, tsr_call_describe *describe, const void *arg)
{
    if (!comm->started)
        return tsr_status_set(TSR_ERROR_STATE, "rank %d of %d has started no call on this communicator", comm->rank,
                              comm->size);
    comm->started = false;
    if (comm->broken)
        return say_broken(comm);
    comm->describe = describe;
    comm->described = arg;
    TSR_TRY(wait_for_meet(comm, comm->engine.direct.await ? comm->engine.direct.await : comm->engine.direct.meet));
    if (mine->status != TSR_OK)
        tsr_status_restore(&comm->fault, mine->status);
    return compare(comm, mine, describe, arg);
}

/* Peers that give up may read the orders of this rank although it has finished all its calls. A
 * thread that was ended within a call, for example in the program's allocator, has left this rank
 * `inside`. */
void tsr_call_abandon(tsr_comm *comm)
{
    const tsr_call *last = &own_slot(comm)->call[comm->turn];
    const bool inside = __atomic_load_n(&own_slot(comm)->inside, __ATOMIC_RELAXED);
    if ((comm->started && !comm->broken) || inside)
        give_up(comm, last->order, last->stream);
    else if (comm->started || comm->orders)
        give_up(comm, NULL, NULL);
}

void tsr_call_forget(tsr_comm *comm)
{
    comm->describe = NULL;
}

const tsr_call *tsr_call_of(const tsr_comm *comm, int rank)
{
    return tsr_published_call(comm, rank);
}

void *tsr_call_buffer(const tsr_comm *comm)
{
    return comm->broken || comm->started ? NULL : own_slot(comm)->buffer[!comm->turn];
}

const void *tsr_call_buffer_of(const tsr_comm *comm, int rank)
{
    return comm->slots[rank]->buffer[comm->turn];
}

static tsr_status verdict(const tsr_comm *comm, int phase, tsr_status mine)
{
    int failed = -1;
    for (int r = comm->size - 1; r >= 0; r--)
        if (comm->slots[r]->done[phase] != TSR_OK)
            failed = r;
    for (int r = 0; r < comm->size; r++) {
        const int32_t done = comm->slots[r]->done[phase];
        if (done & TSR_DONE_SHARED)
            return tsr_status_set((tsr_status)(done & ~TSR_DONE_SHARED), "%s", comm->slots[r]->text);
    }
    return mine != TSR_OK ? mine : tsr_peer_failed(tsr_comm_name(comm, failed), comm->slots[failed]->text);
}

static tsr_status conclude_call(tsr_comm *comm, tsr_status mine, int32_t done)
{
    tsr_slot *slot = own_slot(comm);
    const int phase = comm->phase;
    comm->phase = !phase;
    if (done != TSR_OK)
        publish_text(comm, tsr_status_message());
    if (slot->done[phase] != done)
        slot->done[phase] = done;
    TSR_TRY(meet_ranks(comm));
    for (int r = 0; r < comm->size; r++)
        if (comm->slots[r]->done[phase] != TSR_OK)
            return verdict(comm, phase, mine);
    return TSR_OK;
}

/* Ends the device part of a call: this rank's stream waits for what peers have recorded for
 * `meeting`. Returns `status`, or the first failure. */
static tsr_status settle_order(tsr_comm *comm, tsr_meeting meeting, tsr_status status)
{
    const tsr_order *order = comm->order;
    comm->order = NULL;
    return tsr_order_wait(order, comm->stream, meeting, status);
}

static tsr_status end_call(tsr_comm *comm, tsr_status local, int32_t flags)
{
    local = tsr_order_record(comm->order, comm->stream, TSR_MEETING_END, local);
    leave_memory(comm);
    return settle_order(comm, TSR_MEETING_END, conclude_call(comm, local, (int32_t)local | flags));
}

tsr_status tsr_call_end(tsr_comm *comm, tsr_status local)
{
    return end_call(comm, local, 0);
}

tsr_status tsr_call_end_shared(tsr_comm *comm, tsr_status status)
{
    return end_call(comm, status, TSR_DONE_SHARED);
}

tsr_status tsr_call_middle(tsr_comm *comm, tsr_status local)
{
    local = tsr_order_record(comm->order, comm->stream, TSR_MEETING_MIDDLE, local);
    leave_memory(comm);
    const tsr_status status = conclude_call(comm, local, (int32_t)local);
    comm->meeting = TSR_MEETING_MIDDLE;
    return status == TSR_OK ? reach_memory(comm) : settle_order(comm, TSR_MEETING_MIDDLE, status);
}

tsr_status tsr_call_follow(tsr_comm *comm)
{
    TSR_TRY(tsr_order_reach_peers(comm));
    return tsr_order_wait(comm->order, comm->stream, comm->meeting, TSR_OK);
}

uint64_t tsr_call_sum_counts(const tsr_comm *comm)
{
    uint64_t sum = 0;
    for (int r = 0; r < comm->size; r++)
        sum += tsr_call_of(comm, r)->count;
    return sum;
}
