/**
 * How calls of a direct engine are ordered on devices with streams: by events that ranks show one
 * another.
 *
 * A rank records an event on its stream before each meeting; after the meeting every rank's stream
 * waits for the peers' events. So the host waits for peers' hosts and never for a device. Each of
 * the three meetings of a call has its own event: a peer that goes on may record its next one while
 * this rank still makes its stream wait for the previous one. An event is recorded again only when
 * a later begin has shown that no rank waits for its last record, and every wait is for a record of
 * the same call, so calls can be captured into graphs.
 *
 * A tsr_order holds the events of one rank on one device. A rank makes one for each device that it
 * brings to calls of a communicator. It is reference-counted: peers that have met it hold a
 * reference, so it, its events and its driver outlive the handle while a peer may wait for them.
 */
#ifndef TSR_COMM_CORE_ORDER_H
#define TSR_COMM_CORE_ORDER_H

#include "base/references.h"
#include "comm/core/call.h"
#include "device/device.h"

/** The meetings of a call: before peers' memory is read, between its phases, and after. */
typedef enum tsr_meeting { TSR_MEETING_BEGIN, TSR_MEETING_MIDDLE, TSR_MEETING_END, TSR_MEETINGS } tsr_meeting;

/** The order that a peer last brought. */
typedef struct tsr_known {
    tsr_order *order; /**< a reference, or NULL */
    bool reached;     /**< this rank's device was found to reach the peer's */
} tsr_known;

struct tsr_order {
    tsr_references references;
    tsr_context *context;
    tsr_device device;
    tsr_device_ops ops;
    void *events[TSR_MEETINGS]; /**< NULL on a device without streams */
    struct tsr_order *next;     /**< in the list of its owner's handle */
    int ranks;
    tsr_known known[]; /**< one per rank; used by the owner only */
};

/** Finds this rank's order for a device that has a driver, or makes it. Borrowed from `comm`. */
tsr_status tsr_order_find(tsr_comm *comm, tsr_device device, tsr_order **out);

/** Drops all orders of a handle that is being destroyed, and its references to peers' orders. */
void tsr_orders_destroy(tsr_comm *comm);

/** Takes references to the orders that peers have brought to the call in flight, which keeps them
 * alive meanwhile. */
void tsr_order_meet_peers(const tsr_comm *comm);

/** Checks that this rank's device reaches the devices of all peers; each peer's order is checked
 * once. TSR_ERROR_UNSUPPORTED: it does not reach one. */
tsr_status tsr_order_reach_peers(const tsr_comm *comm);

/** Records the event of a meeting on the stream of a call. `local` is the call's status so far; if
 * it is a failure it is returned. If recording fails, the host waits for the stream instead, so
 * that peers need not wait for work of this rank, and that failure is returned. `order` NULL: does
 * nothing. */
tsr_status tsr_order_record(const tsr_order *order, tsr_stream stream, tsr_meeting meeting, tsr_status local);

/** Makes the stream wait for what peers have recorded for a meeting. A `local` failure is returned,
 * with its sentence. `order` NULL: does nothing. */
tsr_status tsr_order_wait(const tsr_order *order, tsr_stream stream, tsr_meeting meeting, tsr_status local);

/** For calls that are given up; failures are ignored and the thread's sentence stays. Follow makes
 * the stream wait for all that `theirs` has recorded after the begin. Drain makes the host wait for
 * the stream. `theirs` NULL, and `order` NULL in drain: nothing is done. */
void tsr_order_follow(const tsr_order *order, tsr_stream stream, const tsr_order *theirs);
void tsr_order_drain(const tsr_order *order, tsr_stream stream);

#endif
