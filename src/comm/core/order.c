#include "comm/core/order.h"

#include "base/memory/memory.h"
#include "comm/core/object.h"
#include "device/driver.h"

static void destroy_events(tsr_order *order)
{
    for (int m = 0; m < TSR_MEETINGS; m++)
        if (order->events[m])
            order->ops.table->event_destroy(order->ops.self, order->ops.index, order->events[m]);
}

static void release_order(tsr_order *order)
{
    if (!order || !tsr_references_drop(&order->references))
        return;
    destroy_events(order);
    tsr_device_driver_release(order->device.driver);
    tsr_context *const context = order->context;
    tsr_release(context, order);
    tsr_context_destroy(context);
}

static tsr_order *retain(tsr_order *order)
{
    if (order)
        tsr_references_add(&order->references);
    return order;
}

static tsr_status create_events(tsr_order *order)
{
    const tsr_device_ops *const ops = &order->ops;
    for (int m = 0; ops->table->event_create && m < TSR_MEETINGS; m++)
        TSR_TRY(ops->table->event_create(ops->self, ops->index, &order->events[m]));
    return TSR_OK;
}

static tsr_status create_order(const tsr_comm *comm, tsr_device device, tsr_order **out)
{
    tsr_order *order;
    TSR_TRY(
        tsr_allocate_zeroed(comm->context, sizeof *order + (size_t)comm->size * sizeof *order->known, (void **)&order));
    order->references = 1;
    order->context = tsr_context_retain(comm->context);
    order->device = (tsr_device){tsr_device_driver_retain(device.driver), device.index};
    order->ops = tsr_device_resolve(comm->context, device);
    order->ranks = comm->size;
    const tsr_status status = create_events(order);
    if (status != TSR_OK) {
        release_order(order);
        return status;
    }
    *out = order;
    return TSR_OK;
}

tsr_status tsr_order_find(tsr_comm *comm, tsr_device device, tsr_order **out)
{
    for (tsr_order *order = comm->orders; order; order = order->next) {
        if (tsr_device_same(order->device, device)) {
            *out = order;
            return TSR_OK;
        }
    }
    tsr_order *made;
    TSR_TRY(create_order(comm, device, &made));
    made->next = comm->orders;
    comm->orders = made;
    *out = made;
    return TSR_OK;
}

/* Two ranks' orders hold references to each other; this breaks the cycle. */
static void forget_peers(tsr_order *order)
{
    for (int r = 0; r < order->ranks; r++) {
        release_order(order->known[r].order);
        order->known[r] = (tsr_known){0};
    }
}

void tsr_orders_destroy(tsr_comm *comm)
{
    while (comm->orders) {
        tsr_order *const order = comm->orders;
        comm->orders = order->next;
        forget_peers(order);
        release_order(order);
    }
}

void tsr_order_meet_peers(const tsr_comm *comm)
{
    tsr_order *const mine = comm->order;
    for (int r = 0; mine && r < comm->size; r++) {
        tsr_order *const theirs = r == comm->rank ? NULL : tsr_published_call(comm, r)->order;
        tsr_known *const peer = &mine->known[r];
        if (peer->order == theirs)
            continue;
        release_order(peer->order);
        *peer = (tsr_known){retain(theirs), false};
    }
}

/* Ranks may have different driver objects: the peer's driver, which owns the memory, is asked to
 * open it to this device. */
static tsr_status reach_peer(const tsr_comm *comm, const tsr_order *mine, int rank)
{
    const tsr_device_ops *const ops = &mine->known[rank].order->ops;
    const tsr_device there = mine->known[rank].order->device;
    int reached = 1;
    if (ops->table->reaches && mine->ops.index != there.index)
        TSR_TRY(ops->table->reaches(ops->self, mine->ops.index, there.index, &reached));
    if (reached)
        return TSR_OK;
    char own[64], theirs[64];
    return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                          "%s, where rank %d has its memory, does not reach %s, where rank %d has its: use devices "
                          "that reach each other, or an "
                          "engine of messages",
                          tsr_device_print(mine->device, own), tsr_comm_name(comm, comm->rank),
                          tsr_device_print(there, theirs), tsr_comm_name(comm, rank));
}

tsr_status tsr_order_reach_peers(const tsr_comm *comm)
{
    tsr_order *const mine = comm->order;
    for (int r = 0; mine && r < comm->size; r++) {
        tsr_known *const peer = &mine->known[r];
        if (!peer->order || peer->reached)
            continue;
        TSR_TRY(reach_peer(comm, mine, r));
        peer->reached = true;
    }
    return TSR_OK;
}

void tsr_order_drain(const tsr_order *order, tsr_stream stream)
{
    if (!order || !order->ops.table->stream_synchronize)
        return;
    tsr_kept_sentence kept;
    tsr_status_keep(&kept);
    (void)order->ops.table->stream_synchronize(order->ops.self, order->ops.index, stream);
    tsr_status_restore(&kept, TSR_OK);
}

void tsr_order_follow(const tsr_order *order, tsr_stream stream, const tsr_order *theirs)
{
    tsr_kept_sentence kept;
    tsr_status_keep(&kept);
    for (int m = TSR_MEETING_MIDDLE; theirs && m < TSR_MEETINGS; m++)
        if (order->events[m] && theirs->events[m])
            (void)order->ops.table->event_wait(order->ops.self, order->ops.index, theirs->events[m], stream);
    tsr_status_restore(&kept, TSR_OK);
}

/* If the event cannot be recorded, peers have nothing to wait for, so the host waits for the
 * stream. */
static tsr_status record(const tsr_order *order, tsr_stream stream, tsr_meeting meeting)
{
    const tsr_device_ops *const ops = &order->ops;
    const tsr_status status = ops->table->event_record(ops->self, ops->index, order->events[meeting], stream);
    if (status == TSR_OK)
        return TSR_OK;
    tsr_order_drain(order, stream);
    return status;
}

static tsr_status wait_for_events(const tsr_order *order, tsr_stream stream, tsr_meeting meeting)
{
    const tsr_device_ops *const ops = &order->ops;
    for (int r = 0; r < order->ranks; r++) {
        const tsr_order *const theirs = order->known[r].order;
        if (theirs && theirs->events[meeting])
            TSR_TRY(ops->table->event_wait(ops->self, ops->index, theirs->events[meeting], stream));
    }
    return TSR_OK;
}

typedef tsr_status step(const tsr_order *order, tsr_stream stream, tsr_meeting meeting);

/* Takes `way` if the device has streams. An earlier failure `local` is returned with its
 * sentence. */
static tsr_status take_step(step *way, const tsr_order *order, tsr_stream stream, tsr_meeting meeting, tsr_status local)
{
    if (!order || !order->events[meeting])
        return local;
    if (local == TSR_OK)
        return way(order, stream, meeting);
    tsr_kept_sentence kept;
    tsr_status_keep(&kept);
    (void)way(order, stream, meeting);
    return tsr_status_restore(&kept, local);
}

tsr_status tsr_order_record(const tsr_order *order, tsr_stream stream, tsr_meeting meeting, tsr_status local)
{
    return take_step(record, order, stream, meeting, local);
}

tsr_status tsr_order_wait(const tsr_order *order, tsr_stream stream, tsr_meeting meeting, tsr_status local)
{
    return take_step(wait_for_events, order, stream, meeting, local);
}
