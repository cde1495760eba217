/** The communicator object, as the files of src/comm see it. */
#ifndef TSR_COMM_CORE_OBJECT_H
#define TSR_COMM_CORE_OBJECT_H

#include "base/references.h"
#include "comm/core/call.h"
#include "comm/core/comm.h"
#include "comm/core/entry.h"
#include "comm/core/order.h"
#include "comm/core/table.h"

/** Bytes of a slot's `text`: what the other fields leave of TSR_COMM_SLOT_BYTES. */
#define TSR_SLOT_TEXT_BYTES                                                                                            \
    (TSR_COMM_SLOT_BYTES - 2 * TSR_CALL_BUFFER_BYTES - 2 * sizeof(tsr_call) - sizeof(tsr_order *) - 4 * sizeof(int32_t))

/**
 * What a rank of a direct engine publishes. Its owner writes it and all ranks read it. A rank may
 * be one meet ahead of the slowest reader, so a field that is read after a meet must not be written
 * before the next one. Therefore:
 *
 * - `call` is written before the meet of begin, and read until the meet of end, or, in a call
 *   without an end, until the meet of the next begin. Calls use its two elements in turn.
 * - `buffer` is filled before begin by a call without an end. Calls use its two elements in turn.
 * - `done` is written before the meet of middle or end and read after it. The two elements are used
 *   in turn because an end may follow a middle at once.
 * - `text` is written between two meets of one call, and read after the second.
 *
 * The atomic fields do not depend on meets. A rank that gives up a call sets `gone`, then waits
 * until no rank is `inside`. A rank that is about to touch peers' memory sets `inside`, then looks
 * whether a rank is `gone`. So at least one of the two sees the other. `order` is set when its
 * owner first works on a device; it stays valid until its owner's `gone` is set and no rank is
 * inside.
 */
typedef struct tsr_slot {
    tsr_call call[2];
    tsr_order *order; /**< atomic */
    int32_t done[2];  /**< a tsr_status, plus TSR_DONE_SHARED */
    int32_t gone; /**< atomic; beside fields that peers read in every call, so that reading it costs no further cache
                     line */
    char text[TSR_SLOT_TEXT_BYTES];
    int32_t inside; /**< atomic; written in every call, so apart from the fields that peers read in every call */
    char buffer[2][TSR_CALL_BUFFER_BYTES];
} tsr_slot;

_Static_assert(sizeof(tsr_slot) == TSR_COMM_SLOT_BYTES, "a slot is what a table promises");

/** Flag in `done`: the fault concerns all ranks. Every rank returns the status with the words of
 * the lowest rank that set the flag. */
#define TSR_DONE_SHARED 0x100

/** An exchange as this rank was given it; kept until it ends. */
typedef struct tsr_exchange {
    const char *caller; /**< the public function that sentences name */
    const tsr_message *sends, *receives;
    size_t send_count, receive_count;
    tsr_device device;
    tsr_stream stream;
    const char *staging;  /**< memory from which received messages are unpacked later; NULL: every message is received
                             where it is to lie */
    size_t staging_bytes; /**< of `staging` */
    void *landing; /**< `self` for the device's copy of receives outside `staging`; NULL: the same as for the others */
    tsr_call call; /**< what a rank of a direct engine publishes for it */
} tsr_exchange;

/** What a rank of a message engine brings to tsr_comm_agree(). */
typedef struct tsr_agreement {
    uint64_t fingerprint;
    int64_t status;
    int64_t unable;   /**< see tsr_comm_agree_able() */
    uint64_t balance; /**< see balance.h */
} tsr_agreement;

/** What each rank tells all others in tsr_group_prepare(). */
typedef struct tsr_group_record {
    uint64_t hash, fingerprint;
    int64_t rounds;
    int32_t count; /**< ranks in the set */
    /** `missing`: this rank does not hold the group; `growing`: the group's slot lacks something */
    int32_t missing, growing;
    int32_t odd; /**< the lowest rank of this rank's set that brought a different set or fingerprint; -1: none did */
} tsr_group_record;

/** See hierarchy.h. */
typedef struct tsr_hierarchy tsr_hierarchy;

struct tsr_group_entry {
    tsr_group group;
    const int *names; /**< `names` of the group's communicator */
    uint64_t hash;
    struct tsr_group_entry *next;
};

