/** An engine's own collectives, or ours by nodes, for callers whose ranks have agreed on the call
 * already. The call itself neither compares arguments nor allocates. */
#ifndef TSR_COMM_COLLECTIVES_NATIVE_H
#define TSR_COMM_COLLECTIVES_NATIVE_H

#include "comm/core/call.h"
#include "comm/core/traits.h"

/** Arguments as those of tsr_comm_collectives; a broadcast uses `receive` alone, on the root
 * too. */
typedef struct tsr_native_call {
    tsr_native kind;
    const void *send;
    void *receive;
    int64_t count; /**< of each rank's part, or of the one buffer */
    tsr_dtype dtype;
    tsr_reduce_op op;
    int root;
    tsr_device device;
    tsr_stream stream;
} tsr_native_call;

/** Reserves the memory that such a call needs on this rank: host memory that the communicator
 * keeps, if the collective goes by nodes (tsr_native_goes_by_nodes()), else none. What is reserved
 * already never shrinks. */
tsr_status tsr_native_reserve(tsr_comm *comm, tsr_native kind, int64_t count, tsr_dtype dtype);

/** True if this rank has reserved enough for such a call. */
bool tsr_native_is_reserved(const tsr_comm *comm, tsr_native kind, int64_t count, tsr_dtype dtype);

/** Collective; tsr_native_reserve() must have reserved its memory. TSR_ERROR_STATE: an exchange is
 * in flight. */
tsr_status tsr_comm_call_native(tsr_comm *comm, const tsr_native_call *call);

#endif
