/* The functions that XLA calls on GPUs: each serves the stages of its kind of call. */
#include "call.h"
#include "types.h"

#include <tessera/sys/status.h>
#include <tessera/xla.h>

#include <string.h>

typedef struct handler {
    const char *name; /* in programs: that of the handler for CPUs */
    XLA_FFI_Handler *serve;
} handler;

static tsr_status instantiate(XLA_FFI_CallFrame *frame, tsr_xla_kind kind, const tsr_xla_types *types)
{
    tsr_xla_call *call = NULL;
    TSR_TRY(tsr_xla_collectives_check());
    TSR_TRY(tsr_xla_call_create(kind, &frame->attrs, true, &call));
    const tsr_status status = tsr_xla_state_set(frame, types->state, call);
    if (status != TSR_OK)
        tsr_xla_call_destroy(call);
    return status;
}

static tsr_status prepare(XLA_FFI_CallFrame *frame, const tsr_xla_types *types)
{
    void *call = NULL;
    TSR_TRY(tsr_xla_state_get(frame, types->state, &call));
    return tsr_xla_call_request(call, frame);
}

/* The stages INITIALIZE and, if `runs`, EXECUTE. */
static tsr_status launch(XLA_FFI_CallFrame *frame, const tsr_xla_types *types, bool runs, tsr_xla_place *place)
{
    void *call = NULL;
    tsr_xla_gpu_seat *seat;
    TSR_TRY(tsr_xla_whereabouts(frame, &place->run, &place->device));
    TSR_TRY(tsr_xla_state_get(frame, types->state, &call));
    TSR_TRY(tsr_xla_call_sit_down(call, place, frame, &seat));
    return runs ? tsr_xla_call_run_on_gpu(call, seat, place, frame) : TSR_OK;
}

static XLA_FFI_Error *serve(XLA_FFI_CallFrame *frame, tsr_xla_kind kind, const char *name)
{
    tsr_xla_types types = {{0}, {0}};
    tsr_xla_place place = {0, -1, -1};
    tsr_status status = frame->api ? tsr_xla_types_find(frame->api, tsr_xla_call_destroy, &types) : TSR_OK;
    if (tsr_xla_tells_metadata(frame, types.state))
        return NULL;
    if (status == TSR_OK && frame->stage == XLA_FFI_ExecutionStage_INSTANTIATE)
        status = instantiate(frame, kind, &types);
    else if (status == TSR_OK && frame->stage == XLA_FFI_ExecutionStage_PREPARE)
        status = prepare(frame, &types);
    else if (status == TSR_OK && frame->stage == XLA_FFI_ExecutionStage_INITIALIZE)
        status = launch(frame, &types, false, &place);
    else if (status == TSR_OK && frame->stage == XLA_FFI_ExecutionStage_EXECUTE)
        status = launch(frame, &types, true, &place);
    return tsr_xla_error(frame->api, name, place.device, place.rank, status);
}

XLA_FFI_Error *tsr_xla_gpu_redistribute(XLA_FFI_CallFrame *frame)
{
    return serve(frame, TSR_XLA_REDISTRIBUTE, "tsr_xla_redistribute");
}

XLA_FFI_Error *tsr_xla_gpu_all_reduce(XLA_FFI_CallFrame *frame)
{
    return serve(frame, TSR_XLA_ALL_REDUCE, "tsr_xla_all_reduce");
}

XLA_FFI_Error *tsr_xla_gpu_all_gather(XLA_FFI_CallFrame *frame)
{
    return serve(frame, TSR_XLA_ALL_GATHER, "tsr_xla_all_gather");
}

XLA_FFI_Error *tsr_xla_gpu_reduce_scatter(XLA_FFI_CallFrame *frame)
{
    return serve(frame, TSR_XLA_REDUCE_SCATTER, "tsr_xla_reduce_scatter");
}

XLA_FFI_Error *tsr_xla_gpu_all_to_all(XLA_FFI_CallFrame *frame)
{
    return serve(frame, TSR_XLA_ALL_TO_ALL, "tsr_xla_all_to_all");
}

XLA_FFI_Error *tsr_xla_gpu_linear_column(XLA_FFI_CallFrame *frame)
{
    return serve(frame, TSR_XLA_COLUMN, "tsr_xla_linear_column");
}

XLA_FFI_Error *tsr_xla_gpu_linear_column_backward(XLA_FFI_CallFrame *frame)
{
    return serve(frame, TSR_XLA_COLUMN_BACKWARD, "tsr_xla_linear_column_backward");
}

XLA_FFI_Error *tsr_xla_gpu_linear_row(XLA_FFI_CallFrame *frame)
{
    return serve(frame, TSR_XLA_ROW, "tsr_xla_linear_row");
}

XLA_FFI_Error *tsr_xla_gpu_linear_row_backward(XLA_FFI_CallFrame *frame)
{
    return serve(frame, TSR_XLA_ROW_BACKWARD, "tsr_xla_linear_row_backward");
}

static const handler handlers[] = {
    {"tsr_xla_redistribute", tsr_xla_gpu_redistribute},
    {"tsr_xla_all_reduce", tsr_xla_gpu_all_reduce},
    {"tsr_xla_all_gather", tsr_xla_gpu_all_gather},
    {"tsr_xla_reduce_scatter", tsr_xla_gpu_reduce_scatter},
    {"tsr_xla_all_to_all", tsr_xla_gpu_all_to_all},
    {"tsr_xla_linear_column", tsr_xla_gpu_linear_column},
    {"tsr_xla_linear_column_backward", tsr_xla_gpu_linear_column_backward},
    {"tsr_xla_linear_row", tsr_xla_gpu_linear_row},
    {"tsr_xla_linear_row_backward", tsr_xla_gpu_linear_row_backward},
};

static tsr_status register_handlers(const XLA_FFI_Api *api)
{
    for (size_t h = 0; h < sizeof handlers / sizeof handlers[0]; h++) {
        XLA_FFI_Handler *const serves = handlers[h].serve;
        XLA_FFI_Handler_Register_Args args = {
            .struct_size = XLA_FFI_Handler_Register_Args_STRUCT_SIZE,
            .name = {handlers[h].name, strlen(handlers[h].name)},
            .platform = {"CUDA", 4},
            .bundle = {.instantiate = serves, .prepare = serves, .initialize = serves, .execute = serves},
        };
        TSR_TRY(tsr_xla_pass_on(api, handlers[h].name, api->XLA_FFI_Handler_Register(&args)));
    }
    return TSR_OK;
}

XLA_FFI_Error *tsr_xla_gpu_register(XLA_FFI_CallFrame *frame)
{
    const char *const name = "tsr_xla_gpu_register";
    tsr_xla_types types = {{0}, {0}};
    tsr_status status = tsr_xla_types_find(frame->api, tsr_xla_call_destroy, &types);
    if (tsr_xla_tells_metadata(frame, (XLA_FFI_TypeId){0})) {
        if (status == TSR_OK)
            status = register_handlers(frame->api);
        return tsr_xla_error(frame->api, name, -1, -1, status);
    }
    tsr_status_set(TSR_ERROR_STATE, "it registers the handlers of Tessera, and is not for programs");
    return tsr_xla_error(frame->api, name, -1, -1, TSR_ERROR_STATE);
}
