/* A call site of an executable: XLA's state of a handler. It has the attributes, and the teams in
 * which devices meet. */
#ifndef TSR_HOSTS_XLA_CALL_H
#define TSR_HOSTS_XLA_CALL_H

#include "attributes.h"
#include "collectives.h"
#include "gpu_seats.h"

#include <tessera/comm.h>

/* A call site. */
typedef struct tsr_xla_call tsr_xla_call;

/* Checks and keeps a frame's attributes: what the stage INSTANTIATE does. `on_gpus`: devices are
 * GPUs, of one mesh or of several. */
tsr_status tsr_xla_call_create(tsr_xla_kind kind, const XLA_FFI_Attrs *attrs, bool on_gpus, tsr_xla_call **out);

/* For XLA, which destroys states: `call` is a tsr_xla_call. */
void tsr_xla_call_destroy(void *call);

/* Where a call stands: which run, device and rank it is of. */
typedef struct tsr_xla_place {
    int64_t run, device, rank; /* rank -1: none */
} tsr_xla_place;

/* The rank of place->device. */
tsr_status tsr_xla_call_find_rank(const tsr_xla_call *call, tsr_xla_place *place);

/* The number of the communicator that the host lends to the call; -1: the call has its own. */
int64_t tsr_xla_call_channel(const tsr_xla_call *call);

/* Collective over the ranks of the mesh: runs the call on the frame's buffers, with the call's own
 * communicators if `lent` is NULL, else over `lent`, this rank's. */
tsr_status tsr_xla_call_run(tsr_xla_call *call, const tsr_xla_place *place, tsr_comm *lent,
                            const XLA_FFI_CallFrame *frame);

/* The number of ranks. */
int64_t tsr_xla_call_ranks(const tsr_xla_call *call);

/* ---- Calls on GPUs ---- */

/* Asks XLA for a communicator, and opens libtessera-cuda: what the stage PREPARE does. */
tsr_status tsr_xla_call_request(tsr_xla_call *call, const XLA_FFI_CallFrame *frame);

/* Finds the seat of GPU place->device over the communicator that XLA lends, and the rank: what the
 * stage INITIALIZE does. */
tsr_status tsr_xla_call_sit_down(tsr_xla_call *call, tsr_xla_place *place, const XLA_FFI_CallFrame *frame,
                                 tsr_xla_gpu_seat **seat);

/* Collective over the ranks of the mesh: enqueues the call on XLA's stream. */
tsr_status tsr_xla_call_run_on_gpu(tsr_xla_call *call, tsr_xla_gpu_seat *seat, const tsr_xla_place *place,
                                   const XLA_FFI_CallFrame *frame);

#endif
