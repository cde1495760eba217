/**
 * How ranks of a direct communicator begin and end a collective call together.
 *
 * Begin publishes this rank's tsr_call and waits for all ranks (a meet). Afterwards every rank can
 * read every tsr_call, and all ranks know, in the same words, whether the call can go on. End waits
 * for all ranks again; afterwards no peer reads this rank's buffers any more. A call costs two
 * meets, no allocation, no lock, and no system call as long as every rank has a core to itself.
 */
#ifndef TSR_COMM_CORE_CALL_H
#define TSR_COMM_CORE_CALL_H

#include "comm/core/entry.h"

/** See order.h. */
typedef struct tsr_order tsr_order;

typedef struct tsr_call {
    uint64_t fingerprint; /**< equal on all ranks if and only if their arguments agree */
    tsr_status status;    /**< TSR_OK, or the local failure with which this rank takes part */
    bool reaches;   /**< between begin and end this rank reads or writes peers' own memory, not their tsr_call_buffer()
                       alone */
    bool placeless; /**< this rank has no memory in the call, so that peers' may be on any kind of device */
    bool shows;     /**< peers read its tsr_call_buffer() */
    const void *src;
    void *dst;
    const void *extra; /**< for the operation's own use; must live until end */
    size_t count;      /**< for the operation's own use */

    /* Set by tsr_call_place(); 0 for memory on the host: */
    tsr_order *order;
    tsr_stream stream;
    uint64_t kind;    /**< tsr_device_kind() of the device */
    uint64_t capture; /**< identifies the capture that records the stream; tsr_call_place() adds `kind` and `capture` to
                         `fingerprint` */
} tsr_call;

/** Writes words for one rank's arguments ("all_reduce of 3 f32, op sum"); called when ranks
 * disagree, and for the log when a wait is long. */
typedef void tsr_call_describe(const void *arg, char *text, size_t capacity);

/** tsr_call_place() for memory on a device that has a driver. */
tsr_status tsr_call_place_on(tsr_comm *comm, tsr_call *mine, tsr_device device, tsr_stream stream);

/**
 * To be called before a call that reaches is begun or started: records in `mine` where its memory
 * is. Ranks compare the kind of their devices. On a device with streams the call is ordered by
 * events (order.h): what peers do with this rank's memory comes after the work that `stream` holds
 * now, and work that `stream` is given after the end comes after what peers did. The first call on
 * a device creates its events; later ones allocate nothing. `local` is the rank's status so far;
 * the caller stores the returned status in mine->status.
 */
static inline tsr_status tsr_call_place(tsr_comm *comm, tsr_call *mine, tsr_device device, tsr_stream stream,
                                        tsr_status local)
{
    return device.driver && local == TSR_OK ? tsr_call_place_on(comm, mine, device, stream) : local;
}

/**
 * Collective. TSR_OK: all ranks agree and none has failed. TSR_ERROR_ARGUMENT, on every rank:
 * fingerprints differ; the sentence names the lowest rank that differs from rank 0 and quotes both
 * descriptions. TSR_ERROR_PEER: another rank brought a failed status (the sentence names it), or a
 * rank is gone. A rank that failed itself gets its own status back, and its sentence is kept. After
 * anything but TSR_OK the call is over: do not end it.
 *
 * When a call is over, however it ended, no peer reads or writes this rank's memory any more. So a
 * rank that learns of a lost rank waits for the peers that are reading or writing right now, which
 * takes at most one copy; peers that are about to begin see that this rank is gone, and do not.
 */
tsr_status tsr_call_begin(tsr_comm *comm, const tsr_call *mine, tsr_call_describe *describe, const void *arg);

/**
 * The two halves of tsr_call_begin(), for calls in which a rank does something else meanwhile.
 * Start publishes what this rank brings, arrives at the meet if the engine supports that, and does
 * not wait. Join waits and compares. Some ranks may begin a call that others start and join. Direct
 * communicators only. Between the two, any other call that communicates over this handle, a second
 * start too, returns TSR_ERROR_STATE and changes nothing. All other faults are returned by join:
 * `mine->status`, whose sentence is kept, and what tsr_call_begin() returns. Join is given the same
 * `mine` as start.
 */
