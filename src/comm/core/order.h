/**
 * How calls of a direct engine are ordered on devices with streams: by events that ranks show each other.
 *
 * A rank that comes to a meeting has recorded an event on its stream; after the meeting every rank's stream waits for the peers' events. So
 * the host waits for peers' hosts and never for a device. Each of the three meetings of a call has an event of its own: a peer that goes on
 * may record its next one while this rank still asks its stream to wait for the last. An event is recorded again only when a later begin
 * has shown that nobody asks for it any more, and every wait is for a record of the same call, so that calls can be captured into graphs.
 *
 * A rank has one order for each device that it has brought to calls of a communicator. It is shared: peers that have met it hold it too, so
 * that it, its events and its driver outlive the handle as long as somebody may wait for them.
 */
#ifndef TSR_COMM_CORE_ORDER_H
#define TSR_COMM_CORE_ORDER_H

#include "base/references.h"
#include "comm/core/call.h"
#include "device/device.h"

/** The meetings of a call: before peers' memory is read, between its phases, and after. */
typedef enum tsr_meeting { TSR_MEETING_BEGIN, TSR_MEETING_MIDDLE, TSR_MEETING_END, TSR_MEETINGS } tsr_meeting;

/** A peer's order as this rank has met it. */
typedef struct tsr_known {
    tsr_order *order; /**< a reference, or NULL */
    bool reached;     /**< its memory was found to be in reach */
} tsr_known;

struct tsr_order {
    tsr_references references;
    tsr_context *context;
    tsr_device device;
    tsr_device_ops ops;
    void *events[TSR_MEETINGS]; /**< NULL on a device without streams */
    struct tsr_order *next;     /**< of the same handle */
    int ranks;
    tsr_known known[]; /**< by rank; its owner's alone */
};

/** This rank's order for a device that has a driver, made the first time. */
tsr_status tsr_order_find(tsr_comm *comm, tsr_device device, tsr_order **out);

/** For a handle that goes. */
void tsr_orders_destroy(tsr_comm *comm);

/** Meets the orders that peers have brought to the call in flight, while it keeps them alive. */
void tsr_order_meet_peers(const tsr_comm *comm);

/** Asks whether this rank's device reaches what peers have brought, once for each pair. TSR_ERROR_UNSUPPORTED: it does not. */
tsr_status tsr_order_reach_peers(const tsr_comm *comm);

/** Records the event of a meeting on the stream of a call, of which `local` is the status so far. If that fails, the stream is waited for
 * instead, so that nothing of this rank's is left for peers to wait for, and the failure is this rank's. `order` NULL: nothing. */
tsr_status tsr_order_record(const tsr_order *order, tsr_stream stream, tsr_meeting meeting, tsr_status local);

/** Makes the stream wait for what peers have recorded for a meeting. A `local` failure keeps its sentence. `order` NULL: nothing. */
tsr_status tsr_order_wait(const tsr_order *order, tsr_stream stream, tsr_meeting meeting, tsr_status local);

/** For calls that are given up, where failures are not told any more, and the thread's sentence stays: makes the stream wait for all that
 * a peer has recorded after it had begun; waits for the stream. NULL: nothing. */
void tsr_order_follow(const tsr_order *order, tsr_stream stream, const tsr_order *theirs);
void tsr_order_drain(const tsr_order *order, tsr_stream stream);

#endif
