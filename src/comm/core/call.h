/**
 * How ranks of a direct communicator begin and end a collective call together.
 *
 * Begin publishes what this rank brings and meets the others: afterwards everybody can read everybody's tsr_call, and all know, in the
 * same words, whether the call can go on. End meets again: afterwards nobody reads this rank's buffers any more. Two rendezvous a
 * call, no allocation, no lock, no system call while ranks have cores to themselves.
 */
#ifndef TSR_COMM_CORE_CALL_H
#define TSR_COMM_CORE_CALL_H

#include "comm/core/entry.h"

/** See order.h. */
typedef struct tsr_order tsr_order;

typedef struct tsr_call {
    uint64_t fingerprint; /**< equal on all ranks exactly when their arguments agree */
    tsr_status status;    /**< TSR_OK, or the local failure with which this rank takes part */
    bool reaches;         /**< between begin and end this rank reads or writes peers' own memory, not their tsr_call_buffer() alone */
    bool placeless;       /**< this rank has no memory in the call, so that peers' may be on any kind of device */
    const void *src;
    void *dst;
    const void *extra; /**< the operation's own; lives until end */
    size_t count;      /**< likewise */

    /* By tsr_call_place(); zero on the host: */
    tsr_order *order;
    tsr_stream stream;
    uint64_t kind;    /**< of the device */
    uint64_t capture; /**< what records the stream; `fingerprint` holds both */
} tsr_call;

/** Words for one rank's arguments ("all_reduce of 3 f32, op sum"), asked for only when ranks disagree. */
typedef void tsr_call_describe(const void *arg, char *text, size_t capacity);

/** For memory that is not the host's: see tsr_call_place(). */
tsr_status tsr_call_place_on(tsr_comm *comm, tsr_call *mine, tsr_device device, tsr_stream stream);

/**
 * Says where the memory of a call is that reaches, before it is begun or started: ranks compare the kind of their devices, and on devices
 * with streams the call is ordered by events (order.h): what peers do with this rank's memory follows what `stream` holds now, and what it
 * is given after the end follows what they did. The first call on a device makes its events; later ones allocate nothing. `local` is the
 * rank's status so far, what is returned goes into mine->status.
 */
static inline tsr_status tsr_call_place(tsr_comm *comm, tsr_call *mine, tsr_device device, tsr_stream stream, tsr_status local)
{
    return device.driver && local == TSR_OK ? tsr_call_place_on(comm, mine, device, stream) : local;
}

/**
 * Collective. TSR_OK: all agree and none has failed. TSR_ERROR_ARGUMENT, on every rank: fingerprints differ; the sentence names the lowest
 * rank that differs from rank 0 and quotes both descriptions. TSR_ERROR_PEER: another rank brought a failed status (it is named; a failed
 * rank itself gets its own status back and its sentence is kept), or is gone. After anything but TSR_OK the call is over: do not end it.
 *
 * When a call is over, however it ended, nobody reaches into this rank's memory any more. So a rank that is told of a loss waits for the
 * peers that are inside, which takes them a copy at most, and those that have not begun to reach find that it is gone.
 */
tsr_status tsr_call_begin(tsr_comm *comm, const tsr_call *mine, tsr_call_describe *describe, const void *arg);

/**
 * The two halves of tsr_call_begin(), for calls in which a rank does something else meanwhile: start publishes what this rank brings, and
 * arrives where the engine can, without waiting; join waits and compares. To its peers it is the same call as one that began at once.
 * Direct communicators only. Between the two, everything else that communicates over this handle is refused, a second start too
 * (TSR_ERROR_STATE, nothing is changed). All other faults come from join: `mine->status`, whose sentence is kept, and what
 * tsr_call_begin() returns. Join gets what start got.
 */
tsr_status tsr_call_start(tsr_comm *comm, const tsr_call *mine);
tsr_status tsr_call_join(tsr_comm *comm, const tsr_call *mine, tsr_call_describe *describe, const void *arg);

/** Before peers' memory is touched, after begin and again after middle: what the call's stream is given from here on follows what peers'
 * streams held at that meeting. A failure is this rank's own, which then touches nothing of theirs and brings the status to the next
 * meeting. TSR_ERROR_UNSUPPORTED: this rank's device does not reach a peer's. */
tsr_status tsr_call_follow(tsr_comm *comm);

/** What rank `rank` brought; valid between begin and end. */
const tsr_call *tsr_call_of(const tsr_comm *comm, int rank);

/** Bytes of a tsr_call_buffer(). */
#define TSR_CALL_BUFFER_BYTES 4096

/**
 * Memory that peers can read, aligned to 64: for calls that are over without an end. Such a call copies what peers are to read here before
 * it begins or is started, and writes nothing of theirs; then nobody reads this rank's own memory, and one rendezvous is enough. Two
 * buffers take turns from call to call: when the first has its turn again, a later begin has shown that its readers are done. It outlives
 * this rank's handle. NULL once the communicator is broken, for then no begin shows anything, and while a call is started, for then the
 * last has not shown it yet. Direct communicators only.
 */
void *tsr_call_buffer(const tsr_comm *comm);

/** What rank `rank` has put there; valid between begin and the next call. */
const void *tsr_call_buffer_of(const tsr_comm *comm, int rank);

/** Collective. `local` is how this rank's own part went: a failure is returned to it, and told to the others as TSR_ERROR_PEER. Afterwards,
 * in stream order, nobody touches this rank's memory any more. */
tsr_status tsr_call_end(tsr_comm *comm, tsr_status local);

/** Collective, between begin and end of a call that reaches: all have got here. For calls in several phases. Peers' memory is let go of
 * meanwhile: a rank that leaves may be waiting for that, and would be waited for here. After anything but TSR_OK the call is over: do not
 * end it. */
tsr_status tsr_call_middle(tsr_comm *comm, tsr_status local);

/** The sum of what ranks have brought as `count` to the call in flight; between begin and end. */
uint64_t tsr_call_sum_counts(const tsr_comm *comm);

/** Words a fault of the call in flight that concerns all ranks, in place of tsr_call_end(): every rank returns `status` with the sentence
 * of the lowest rank that called this. Direct engines; `status` has its sentence in this thread. */
tsr_status tsr_call_end_shared(tsr_comm *comm, tsr_status status);

/** For a handle that goes, perhaps with a call started: peers that join it later find that this rank is gone, those that are inside are
 * waited for. */
void tsr_call_abandon(tsr_comm *comm);

/** TSR_ERROR_STATE while a call is started. */
tsr_status tsr_comm_check_idle(const tsr_comm *comm);

/** Ranks by name. "rank 0 calls .., but rank 2 calls ..", as TSR_ERROR_ARGUMENT. */
tsr_status tsr_disagreement(int base, const char *base_text, int odd, const char *odd_text);

/** "rank 2 failed: ..", as TSR_ERROR_PEER. */
tsr_status tsr_peer_failed(int rank, const char *text);

#endif