tsr_status tsr_call_start(tsr_comm *comm, const tsr_call *mine);
tsr_status tsr_call_join(tsr_comm *comm, const tsr_call *mine, tsr_call_describe *describe, const void *arg);

/** To be called when a call is over whose `arg` of tsr_call_begin() goes, where ranks also wait for
 * messages: later waits then do not describe the call. */
void tsr_call_forget(tsr_comm *comm);

/** To be called before peers' memory is touched, after begin and again after middle: orders what
 * the call's stream is given from here on after what peers' streams held at that meeting. A failure
 * is this rank's own: the rank then touches no peer's memory and brings the status to the next
 * meeting. TSR_ERROR_UNSUPPORTED: this rank's device does not reach a peer's. */
tsr_status tsr_call_follow(tsr_comm *comm);

/** The tsr_call that rank `rank` has published; valid between begin and end. */
const tsr_call *tsr_call_of(const tsr_comm *comm, int rank);

/** Bytes of a tsr_call_buffer(). */
#define TSR_CALL_BUFFER_BYTES 4096

/**
 * Memory of TSR_CALL_BUFFER_BYTES that peers can read, aligned to 64 bytes, for calls without an
 * end. Such a call copies here what peers are to read, before it begins or is started, and writes
 * no peer's memory; so no peer reads this rank's other memory, and one meet is enough. A call with
 * an end may fill it too, for peers in other processes, which cannot read `extra`. Two buffers take
 * turns from call to call: when the first has its turn again, a later begin has shown that its
 * readers are done. The buffer outlives this rank's handle. Returns NULL once the communicator is
 * broken, because then no begin can show that readers are done, and while a call is started,
 * because its begin has not shown it yet. Direct communicators only.
 */
void *tsr_call_buffer(const tsr_comm *comm);

/** The tsr_call_buffer() that rank `rank` has filled for the call in flight; valid from begin to
 * the next call. */
const void *tsr_call_buffer_of(const tsr_comm *comm, int rank);

/** Collective. `local` is the status of this rank's own part: this rank gets a failure back, the
 * others get TSR_ERROR_PEER. Afterwards, in stream order, no peer touches this rank's memory any
 * more. */
tsr_status tsr_call_end(tsr_comm *comm, tsr_status local);

/** Collective, between begin and end of a call that reaches, for calls in several phases: a
 * barrier. While it waits, this rank does not count as inside peers' memory: a peer that leaves
 * waits until no rank is inside, and this barrier would wait for that peer. After anything but
 * TSR_OK the call is over: do not end it. */
tsr_status tsr_call_middle(tsr_comm *comm, tsr_status local);

/** The sum of `count` over all ranks' calls; between begin and end. */
uint64_t tsr_call_sum_counts(const tsr_comm *comm);

/** Ends the call in flight, in place of tsr_call_end(), with a fault that concerns all ranks: every
 * rank returns `status` with the sentence of the lowest rank that called this. `status` has its
 * sentence in this thread. Direct engines only. */
tsr_status tsr_call_end_shared(tsr_comm *comm, tsr_status status);

/** To be called when a handle is destroyed, perhaps with a call started: waits for peers that are
 * inside this rank's memory; peers that join the call later find that this rank is gone. */
void tsr_call_abandon(tsr_comm *comm);

/** TSR_ERROR_STATE while a call is started. */
tsr_status tsr_comm_check_idle(const tsr_comm *comm);

/** TSR_ERROR_ARGUMENT with "rank 0 calls .., but rank 2 calls ..". `base` and `odd` are what
 * sentences call these ranks (tsr_comm_name()). */
tsr_status tsr_disagreement(int base, const char *base_text, int odd, const char *odd_text);

/** TSR_ERROR_PEER with "rank 2 failed: ..". `rank` is what sentences call the rank
 * (tsr_comm_name()). */
tsr_status tsr_peer_failed(int rank, const char *text);

#endif
