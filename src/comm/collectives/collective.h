/** A collective call as its steps see it: checked once, then carried out directly or by messages. */
#ifndef TSR_COMM_COLLECTIVES_COLLECTIVE_H
#define TSR_COMM_COLLECTIVES_COLLECTIVE_H

#include "comm/core/object.h"
#include "device/device.h"

typedef struct tsr_collective tsr_collective;

/** A row of what collectives there are. */
typedef struct tsr_operation {
    const char *call;            /**< "tsr_comm_all_gather" */
    const char *name;            /**< "all_gather" */
    bool reduces, rooted, parts; /**< `parts`: `count` or `counts` is what each rank has of the whole */
    /** Fills send_total and receive_total, from the elements of the whole. */
    tsr_status (*extents)(const tsr_comm *comm, tsr_collective *call, int64_t whole);
    bool (*in_place)(const tsr_comm *comm, const tsr_collective *call); /**< the one allowed overlap; NULL: none is */
    tsr_status (*match)(tsr_comm *comm, const tsr_collective *call);    /**< see tsr_direct_match(); or NULL */
    tsr_status (*direct)(tsr_comm *comm, const tsr_collective *call);
    tsr_status (*message)(tsr_comm *comm, const tsr_collective *call);
} tsr_operation;

struct tsr_collective {
    const tsr_operation *operation;
    const void *send;
    void *receive;
    int64_t count;
    const int64_t *counts;         /**< one a rank or NULL; of an all-to-all what it sends */
    const int64_t *receive_counts; /**< of an all-to-all, else NULL */
    tsr_dtype dtype;
    tsr_reduce_op op;
    int root;
    tsr_device device;
    tsr_stream stream;

    /* By tsr_collective_check(): */
    tsr_device_ops ops;
    size_t bytes; /**< of an element */
    /** Strides of contiguous operands, one row a rank, of operations that reduce: of this rank, in a direct engine those of rank 0. */
    const int64_t (*ones)[TSR_MAX_DIMS];
    int64_t send_total, receive_total; /**< elements that this rank's buffers hold */
    void *scratch;                     /**< of message engines' reductions: a part from every rank */
};

/** Fills the lower fields. A fault of this rank's arguments or buffers is what it takes part with, so that its peers are told: then
 * only `ops` is sure to be filled. */
tsr_status tsr_collective_check(const tsr_comm *comm, tsr_collective *call);

/** Equal on all ranks exactly when their arguments agree. */
uint64_t tsr_collective_fingerprint(const tsr_comm *comm, const tsr_collective *call);

/** What tsr_collective_describe() is given. */
typedef struct tsr_described {
    const tsr_collective *call;
    int ranks;
} tsr_described;

/** Words for a tsr_described, as a tsr_call_describe. */
void tsr_collective_describe(const void *described, char *text, size_t capacity);

/** What each kind of operation has in its buffers: tsr_operation.extents. */
tsr_status tsr_extents_gather_all(const tsr_comm *comm, tsr_collective *call, int64_t whole);
tsr_status tsr_extents_scatter_all(const tsr_comm *comm, tsr_collective *call, int64_t whole);
tsr_status tsr_extents_same(const tsr_comm *comm, tsr_collective *call, int64_t whole);
tsr_status tsr_extents_exchange(const tsr_comm *comm, tsr_collective *call, int64_t whole);
tsr_status tsr_extents_from_root(const tsr_comm *comm, tsr_collective *call, int64_t whole);
tsr_status tsr_extents_to_root(const tsr_comm *comm, tsr_collective *call, int64_t whole);

/** tsr_operation.in_place: send is receive, or this rank's part of it. */
bool tsr_in_place_whole(const tsr_comm *comm, const tsr_collective *call);
bool tsr_in_place_part(const tsr_comm *comm, const tsr_collective *call);

/** Elements of rank `rank`'s part, and of those before it: by counts, or count each. */
int64_t tsr_part_count(const tsr_collective *call, int rank);
int64_t tsr_part_offset(const tsr_collective *call, int rank);

/** This rank's share of an all-reduce: elements [begin, end), cut at cache lines. */
typedef struct tsr_share {
    int64_t begin, end;
} tsr_share;

tsr_share tsr_share_of(const tsr_comm *comm, const tsr_collective *call, int rank);

/** The address of element `index`. */
static inline void *tsr_element(const tsr_collective *call, const void *base, int64_t index)
{
    return base ? (char *)base + (size_t)index * call->bytes : NULL;
}

/** `count` elements; nothing where both are the same. */
tsr_status tsr_collective_copy(const tsr_collective *call, void *dst, const void *src, int64_t count);

/** Reduces `count` elements of comm->sources, in rank order, into the first `destinations` of comm->destinations. */
tsr_status tsr_collective_reduce(tsr_comm *comm, const tsr_collective *call, int64_t count, int destinations);

/** What a call sends and receives in one exchange. */
typedef struct tsr_traffic {
    tsr_comm *comm;
    const tsr_collective *call;
    tsr_message *sends, *receives;
    size_t send_count, receive_count;
} tsr_traffic;

/** Lists in `messages`, with room for `room` sends and as many receives. */
tsr_traffic tsr_traffic_begin(tsr_comm *comm, const tsr_collective *call, tsr_message *messages, size_t room);

/** Elements from `offset` on; nothing where there are none, or the rank is this one. */
void tsr_traffic_send(tsr_traffic *traffic, int rank, const void *base, int64_t offset, int64_t count);
void tsr_traffic_receive(tsr_traffic *traffic, int rank, const void *base, int64_t offset, int64_t count);

tsr_status tsr_traffic_deliver(const tsr_traffic *traffic);

/** True if a reduction gives the same bits in any order and by anybody's kernel: integers and bool. Floating min and max do not, for
 * engines may differ from ours in NaNs and in the order of zeros. */
bool tsr_native_is_exact(tsr_dtype dtype);

#endif
