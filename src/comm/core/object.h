/** The communicator object, as the files of src/comm see it. */
#ifndef TSR_COMM_CORE_OBJECT_H
#define TSR_COMM_CORE_OBJECT_H

#include "base/references.h"
#include "comm/core/call.h"
#include "comm/core/comm.h"
#include "comm/core/entry.h"
#include "comm/core/order.h"
#include "comm/core/table.h"

/** What is left of a slot for the words of a rank that failed or disagrees. */
#define TSR_SLOT_TEXT_BYTES                                                                                                                \
    (TSR_COMM_SLOT_BYTES - 2 * TSR_CALL_BUFFER_BYTES - 2 * sizeof(tsr_call) - sizeof(tsr_order *) - 4 * sizeof(int32_t))

/**
 * What a rank of a direct engine publishes. Its owner writes, everybody reads, and a rank may be one meet ahead of the slowest reader, so a
 * field that is read after a meet must not be written before the next one:
 * `call` is written before the meet of begin and read until that of end, or, in a call without an end, that of the next begin: its two
 * places take turns, and so do the two of `buffer`, which a call without an end fills before it begins; `done` is written before the meet
 * of middle or end and read after it, its two places in turn because a middle may be followed at once by an end; `text` is written between
 * two meets of one call, and read after the second. The atomic ones go by no meets: who gives up a call sets `gone`, then waits until
 * nobody is `inside`; who is about to reach into peers' memory sets `inside`, then looks whether somebody is `gone`. One of the two sees
 * the other. `order` is what its owner works with on a device, from the first time on; it is there until `gone` is set and nobody inside.
 */
typedef struct tsr_slot {
    tsr_call call[2];
    tsr_order *order; /**< atomic */
    int32_t done[2];  /**< a tsr_status, plus TSR_DONE_SHARED */
    int32_t gone;     /**< atomic; beside what peers read in every call */
    char text[TSR_SLOT_TEXT_BYTES];
    int32_t inside; /**< atomic; written in every call, so where peers read nothing */
    char buffer[2][TSR_CALL_BUFFER_BYTES];
} tsr_slot;

_Static_assert(sizeof(tsr_slot) == TSR_COMM_SLOT_BYTES, "a slot is what a table promises");

/** In `done`: the fault is not this rank's own; every rank returns the status, with the words of the lowest rank that has it. */
#define TSR_DONE_SHARED 0x100

/** What a rank brings to an exchange, and keeps until its end. */
typedef struct tsr_exchange {
    const char *caller; /**< "tsr_comm_exchange" */
    const tsr_message *sends, *receives;
    size_t send_count, receive_count;
    tsr_device device;
    tsr_stream stream;
    const char *staging;  /**< where messages wait to be unpacked; NULL: all that arrives has arrived where it is to lie */
    size_t staging_bytes; /**< likewise */
    void *landing;        /**< what the device's copy is given for receives that lie outside `staging`; NULL: as for all others */
    tsr_call call;        /**< as a direct engine's rank publishes it */
} tsr_exchange;

/** What a rank of a message engine brings to tsr_comm_agree(). */
typedef struct tsr_agreement {
    uint64_t fingerprint;
    int64_t status;
    int64_t unable;   /**< see tsr_comm_agree_able() */
    uint64_t balance; /**< see balance.h */
} tsr_agreement;

/** A record of tsr_group_prepare(), one a rank. */
typedef struct tsr_group_record {
    uint64_t hash, fingerprint;
    int64_t rounds;
    int32_t count;            /**< of the set */
    int32_t missing, growing; /**< this rank does not hold the group, or holds too little scratch */
    int32_t odd;              /**< the lowest rank of this rank's set that brought another one; -1: none */
} tsr_group_record;

/** See hierarchy.h. */
typedef struct tsr_hierarchy tsr_hierarchy;

struct tsr_group_entry {
    tsr_group group;
    const int *names; /**< of its communicator */
    uint64_t hash;
    struct tsr_group_entry *next;
};

struct tsr_comm {
    tsr_comm_mark mark;        /**< see entry.h; first */
    tsr_references references; /**< the handle's owner, meshes over it, and communicators that were split off it */
    tsr_comm *parent;          /**< that this one was split off, retained; NULL: none, or a group's */
    tsr_comm *outer;           /**< of a group: the communicator that has it; else NULL */
    int *ranks_in_parent;      /**< one a rank of this one; NULL exactly where `parent` is */
    uint64_t number;           /**< see tsr_comm_number(); 0: the eldest, or a group's */
    uint64_t descendants;      /**< atomic; of the eldest: how many there have been */
    tsr_engine engine;
    void *self;
    tsr_context *context;
    tsr_kernel_choices *choices; /**< of the host's kernels; those that are split off share it */
    tsr_device_ops host;         /**< with the kernels that the context chose, which choose by `choices` */
    int rank, size;
    const int *names; /**< of a group: its ranks as the communicator that users hold numbers them; NULL: as they are */
    int turn;         /**< which `call` and which `buffer` the call in flight uses */
    int phase;        /**< which `done` the call in flight uses next */
    bool broken;      /**< a meeting failed: nothing is written to the slot from then on */
    bool started;     /**< a call is in flight, whose second half is all that may be called */
    bool exchanging;  /**< it is `exchange` */
    tsr_order *order; /**< of the call in flight, between its begin and end: where its memory is; NULL: on the host */
    tsr_stream stream;
    tsr_meeting meeting;         /**< which it came to last */
    tsr_call_describe *describe; /**< of the last call that has begun, with its argument: good while that meets */
    const void *described;
    tsr_order *orders; /**< one for each device that calls have had memory on */
    tsr_exchange exchange;
    tsr_kept_sentence fault; /**< with which this rank has started a call */

    tsr_slot **slots; /**< one a rank; NULL for message engines. Kept by the engine, or in `own_slots` */
    tsr_slot **own_slots;
    tsr_hierarchy *hierarchy; /**< NULL where nodes make no difference, or are not known */

    /* For one call in flight, one a rank; NULL until a call needs them: see arrays.h. */
    const void **sources;
    void **destinations;
    int64_t (*ones)[TSR_MAX_DIMS]; /**< strides of what is contiguous and of one dim */
    tsr_message *messages;         /**< two a rank: sends, then receives */
    size_t *cursors;
    tsr_agreement *agreements;
    tsr_group_record *records;

    tsr_group_entry whole; /**< the communicator itself; its hash is 0 until it is prepared */
    tsr_group_entry *groups;
};

/** What work on a tensor's device goes through: on the host with the communicator's choices. */
static inline tsr_device_ops tsr_comm_device_ops(const tsr_comm *comm, tsr_device device)
{
    return device.driver ? tsr_device_resolve(comm->context, device) : comm->host;
}

/** What rank `rank` has published of the call in flight: see tsr_call_of(). */
static inline const tsr_call *tsr_published_call(const tsr_comm *comm, int rank)
{
    return &comm->slots[rank]->call[comm->turn];
}

/** What sentences call a rank. */
static inline int tsr_comm_name(const tsr_comm *comm, int rank)
{
    return comm->names ? comm->names[rank] : rank;
}

/** True if a rank with status `mine` is told of one with `cause` in place of its own: it has not failed, or only because of a peer. */
static inline bool tsr_status_yields(tsr_status mine, tsr_status cause)
{
    return mine == TSR_OK || (mine == TSR_ERROR_PEER && cause != TSR_ERROR_PEER);
}

/** The lowest rank that failed for a reason of its own, else the lowest that failed, by what each has brought; -1: none has. */
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
