/** A collective call: it is checked once, then carried out directly or by messages. */
#ifndef TSR_COMM_COLLECTIVES_COLLECTIVE_H
#define TSR_COMM_COLLECTIVES_COLLECTIVE_H

#include "comm/core/object.h"
#include "device/device.h"

typedef struct tsr_collective tsr_collective;

/** The collectives; direct.c and message.c have a function for each. */
typedef enum tsr_operation_kind {
    TSR_OPERATION_ALL_GATHER,
    TSR_OPERATION_REDUCE_SCATTER,
    TSR_OPERATION_ALL_REDUCE,
    TSR_OPERATION_ALL_TO_ALL,
    TSR_OPERATION_BROADCAST,
    TSR_OPERATION_SCATTER,
    TSR_OPERATION_GATHER,
    TSR_OPERATIONS
} tsr_operation_kind;

/** What differs between collectives: one static row for each. */
typedef struct tsr_operation {
    tsr_operation_kind kind;
    const char *name;            /**< "all_gather" */
    bool reduces, rooted, parts; /**< `parts`: `count` and `counts` give each rank's part, not the whole */
    /** Sets send_total and receive_total; `whole` is the number of elements of the whole. */
    tsr_status (*extents)(const tsr_comm *comm, tsr_collective *call, int64_t whole);
    /** true for the one allowed overlap; NULL: no overlap is allowed */
    bool (*in_place)(const tsr_comm *comm, const tsr_collective *call);
    tsr_status (*match)(tsr_comm *comm, const tsr_collective *call); /**< see tsr_direct_match(); or NULL */
} tsr_operation;

struct tsr_collective {
    const char *caller; /**< the public function that sentences name: "tsr_comm_all_gather" */
    const char *buffer; /**< what `caller` calls its only buffer, which is `send` and `receive`; NULL: it has both */
    const tsr_operation *operation;
    const void *send;
    void *receive;
    int64_t count;
    const int64_t *counts;         /**< one per rank; NULL: `count` each; the send counts of an all-to-all */
    const int64_t *receive_counts; /**< of an all-to-all with counts, else NULL */
    tsr_dtype dtype;
    tsr_reduce_op op;
    int root;
    tsr_device device;
    tsr_stream stream;

    /* Set by tsr_collective_check(), but `ones` and `scratch` by the caller: */
    tsr_device_ops ops;
    size_t bytes; /**< of an element */
    /** Of operations that reduce: strides of contiguous operands, one row per rank. Ranks of a
     * direct engine use the rows of rank 0. */
    const int64_t (*ones)[TSR_MAX_DIMS];
    int64_t send_total, receive_total; /**< elements in this rank's `send` and `receive` */
    void *scratch;                     /**< of reductions by messages: room for the other ranks' terms */
};

/** Checks this rank's arguments, and sets ops, bytes, send_total and receive_total. A failure is
 * the status that this rank brings to the call, so that its peers learn of it; then only `ops` is
 * sure to be set. */
tsr_status tsr_collective_check(const tsr_comm *comm, tsr_collective *call);

/** A hash that is equal on all ranks if and only if their arguments agree. */
uint64_t tsr_collective_fingerprint(const tsr_comm *comm, const tsr_collective *call);

/** The argument of tsr_collective_describe(). */
typedef struct tsr_described {
    const tsr_collective *call;
    int ranks;
} tsr_described;

/** A tsr_call_describe whose argument is a tsr_described. */
void tsr_collective_describe(const void *described, char *text, size_t capacity);

/** Implementations of tsr_operation.extents. */
tsr_status tsr_extents_gather_all(const tsr_comm *comm, tsr_collective *call, int64_t whole);
tsr_status tsr_extents_scatter_all(const tsr_comm *comm, tsr_collective *call, int64_t whole);
tsr_status tsr_extents_same(const tsr_comm *comm, tsr_collective *call, int64_t whole);
tsr_status tsr_extents_exchange(const tsr_comm *comm, tsr_collective *call, int64_t whole);
tsr_status tsr_extents_from_root(const tsr_comm *comm, tsr_collective *call, int64_t whole);
tsr_status tsr_extents_to_root(const tsr_comm *comm, tsr_collective *call, int64_t whole);

/** Implementations of tsr_operation.in_place: `send` is `receive`, or is this rank's part within
 * it. */
bool tsr_in_place_whole(const tsr_comm *comm, const tsr_collective *call);
bool tsr_in_place_part(const tsr_comm *comm, const tsr_collective *call);

/** Elements in the part of rank `rank`, and in the parts of all lower ranks together. */
int64_t tsr_part_count(const tsr_collective *call, int rank);
int64_t tsr_part_offset(const tsr_collective *call, int rank);

/** The elements [begin, end) of an all-reduce that one rank reduces. Shares are cut at multiples of
 * a cache line's size from the start of the buffer. */
typedef struct tsr_share {
    int64_t begin, end;
} tsr_share;

tsr_share tsr_share_of(const tsr_comm *comm, const tsr_collective *call, int rank);

/** The address of element `index`; NULL if `base` is. */
static inline void *tsr_element(const tsr_collective *call, const void *base, int64_t index)
{
    return base ? (char *)base + (size_t)index * call->bytes : NULL;
}

/** Copies `count` elements; does nothing if `dst` is `src`. */
tsr_status tsr_collective_copy(const tsr_collective *call, void *dst, const void *src, int64_t count);

/** Reduces `count` elements of each of comm->sources, in rank order; the result goes to each of the
 * first `destinations` of comm->destinations. */
tsr_status tsr_collective_reduce(tsr_comm *comm, const tsr_collective *call, int64_t count, int destinations);

/** The messages that a call sends and receives in one exchange. */
typedef struct tsr_traffic {
    tsr_comm *comm;
    const tsr_collective *call;
    tsr_message *sends, *receives;
    size_t send_count, receive_count;
} tsr_traffic;

/** Empty lists in `messages`, which has room for `room` sends and as many receives. */
tsr_traffic tsr_traffic_begin(tsr_comm *comm, const tsr_collective *call, tsr_message *messages, size_t room);

/** Lists a message to or from `rank`: `count` elements from element `offset` of `base` on. Does
 * nothing if `count` is 0 or `rank` is this rank. */
void tsr_traffic_send(tsr_traffic *traffic, int rank, const void *base, int64_t offset, int64_t count);
void tsr_traffic_receive(tsr_traffic *traffic, int rank, const void *base, int64_t offset, int64_t count);

tsr_status tsr_traffic_deliver(const tsr_traffic *traffic);

/** True if a reduction gives the same bits in any order and by any engine's kernel: integers and
 * bool. False for floating min and max, too: engines may differ from our kernels in NaNs and in the
 * order of zeros. */
bool tsr_native_is_exact(tsr_dtype dtype);

#endif
