/* The functions that XLA calls: each serves the stages of its kind of call. */
#include "call.h"
#include "types.h"

#include <tessera/sys/status.h>
#include <tessera/xla.h>

#include <string.h>

typedef struct handler {
    const char *name;
    XLA_FFI_Handler *serve;
} handler;

static tsr_status instantiate(XLA_FFI_CallFrame *frame, tsr_xla_kind kind, const tsr_xla_types *types)
{
    tsr_xla_call *call = NULL;
    TSR_TRY(tsr_xla_call_create(kind, &frame->attrs, false, &call));
    const tsr_status status = tsr_xla_state_set(frame, types->state, call);
    if (status != TSR_OK)
        tsr_xla_call_destroy(call);
    return status;
}

/* The communicator that the host lends to the rank's call; NULL: the call has its own. */
static tsr_status find_lent(XLA_FFI_CallFrame *frame, const tsr_xla_types *types, const tsr_xla_call *call,
                            int64_t rank, tsr_comm **comm)
{
    const int64_t channel = tsr_xla_call_channel(call), ranks = tsr_xla_call_ranks(call);
    *comm = NULL;
    if (channel < 0)
        return TSR_OK;
    XLA_FFI_TypeId type = types->lent;
    XLA_FFI_ExecutionContext_Get_Args args = {XLA_FFI_ExecutionContext_Get_Args_STRUCT_SIZE, NULL, frame->ctx, &type,
                                              NULL};
    TSR_TRY(tsr_xla_pass_on(frame->api, "the host lends no communicators to this run, and the call has a `channel`",
                            frame->api->XLA_FFI_ExecutionContext_Get(&args)));
    const tsr_xla_lent *const lent = args.data;
    if (lent->size != sizeof *lent)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "the host's tsr_xla_lent has size %zu; it is %zu", lent->size,
                              sizeof *lent);
    if (lent->ranks != ranks || channel >= lent->channels)
        return tsr_status_set(
            TSR_ERROR_ARGUMENT,
            "the call wants channel %lld with %lld ranks; the host lends %lld channels with %lld ranks",
            (long long)channel, (long long)ranks, (long long)lent->channels, (long long)lent->ranks);
    *comm = lent->comms[channel * ranks + rank];
    if (!*comm)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "the host lends rank %lld no communicator for channel %lld",
                              (long long)rank, (long long)channel);
    return TSR_OK;
}

static tsr_status execute(XLA_FFI_CallFrame *frame, const tsr_xla_types *types, tsr_xla_place *place)
{
    void *state = NULL;
    tsr_comm *lent;
    TSR_TRY(tsr_xla_whereabouts(frame, &place->run, &place->device));
    TSR_TRY(tsr_xla_state_get(frame, types->state, &state));
    tsr_xla_call *const call = state;
    TSR_TRY(tsr_xla_call_find_rank(call, place));
    TSR_TRY(find_lent(frame, types, call, place->rank, &lent));
    return tsr_xla_call_run(call, place, lent, frame);
}

static XLA_FFI_Error *serve(XLA_FFI_CallFrame *frame, tsr_xla_kind kind, const char *name)
{
    tsr_xla_types types = {{0}, {0}};
    tsr_xla_place place = {0, -1, -1};
    const tsr_status found = frame->api ? tsr_xla_types_find(frame->api, tsr_xla_call_destroy, &types) : TSR_OK;
    if (tsr_xla_tells_metadata(frame, types.state))
        return NULL;
    if (found != TSR_OK)
        return tsr_xla_error(frame->api, name, -1, -1, found);
    switch (frame->stage) {
    case XLA_FFI_ExecutionStage_INSTANTIATE:
        return tsr_xla_error(frame->api, name, -1, -1, instantiate(frame, kind, &types));
    case XLA_FFI_ExecutionStage_EXECUTE: {
        const tsr_status status = execute(frame, &types, &place);
        return tsr_xla_error(frame->api, name, place.device, place.rank, status);
    }
    default:
        return NULL;
    }
}

XLA_FFI_Error *tsr_xla_redistribute(XLA_FFI_CallFrame *frame)
{
    return serve(frame, TSR_XLA_REDISTRIBUTE, "tsr_xla_redistribute");
}

