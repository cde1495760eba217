#include "ffi.h"

#include <tessera/sys/status.h>

#include <stdio.h>

static XLA_FFI_Error_Code code_of(tsr_status status)
{
    switch (status) {
    case TSR_OK:
        return XLA_FFI_Error_Code_OK;
    case TSR_ERROR_ARGUMENT:
        return XLA_FFI_Error_Code_INVALID_ARGUMENT;
    case TSR_ERROR_UNSUPPORTED:
        return XLA_FFI_Error_Code_UNIMPLEMENTED;
    case TSR_ERROR_UNAVAILABLE:
        return XLA_FFI_Error_Code_UNAVAILABLE;
    case TSR_ERROR_MEMORY:
        return XLA_FFI_Error_Code_RESOURCE_EXHAUSTED;
    case TSR_ERROR_PEER:
        return XLA_FFI_Error_Code_ABORTED;
    case TSR_ERROR_STATE:
        return XLA_FFI_Error_Code_FAILED_PRECONDITION;
    default:
        return XLA_FFI_Error_Code_INTERNAL;
    }
}

XLA_FFI_Error *tsr_xla_error(const XLA_FFI_Api *api, const char *name, int64_t device, int64_t rank, tsr_status status)
{
    if (status == TSR_OK)
        return NULL;
    char sentence[1280];
    if (device < 0)
        snprintf(sentence, sizeof sentence, "%s: %s", name, tsr_status_message());
    else
        snprintf(sentence, sizeof sentence, "%s on device %lld (rank %lld): %s", name, (long long)device,
                 (long long)rank, tsr_status_message());
    XLA_FFI_Error_Create_Args args = {XLA_FFI_Error_Create_Args_STRUCT_SIZE, NULL, sentence, code_of(status)};
    return api->XLA_FFI_Error_Create(&args);
}

/* The sentence of an error. The entry has another name from API 0.5 on, and the same place. */
static const char *sentence_of(const XLA_FFI_Api *api, XLA_FFI_Error *error)
{
#if XLA_FFI_API_MINOR >= 5
    XLA_FFI_Error_GetDetails_Args args = {XLA_FFI_Error_GetDetails_Args_STRUCT_SIZE, NULL, error, "",
                                          XLA_FFI_Error_Code_OK};
    if (api->api_version.minor_version < 5)
        args.struct_size = offsetof(XLA_FFI_Error_GetDetails_Args, errc);
    api->XLA_FFI_Error_GetDetails(&args);
#else
    XLA_FFI_Error_GetMessage_Args args = {XLA_FFI_Error_GetMessage_Args_STRUCT_SIZE, NULL, error, ""};
    if (api->api_version.minor_version >= 5)
        return "XLA's error is in the words of a newer API";
    api->XLA_FFI_Error_GetMessage(&args);
#endif
    return args.message;
}

tsr_status tsr_xla_pass_on(const XLA_FFI_Api *api, const char *what, XLA_FFI_Error *error)
{
    if (!error)
        return TSR_OK;
    const tsr_status status = tsr_status_set(TSR_ERROR_STATE, "%s: %s", what, sentence_of(api, error));
    XLA_FFI_Error_Destroy_Args args = {XLA_FFI_Error_Destroy_Args_STRUCT_SIZE, NULL, error};
    api->XLA_FFI_Error_Destroy(&args);
    return status;
}

bool tsr_xla_tells_metadata(XLA_FFI_CallFrame *frame, XLA_FFI_TypeId state)
{
    if (!frame->extension_start || frame->extension_start->type != XLA_FFI_Extension_Metadata)
        return false;
    XLA_FFI_Metadata *const metadata = ((XLA_FFI_Metadata_Extension *)frame->extension_start)->metadata;
    const int host = frame->api ? frame->api->api_version.minor_version : XLA_FFI_API_MINOR;
    metadata->api_version.major_version = XLA_FFI_API_MAJOR;
    metadata->api_version.minor_version = host < XLA_FFI_API_MINOR ? host : XLA_FFI_API_MINOR;
    metadata->traits = 0;
    if (metadata->struct_size >= offsetof(XLA_FFI_Metadata, state_type_id) + sizeof metadata->state_type_id)
        metadata->state_type_id = state;
    return true;
}

