/** An engine's own collectives, or ours by nodes, for callers that have agreed on the call already: nothing is compared, checked or
 * allocated here. */
#ifndef TSR_COMM_COLLECTIVES_NATIVE_H
#define TSR_COMM_COLLECTIVES_NATIVE_H

#include "comm/core/call.h"
#include "comm/core/traits.h"

/** Arguments as in the table: a broadcast has `receive` alone, on the root too. */
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

/** Sees to it that this rank has the memory for such calls, which is host memory that the communicator keeps where they go by nodes
 * (tsr_native_goes_by_nodes()). No less than that of the largest call is kept. */
tsr_status tsr_native_reserve(tsr_comm *comm, tsr_native kind, int64_t count, tsr_dtype dtype);

/** True if this rank has it. */
bool tsr_native_is_reserved(const tsr_comm *comm, tsr_native kind, int64_t count, tsr_dtype dtype);

/** Collective; what it needs is reserved. TSR_ERROR_STATE: an exchange is in flight. */
tsr_status tsr_comm_call_native(tsr_comm *comm, const tsr_native_call *call);

#endif