struct tsr_comm {
    tsr_comm_mark mark;        /**< see entry.h; first */
    tsr_references references; /**< the handle's owner, meshes over it, and communicators that were split off it */
    tsr_comm *parent; /**< the communicator that this one was split off, retained; NULL if it was not split off, and for
                         a group's */
    tsr_comm *outer;  /**< of a group's communicator: the one that holds the group; else NULL */
    int *ranks_in_parent; /**< one per rank of this communicator; NULL if and only if `parent` is */
    uint64_t number;      /**< see tsr_comm_number(); 0 for a communicator without parent */
    uint64_t descendants; /**< atomic; of a communicator without parent: how many have ever descended from it */
    tsr_engine engine;
    void *self;
    tsr_context *context;
    tsr_kernel_choices *choices; /**< of the host's kernels; shared with communicators split off this one */
    tsr_device_ops host;         /**< the context's host kernels, with `choices` as their `self` */
    int rank, size;
    /** of a group's communicator: rank here -> rank in the one that users hold; NULL: the same */
    const int *names;
    int turn;         /**< index of the slot's `call` and `buffer` that the call in flight uses */
    int phase;        /**< index of the slot's `done` that the call in flight uses next */
    bool broken;      /**< a meet failed: nothing is published any more */
    bool started;     /**< the first half of a call is done: only its second half may be called */
    bool exchanging;  /**< the call that is started is `exchange` */
    tsr_order *order; /**< of the call in flight, from begin to end; NULL: its memory is on the host */
    tsr_stream stream;
    tsr_meeting meeting; /**< the meeting that the call in flight came to last */
    /** of the last call that has begun, with argument `described`; valid while that call meets */
    tsr_call_describe *describe;
    const void *described;
    tsr_order *orders; /**< a list: one for each device that has held the memory of a call */
    tsr_exchange exchange;
    tsr_kept_sentence fault; /**< the sentence of the failure with which this rank started a call */

    tsr_slot **slots; /**< one per rank; NULL for message engines. The engine's list, or `own_slots` */
    tsr_slot **own_slots;
    tsr_hierarchy *hierarchy; /**< NULL if nodes make no difference, or are not known */

    /* Scratch for the call in flight, one element per rank; NULL until a call needs it
     * (arrays.h). */
    const void **sources;
    void **destinations;
    int64_t (*ones)[TSR_MAX_DIMS]; /**< strides of contiguous operands of one dimension */
    tsr_message *messages;         /**< two per rank: sends, then receives */
    size_t *cursors;
    tsr_agreement *agreements;
    tsr_group_record *records;

    /** the group of all ranks, over this communicator; its hash is 0 until it is prepared */
    tsr_group_entry whole;
    tsr_group_entry *groups;
    uint64_t mates; /**< the hash of the group of this rank's node; 0 until it is prepared (groups/mates.h) */

    void *kept; /**< see tsr_comm_kept() */
    void (*drop_kept)(void *kept);
};

/** The operations of a tensor's device; those of the host use the communicator's `choices`. */
static inline tsr_device_ops tsr_comm_device_ops(const tsr_comm *comm, tsr_device device)
{
    return device.driver ? tsr_device_resolve(comm->context, device) : comm->host;
}

/** tsr_call_of(), inlined. */
static inline const tsr_call *tsr_published_call(const tsr_comm *comm, int rank)
{
    return &comm->slots[rank]->call[comm->turn];
}

/** The number that sentences give to rank `rank`. */
static inline int tsr_comm_name(const tsr_comm *comm, int rank)
{
    return comm->names ? comm->names[rank] : rank;
}

/** True if a rank with status `mine` is to return a peer's failure `cause` instead: it has not
 * failed itself, or failed only because of a peer and `cause` is another kind of failure. */
static inline bool tsr_status_yields(tsr_status mine, tsr_status cause)
{
    return mine == TSR_OK || (mine == TSR_ERROR_PEER && cause != TSR_ERROR_PEER);
}

/** The lowest rank whose status is a failure of its own (not TSR_ERROR_PEER), else the lowest with
 * any failure; -1 if none failed. */
static inline int tsr_find_failed(const tsr_comm *comm, tsr_status (*status_of)(const tsr_comm *comm, int rank))
{
    int failed = -1;
    for (int r = 0; r < comm->size; r++) {
        const tsr_status status = status_of(comm, r);
        if (status != TSR_OK && (failed < 0 || tsr_status_yields(status_of(comm, failed), status)))
            failed = r;
    }
    return failed;
}

#endif
