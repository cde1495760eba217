/** What a plan of a layer has besides its pass, forward or backward: its creation by all ranks
 * together, the redistributions of its tensors, the frame of an execution, and its end. Checks
 * return TSR_ERROR_ARGUMENT, in sentences that begin with `caller`. */
#ifndef TSR_OPS_PLAN_FRAME_H
#define TSR_OPS_PLAN_FRAME_H

#include "ops/blas/choice.h"

#include <tessera/plan.h>

/** The most redistributions of a plan: those of dy and of three gradients. */
#define TSR_FRAME_MOVES 4

/** The first member of a plan. */
typedef struct tsr_plan_frame {
    tsr_context *context; /**< one reference; the plan's memory is from it */
    tsr_comm *comm;
    tsr_device device;
    tsr_plan *moves[TSR_FRAME_MOVES]; /**< NULL: this tensor does not move */
} tsr_plan_frame;

/** Checks that the mesh of `x`, a layout of the layer, has a communicator. */
tsr_status tsr_plan_frame_check_mesh(const char *caller, const tsr_layout *x);

/** Allocates a plan of `bytes` that begins with a frame; all behind the frame is zero. `x` is a
 * layout of the layer. */
tsr_status tsr_plan_frame_create(const tsr_layout *x, tsr_comm *comm, tsr_device device, size_t bytes,
                                 tsr_plan_frame **out);

/** Plans move `which`, from one layout to another, unless they are equal. */
tsr_status tsr_plan_frame_add_move(tsr_plan_frame *frame, const char *caller, int which, const tsr_layout *from,
                                   const tsr_layout *to);

/** Collective: ends a plan's creation. `local` is this rank's status so far; `frame` and `choice`
 * are NULL if it has no plan. If no rank failed, the choice becomes what ranks agree on, and is
 * held, and moves are prepared. TSR_ERROR_ARGUMENT on all ranks: they have different moves. */
tsr_status tsr_plan_frame_agree(tsr_plan_frame *frame, tsr_choice *choice, tsr_comm *comm, tsr_status local);

/** Bytes of workspace for any of the moves. */
size_t tsr_plan_frame_moving_bytes(const tsr_plan_frame *frame);

/** Begins an execution, the user's call `caller`: holds the communicator if a tensor moves. If none
 * does, executions do not communicate, and do not use the communicator's handle. */
tsr_status tsr_plan_frame_hold(const tsr_plan_frame *frame, const char *caller);

/** Ends an execution, whose status it returns. */
tsr_status tsr_plan_frame_let_go(const tsr_plan_frame *frame, tsr_status status);

/** Checks that the stream is NULL on the host, and that a workspace of `bytes` bytes has the
 * `wanted` bytes. */
tsr_status tsr_plan_frame_check(const tsr_plan_frame *frame, const char *caller, const void *workspace, size_t bytes,
                                size_t wanted, tsr_stream stream);

/** Moves a tensor in an execution whose status on this rank is `local`. After a failure this rank
 * takes part as failed, as its peers would wait for it; the result is then `local`, with its
 * sentence. */
tsr_status tsr_plan_frame_move(const tsr_plan_frame *frame, int which, tsr_status local, const tsr_tensor *from,
                               const tsr_tensor *to, void *workspace, size_t bytes, tsr_stream stream);

/** Releases the choice and frees the plan, whose other members the caller has released. */
void tsr_plan_frame_destroy(tsr_plan_frame *frame, tsr_choice *choice);

#endif