XLA_FFI_Error *tsr_xla_all_reduce(XLA_FFI_CallFrame *frame)
{
    return serve(frame, TSR_XLA_ALL_REDUCE, "tsr_xla_all_reduce");
}

XLA_FFI_Error *tsr_xla_all_gather(XLA_FFI_CallFrame *frame)
{
    return serve(frame, TSR_XLA_ALL_GATHER, "tsr_xla_all_gather");
}

XLA_FFI_Error *tsr_xla_reduce_scatter(XLA_FFI_CallFrame *frame)
{
    return serve(frame, TSR_XLA_REDUCE_SCATTER, "tsr_xla_reduce_scatter");
}

XLA_FFI_Error *tsr_xla_all_to_all(XLA_FFI_CallFrame *frame)
{
    return serve(frame, TSR_XLA_ALL_TO_ALL, "tsr_xla_all_to_all");
}

XLA_FFI_Error *tsr_xla_linear_column(XLA_FFI_CallFrame *frame)
{
    return serve(frame, TSR_XLA_COLUMN, "tsr_xla_linear_column");
}

XLA_FFI_Error *tsr_xla_linear_column_backward(XLA_FFI_CallFrame *frame)
{
    return serve(frame, TSR_XLA_COLUMN_BACKWARD, "tsr_xla_linear_column_backward");
}

XLA_FFI_Error *tsr_xla_linear_row(XLA_FFI_CallFrame *frame)
{
    return serve(frame, TSR_XLA_ROW, "tsr_xla_linear_row");
}

XLA_FFI_Error *tsr_xla_linear_row_backward(XLA_FFI_CallFrame *frame)
{
    return serve(frame, TSR_XLA_ROW_BACKWARD, "tsr_xla_linear_row_backward");
}

static const handler handlers[] = {
    {"tsr_xla_redistribute", tsr_xla_redistribute},
    {"tsr_xla_all_reduce", tsr_xla_all_reduce},
    {"tsr_xla_all_gather", tsr_xla_all_gather},
    {"tsr_xla_reduce_scatter", tsr_xla_reduce_scatter},
    {"tsr_xla_all_to_all", tsr_xla_all_to_all},
    {"tsr_xla_linear_column", tsr_xla_linear_column},
    {"tsr_xla_linear_column_backward", tsr_xla_linear_column_backward},
    {"tsr_xla_linear_row", tsr_xla_linear_row},
    {"tsr_xla_linear_row_backward", tsr_xla_linear_row_backward},
};

/* Before API 0.5 a bundle has no `record`: `traits` have its place, and both are 0. */
static tsr_status register_handlers(const XLA_FFI_Api *api)
{
    for (size_t h = 0; h < sizeof handlers / sizeof handlers[0]; h++) {
        XLA_FFI_Handler_Register_Args args = {
            .struct_size = XLA_FFI_Handler_Register_Args_STRUCT_SIZE,
            .name = {handlers[h].name, strlen(handlers[h].name)},
            .platform = {"Host", 4},
            .bundle = {.instantiate = handlers[h].serve, .execute = handlers[h].serve},
        };
        TSR_TRY(tsr_xla_pass_on(api, handlers[h].name, api->XLA_FFI_Handler_Register(&args)));
    }
    return TSR_OK;
}

XLA_FFI_Error *tsr_xla_register(XLA_FFI_CallFrame *frame)
{
    const char *const name = "tsr_xla_register";
    tsr_xla_types types = {{0}, {0}};
    const tsr_status found = tsr_xla_types_find(frame->api, tsr_xla_call_destroy, &types);
    if (tsr_xla_tells_metadata(frame, (XLA_FFI_TypeId){0})) {
        const tsr_status status = found == TSR_OK ? register_handlers(frame->api) : found;
        return tsr_xla_error(frame->api, name, -1, -1, status);
    }
    tsr_status_set(TSR_ERROR_STATE, "it registers the handlers of Tessera, and is not for programs");
    return tsr_xla_error(frame->api, name, -1, -1, TSR_ERROR_STATE);
}
