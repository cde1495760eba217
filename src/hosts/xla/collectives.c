#include "collectives.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <string.h>

#if __has_include(<xla/ffi/api/collectives_c_api.h>)

#include <xla/ffi/api/collectives_c_api.h>

tsr_status tsr_xla_collectives_check(void)
{
    return TSR_OK;
}

static tsr_status refuse_version(const XLA_FFI_Extension *extension)
{
    return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                          "XLA's extension for collectives is %d.%d with %zu bytes, in which this library finds no "
                          "communicators; it takes version %d of at least %zu bytes",
                          (int)extension->id.major_version, (int)extension->id.minor_version, extension->struct_size,
                          XLA_FFI_Extension_Collectives_MajorVersion,
                          XLA_FFI_STRUCT_SIZE(XLA_FFI_Collectives_Extension, get_communicator));
}

/* The extension of this call. Its later entries, and those of later versions, are not used. */
static tsr_status find_extension(const XLA_FFI_CallFrame *frame, const XLA_FFI_Collectives_Extension **out)
{
    const XLA_FFI_Api *const api = frame->api;
    if (api->struct_size < XLA_FFI_STRUCT_SIZE(XLA_FFI_Api, XLA_FFI_InvokeContext_FindExtension))
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              "this XLA's FFI %d.%d lends no communicators to calls on GPUs; 0.5 and newer do",
                              api->api_version.major_version, api->api_version.minor_version);
    XLA_FFI_InvokeContext_FindExtension_Args args = {.struct_size =
                                                         XLA_FFI_InvokeContext_FindExtension_Args_STRUCT_SIZE,
                                                     .ctx = frame->ctx,
                                                     .extension_type = XLA_FFI_Extension_Collectives};
    TSR_TRY(tsr_xla_pass_on(api, "XLA's extension for collectives", api->XLA_FFI_InvokeContext_FindExtension(&args)));
    if (!args.extension)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              "this XLA lends no communicators to the call: it has no extension for collectives (%d), "
                              "which XLA has for GPUs from jaxlib 0.12 on",
                              XLA_FFI_Extension_Collectives);
    if (args.extension->id.major_version != XLA_FFI_Extension_Collectives_MajorVersion ||
        args.extension->struct_size < XLA_FFI_STRUCT_SIZE(XLA_FFI_Collectives_Extension, get_communicator))
        return refuse_version(args.extension);
    *out = (const XLA_FFI_Collectives_Extension *)args.extension;
    return TSR_OK;
}

static tsr_status make_groups(const tsr_xla_group *group, tsr_context *context, XLA_FFI_ReplicaGroup **out,
                              size_t *count)
{
    void *memory;
    *count = (size_t)(group->count / group->ranks);
    TSR_TRY(tsr_allocate(context, *count * sizeof(XLA_FFI_ReplicaGroup), &memory));
    *out = memory;
    for (size_t g = 0; g < *count; g++)
        (*out)[g] = (XLA_FFI_ReplicaGroup){group->ids + (int64_t)g * group->ranks, (size_t)group->ranks};
    return TSR_OK;
}

tsr_status tsr_xla_collectives_request(const XLA_FFI_CallFrame *frame, const tsr_xla_group *group, tsr_context *context)
{
    const XLA_FFI_Collectives_Extension *extension;
    XLA_FFI_ReplicaGroup *groups;
    XLA_FFI_Communicator_Request_Args args = {.struct_size = XLA_FFI_Communicator_Request_Args_STRUCT_SIZE,
                                              .group_mode = XLA_FFI_GROUP_FLATTENED_ID,
                                              .communication_id = group->channel};
    TSR_TRY(find_extension(frame, &extension));
    TSR_TRY(make_groups(group, context, &groups, &args.num_groups));
    args.groups = groups;
    const tsr_status status = tsr_xla_pass_on(frame->api, "XLA refuses to lend a communicator for the call's devices",
                                              extension->request_communicator(extension, &args));
    tsr_release(context, groups);
    return status;
}

tsr_status tsr_xla_collectives_get(const XLA_FFI_CallFrame *frame, const tsr_xla_group *group, tsr_context *context,
                                   struct ncclComm **comm)
{
    const XLA_FFI_Collectives_Extension *extension;
    XLA_FFI_ReplicaGroup *groups;
    XLA_FFI_Communicator_Get_Args args = {.struct_size = XLA_FFI_Communicator_Get_Args_STRUCT_SIZE,
                                          .group_mode = XLA_FFI_GROUP_FLATTENED_ID,
                                          .communication_id = group->channel};
    TSR_TRY(find_extension(frame, &extension));
    TSR_TRY(make_groups(group, context, &groups, &args.num_groups));
    args.groups = groups;
    const tsr_status status = tsr_xla_pass_on(
        frame->api, "XLA lends no communicator (the handler has to be registered for the stage PREPARE as well)",
        extension->get_communicator(extension, &args));
    tsr_release(context, groups);
    TSR_TRY(status);
    if (!args.communicator)
        return tsr_status_set(TSR_ERROR_STATE, "XLA lends a communicator that is NULL");
    *comm = (struct ncclComm *)args.communicator;
    return TSR_OK;
}

#else

tsr_status tsr_xla_collectives_check(void)
{
    return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                          "this libtessera-xla has no calls on GPUs: it was built with XLA's headers %d.%d, of which "
                          "xla/ffi/api has no collectives_c_api.h; those of jaxlib 0.12 have it",
                          XLA_FFI_API_MAJOR, XLA_FFI_API_MINOR);
}

tsr_status tsr_xla_collectives_request(const XLA_FFI_CallFrame *frame, const tsr_xla_group *group, tsr_context *context)
{
    (void)frame;
    (void)group;
    (void)context;
    return tsr_xla_collectives_check();
}

tsr_status tsr_xla_collectives_get(const XLA_FFI_CallFrame *frame, const tsr_xla_group *group, tsr_context *context,
                                   struct ncclComm **comm)
{
    (void)frame;
    (void)group;
    (void)context;
    (void)comm;
    return tsr_xla_collectives_check();
}

#endif

tsr_status tsr_xla_collectives_stream(const XLA_FFI_CallFrame *frame, void **stream)
{
    XLA_FFI_Stream_Get_Args args = {.struct_size = XLA_FFI_Stream_Get_Args_STRUCT_SIZE, .ctx = frame->ctx};
    TSR_TRY(tsr_xla_pass_on(frame->api, "XLA has no stream for the call: it is for GPUs",
                            frame->api->XLA_FFI_Stream_Get(&args)));
    *stream = args.stream;
    return TSR_OK;
}
