/* What XLA lends to calls on GPUs: communicators, by its extension for collectives, and streams.
 *
 * The extension's header came with API 0.5. A library that is built without it refuses the
 * calls. */
#ifndef TSR_HOSTS_XLA_COLLECTIVES_H
#define TSR_HOSTS_XLA_COLLECTIVES_H

#include "ffi.h"

#include <tessera/context.h>

struct ncclComm;

/* Whose communicator a call wants: that of the caller's group. */
typedef struct tsr_xla_group {
    const int64_t *ids;   /* the devices of all groups, as replica * partitions + partition */
    int64_t count, ranks; /* of all groups, and of each */
    int64_t channel;      /* XLA's communication id */
} tsr_xla_group;

/* TSR_ERROR_UNSUPPORTED: the library is built without the extension's header. */
tsr_status tsr_xla_collectives_check(void);

/* Asks XLA for the communicator, at the stage PREPARE; it is there at INITIALIZE and EXECUTE. */
tsr_status tsr_xla_collectives_request(const XLA_FFI_CallFrame *frame, const tsr_xla_group *group,
                                       tsr_context *context);

/* The communicator that was asked for, which stays XLA's. */
tsr_status tsr_xla_collectives_get(const XLA_FFI_CallFrame *frame, const tsr_xla_group *group, tsr_context *context,
                                   struct ncclComm **comm);

/* XLA's stream, a cudaStream_t. */
tsr_status tsr_xla_collectives_stream(const XLA_FFI_CallFrame *frame, void **stream);

#endif