tsr_status tsr_xla_whereabouts(XLA_FFI_CallFrame *frame, int64_t *run, int64_t *device)
{
    const XLA_FFI_Api *const api = frame->api;
    if (api->struct_size < offsetof(XLA_FFI_Api, XLA_FFI_DeviceOrdinal_Get) + sizeof api->XLA_FFI_DeviceOrdinal_Get)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              "this XLA's FFI %d.%d tells neither runs nor devices to calls; 0.2 and newer do",
                              api->api_version.major_version, api->api_version.minor_version);
    XLA_FFI_RunId_Get_Args which = {XLA_FFI_RunId_Get_Args_STRUCT_SIZE, NULL, frame->ctx, 0};
    TSR_TRY(tsr_xla_pass_on(api, "the run's id", api->XLA_FFI_RunId_Get(&which)));
    XLA_FFI_DeviceOrdinal_Get_Args where = {XLA_FFI_DeviceOrdinal_Get_Args_STRUCT_SIZE, NULL, frame->ctx, 0};
    TSR_TRY(tsr_xla_pass_on(api, "the device's ordinal", api->XLA_FFI_DeviceOrdinal_Get(&where)));
    *run = which.run_id;
    *device = where.device_ordinal;
    return TSR_OK;
}

/* XLA_FFI_State_Set_Args and XLA_FFI_State_Get_Args before API 0.3, where states have no stage. */
typedef struct old_state_args {
    size_t struct_size;
    XLA_FFI_Extension_Base *extension_start;
    XLA_FFI_ExecutionContext *ctx;
    XLA_FFI_TypeId *type_id;
    void *state;
} old_state_args;

tsr_status tsr_xla_state_set(const XLA_FFI_CallFrame *frame, XLA_FFI_TypeId type, void *state)
{
    old_state_args old = {sizeof old, NULL, frame->ctx, &type, state};
    XLA_FFI_State_Set_Args args = {.struct_size = XLA_FFI_State_Set_Args_STRUCT_SIZE,
                                   .ctx = frame->ctx,
                                   .stage = XLA_FFI_ExecutionStage_INSTANTIATE,
                                   .type_id = &type,
                                   .state = state};
    void *const given = frame->api->api_version.minor_version < 3 ? (void *)&old : &args;
    return tsr_xla_pass_on(frame->api, "the call's state", frame->api->XLA_FFI_State_Set(given));
}

tsr_status tsr_xla_state_get(const XLA_FFI_CallFrame *frame, XLA_FFI_TypeId type, void **state)
{
    old_state_args old = {sizeof old, NULL, frame->ctx, &type, NULL};
    XLA_FFI_State_Get_Args args = {.struct_size = XLA_FFI_State_Get_Args_STRUCT_SIZE,
                                   .ctx = frame->ctx,
                                   .stage = XLA_FFI_ExecutionStage_INSTANTIATE,
                                   .type_id = &type};
    const bool is_old = frame->api->api_version.minor_version < 3;
    TSR_TRY(tsr_xla_pass_on(frame->api, "the handler is not registered for the stage INSTANTIATE as well",
                            frame->api->XLA_FFI_State_Get(is_old ? (void *)&old : &args)));
    *state = is_old ? old.state : args.state;
    return TSR_OK;
}

tsr_dtype tsr_xla_dtype(XLA_FFI_DataType type)
{
    switch (type) {
    case XLA_FFI_DataType_PRED:
        return TSR_BOOL;
    case XLA_FFI_DataType_S8:
        return TSR_I8;
    case XLA_FFI_DataType_S16:
        return TSR_I16;
    case XLA_FFI_DataType_S32:
        return TSR_I32;
    case XLA_FFI_DataType_S64:
        return TSR_I64;
    case XLA_FFI_DataType_U8:
        return TSR_U8;
    case XLA_FFI_DataType_U16:
        return TSR_U16;
    case XLA_FFI_DataType_U32:
        return TSR_U32;
    case XLA_FFI_DataType_U64:
        return TSR_U64;
    case XLA_FFI_DataType_F16:
        return TSR_F16;
    case XLA_FFI_DataType_F32:
        return TSR_F32;
    case XLA_FFI_DataType_F64:
        return TSR_F64;
    case XLA_FFI_DataType_BF16:
        return TSR_BF16;
    case XLA_FFI_DataType_C64:
        return TSR_C64;
    case XLA_FFI_DataType_C128:
        return TSR_C128;
    case XLA_FFI_DataType_F8E4M3FN:
        return TSR_F8E4M3;
    case XLA_FFI_DataType_F8E5M2:
        return TSR_F8E5M2;
    default:
        return TSR_DTYPE_NONE;
    }
}
