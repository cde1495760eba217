#include "ops/plan_frame.h"

#include "ops/agreement.h"
#include "ops/numbers.h"

#include <tessera/sys/comm.h>
#include <tessera/sys/memory.h>

#include <string.h>

tsr_status tsr_plan_frame_check_mesh(const char *caller, const tsr_layout *x)
{
    if (tsr_mesh_comm(tsr_layout_mesh(x)))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: x is on an abstract mesh; a layer that runs needs a mesh over a communicator", caller);
}

tsr_status tsr_plan_frame_create(const tsr_layout *x, tsr_comm *comm, tsr_device device, size_t bytes,
                                 tsr_plan_frame **out)
{
    tsr_context *context = tsr_mesh_context(tsr_layout_mesh(x));
    void *memory;
    TSR_TRY(tsr_allocate(context, bytes, &memory));
    memset(memory, 0, bytes);
    *out = memory;
    **out = (tsr_plan_frame){.context = tsr_context_retain(context), .comm = comm, .device = device};
    return TSR_OK;
}

tsr_status tsr_plan_frame_add_move(tsr_plan_frame *frame, const char *caller, int which, const tsr_layout *from,
                                   const tsr_layout *to)
{
    if (tsr_layout_equal(from, to))
        return TSR_OK;
    const tsr_status status = tsr_plan_create(from, to, NULL, &frame->moves[which]);
    return status == TSR_OK ? TSR_OK : tsr_status_set(status, "%s: %s", caller, tsr_status_message());
}

static unsigned moves_of(const tsr_plan_frame *frame)
{
    unsigned moves = 0;
    for (int i = 0; i < TSR_FRAME_MOVES; i++)
        moves |= (frame->moves[i] ? 1U : 0) << i;
    return moves;
}

tsr_status tsr_plan_frame_agree(tsr_plan_frame *frame, tsr_choice *choice, tsr_comm *comm, tsr_status local)
{
    tsr_choice none = {.count = 0};
    TSR_TRY(tsr_agree_on_provider(comm, local, frame ? choice : &none));
    tsr_choice_hold(choice);
    TSR_TRY(tsr_agree_on_moves(comm, TSR_OK, moves_of(frame)));
    for (int i = 0; i < TSR_FRAME_MOVES; i++) {
        if (frame->moves[i])
            TSR_TRY(tsr_plan_prepare(frame->moves[i], comm));
    }
    return TSR_OK;
}

size_t tsr_plan_frame_moving_bytes(const tsr_plan_frame *frame)
{
    size_t bytes = 0;
    for (int i = 0; i < TSR_FRAME_MOVES; i++) {
        if (frame->moves[i])
            bytes = tsr_larger_bytes(bytes, tsr_plan_workspace_bytes(frame->moves[i]));
    }
    return bytes;
}

tsr_status tsr_plan_frame_hold(const tsr_plan_frame *frame, const char *caller)
{
    return moves_of(frame) ? tsr_comm_hold(frame->comm, caller) : TSR_OK;
}

tsr_status tsr_plan_frame_let_go(const tsr_plan_frame *frame, tsr_status status)
{
    return moves_of(frame) ? tsr_comm_let_go(frame->comm, status) : status;
}

tsr_status tsr_plan_frame_check(const tsr_plan_frame *frame, const char *caller, const void *workspace, size_t bytes,
                                size_t wanted, tsr_stream stream)
{
    if (stream && !frame->device.driver)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: stream is %p, but the host has one stream, NULL", caller,
                              stream);
    if (bytes >= wanted && (workspace || wanted == 0))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: workspace %p of %zu bytes; the plan wants %zu bytes", caller,
                          workspace, bytes, wanted);
}

/* Takes part in a move, in which peers would wait for this rank, as a rank that failed with
 * `status`. The source is NULL, which fails; the destination is an invalid tensor (ndim -1) that
 * only tells the device, on which it depends whether peers are told at all. */
static tsr_status take_part(const tsr_plan_frame *frame, const tsr_plan *move, tsr_status status, tsr_stream stream)
{
    const tsr_tensor none = {.ndim = -1, .device = frame->device};
    tsr_kept_sentence kept;
    tsr_status_keep(&kept);
    tsr_plan_execute(move, frame->comm, NULL, &none, NULL, 0, stream);
    return tsr_status_restore(&kept, status);
}

tsr_status tsr_plan_frame_move(const tsr_plan_frame *frame, int which, tsr_status local, const tsr_tensor *from,
                               const tsr_tensor *to, void *workspace, size_t bytes, tsr_stream stream)
{
    const tsr_plan *const move = frame->moves[which];
    return local == TSR_OK ? tsr_plan_execute(move, frame->comm, from, to, workspace, bytes, stream)
                           : take_part(frame, move, local, stream);
}

void tsr_plan_frame_destroy(tsr_plan_frame *frame, tsr_choice *choice)
{
    tsr_choice_release(choice);
    for (int i = 0; i < TSR_FRAME_MOVES; i++)
        tsr_plan_destroy(frame->moves[i]);
    tsr_context *context = frame->context;
    tsr_release(context, frame);
    tsr_context_destroy(context);
}
