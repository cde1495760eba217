#include "gpu_ffi.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static XLA_FFI_Error *fail(const char *text)
{
    XLA_FFI_Error *const error = calloc(1, sizeof *error);
    snprintf(error->text, sizeof error->text, "%s", text);
    return error;
}

/* ---- Errors, types and states ---- */

static XLA_FFI_Error *create_error(XLA_FFI_Error_Create_Args *args)
{
    return fail(args->message);
}

static void get_details(XLA_FFI_Error_GetDetails_Args *args)
{
    args->message = args->error->text;
    args->errc = XLA_FFI_Error_Code_INTERNAL;
}

static void destroy_error(XLA_FFI_Error_Destroy_Args *args)
{
    free(args->error);
}

static struct {
    void (*deleter)(void *object);
} types[16];

static XLA_FFI_Error *register_type(XLA_FFI_Type_Register_Args *args)
{
    static int64_t last;
    args->type_id->type_id = ++last;
    types[last].deleter = args->type_info->deleter;
    return NULL;
}

static XLA_FFI_Error *set_state(XLA_FFI_State_Set_Args *args)
{
    gpu_host *const host = args->ctx->host;
    if (args->stage != XLA_FFI_ExecutionStage_INSTANTIATE || host->states[args->ctx->site])
        return fail("a state is set twice, or at another stage");
    host->states[args->ctx->site] = args->state;
    host->state_type = args->type_id->type_id;
    return NULL;
}

static XLA_FFI_Error *get_state(XLA_FFI_State_Get_Args *args)
{
    const gpu_host *const host = args->ctx->host;
    if (args->stage != XLA_FFI_ExecutionStage_INSTANTIATE || !host->states[args->ctx->site] ||
        host->state_type != args->type_id->type_id)
        return fail("there is no such state");
    args->state = host->states[args->ctx->site];
    return NULL;
}

void gpu_ffi_delete_states(const gpu_host *host)
{
    for (int s = 0; s < GPU_SITES; s++)
        if (host->states[s])
            types[host->state_type].deleter(host->states[s]);
}

/* ---- Devices ---- */

static XLA_FFI_Error *get_run(XLA_FFI_RunId_Get_Args *args)
{
    args->run_id = args->ctx->host->launch;
    return NULL;
}

static XLA_FFI_Error *get_ordinal(XLA_FFI_DeviceOrdinal_Get_Args *args)
{
    args->device_ordinal = args->ctx->ordinal;
    return NULL;
}

static XLA_FFI_Error *get_stream(XLA_FFI_Stream_Get_Args *args)
{
    if (args->ctx->host->faults.no_stream)
        return fail("XLA FFI GPU context is not available");
    args->stream = args->ctx->stream;
    return NULL;
}

static XLA_FFI_Error *allocate(XLA_FFI_DeviceMemory_Allocate_Args *args)
{
    gpu_host *const host = args->ctx->host;
    const bool none = host->faults.no_memory_at == host->launch && args->ctx->partition == 0;
    if (none || args->ctx->stage != XLA_FFI_ExecutionStage_EXECUTE ||
        host->table->alloc(host->self, args->ctx->ordinal, args->size, args->ctx->stream, &args->data) != TSR_OK)
        return fail("out of memory");
    pthread_mutex_lock(&host->gate);
    host->blocks++;
    pthread_mutex_unlock(&host->gate);
    return NULL;
}

static XLA_FFI_Error *give_back(XLA_FFI_DeviceMemory_Free_Args *args)
{
    const gpu_host *const host = args->ctx->host;
    host->table->free(host->self, args->ctx->ordinal, args->data, args->size, args->ctx->stream);
    return host->faults.kept_at == host->launch && args->ctx->partition == 0 ? fail("it is in use") : NULL;
}

/* ---- Collectives ---- */

gpu_clique *gpu_ffi_clique(gpu_host *host, const int64_t *ids, size_t size, int64_t channel, bool makes)
{
    pthread_mutex_lock(&host->gate);
    gpu_clique *found = NULL;
    for (int c = 0; c < host->clique_count && !found; c++) {
        gpu_clique *const clique = &host->cliques[c];
        if (clique->size == size && clique->channel == channel && memcmp(clique->ids, ids, size * sizeof *ids) == 0)
            found = clique;
    }
    if (!found && makes && host->clique_count < GPU_CLIQUES) {
        found = &host->cliques[host->clique_count++];
        *found = (gpu_clique){.size = size, .channel = channel};
        memcpy(found->ids, ids, size * sizeof *ids);
        standin_api.get_unique_id(&found->id);
    }
    pthread_mutex_unlock(&host->gate);
    return found;
}

/* The caller's group, or NULL: of devices that there are, all once. */
static const int64_t *find_group(const struct XLA_FFI_InvokeContext *ctx, const XLA_FFI_ReplicaGroup *groups,
                                 size_t count, size_t *size)
{
    const int64_t *mine = NULL;
    bool seen[GPU_DEVICES] = {false};
    for (size_t g = 0; g < count; g++)
        for (size_t i = 0; i < groups[g].size; i++) {
            const int64_t id = groups[g].ids[i];
            if (id < 0 || id >= ctx->host->devices || seen[id])
                return NULL;
            seen[id] = true;
            if (id == ctx->partition) {
                mine = groups[g].ids;
                *size = groups[g].size;
            }
        }
    return mine;
}

static gpu_clique *find_clique(struct XLA_FFI_InvokeContext *ctx, XLA_FFI_CollectiveGroupMode mode,
                               const XLA_FFI_ReplicaGroup *groups, size_t count, int64_t channel, bool makes)
{
    static const int64_t pairs[] = {0, 1, 2, 3};
    size_t size = 0;
    const int64_t *ids = find_group(ctx, groups, count, &size);
    if (mode != XLA_FFI_GROUP_FLATTENED_ID || !ids)
        return NULL;
    if (ctx->host->faults.wrong_group) {
        ids = pairs + ctx->partition / 2 * 2;
        size = 2;
    }
    return gpu_ffi_clique(ctx->host, ids, size, channel, makes);
}

static struct XLA_FFI_InvokeContext *context_of(const XLA_FFI_Collectives_Extension *self)
{
    return (struct XLA_FFI_InvokeContext *)self->state;
}

static XLA_FFI_Error *request(const XLA_FFI_Collectives_Extension *self, XLA_FFI_Communicator_Request_Args *args)
{
    struct XLA_FFI_InvokeContext *const ctx = context_of(self);
    if (args->struct_size < XLA_FFI_Communicator_Request_Args_STRUCT_SIZE)
        return fail("Unexpected XLA_FFI_Communicator_Request_Args size");
    if (ctx->stage != XLA_FFI_ExecutionStage_PREPARE)
        return fail("communicator request is only available during the prepare stage");
    if (!find_clique(ctx, args->group_mode, args->groups, args->num_groups, args->communication_id, true))
        return fail("the device is in no group, or groups have devices that the program has not");
    return NULL;
}

static XLA_FFI_Error *get(const XLA_FFI_Collectives_Extension *self, XLA_FFI_Communicator_Get_Args *args)
{
    struct XLA_FFI_InvokeContext *const ctx = context_of(self);
    if (args->struct_size < XLA_FFI_Communicator_Get_Args_STRUCT_SIZE)
        return fail("Unexpected XLA_FFI_Communicator_Get_Args size");
    if (ctx->stage != XLA_FFI_ExecutionStage_INITIALIZE && ctx->stage != XLA_FFI_ExecutionStage_EXECUTE)
        return fail("communicator get is only available after cliques are acquired");
    const gpu_clique *const clique =
        find_clique(ctx, args->group_mode, args->groups, args->num_groups, args->communication_id, false);
    if (!clique || !clique->comms[ctx->partition])
        return fail("the clique is not acquired");
    if (!ctx->host->faults.no_communicator)
        args->communicator = (XLA_FFI_Communicator *)clique->comms[ctx->partition];
    return NULL;
}

/* The extension of this thread's call. */
static XLA_FFI_Error *find_extension(XLA_FFI_InvokeContext_FindExtension_Args *args)
{
    static _Thread_local XLA_FFI_Collectives_Extension extension;
    const gpu_faults *const faults = &args->ctx->host->faults;
    args->extension = NULL;
    if (faults->no_extension || args->extension_type != XLA_FFI_Extension_Collectives)
        return NULL;
    const bool other = faults->major || faults->minor;
    extension = (XLA_FFI_Collectives_Extension){
        .extension_base = {faults->extension_size ? faults->extension_size : sizeof extension,
                           {XLA_FFI_Extension_Collectives, other ? faults->major : 0, other ? faults->minor : 2},
                           NULL},
        .state = (XLA_FFI_CollectivesState *)args->ctx,
        .request_communicator = request,
        .get_communicator = get,
    };
    args->extension = &extension.extension_base;
    return NULL;
}

const XLA_FFI_Api *gpu_ffi_table(const gpu_faults *faults)
{
    static XLA_FFI_Api api = {
        .api_version = {.major_version = XLA_FFI_API_MAJOR, .minor_version = XLA_FFI_API_MINOR},
        .XLA_FFI_Error_Create = create_error,
        .XLA_FFI_Error_GetDetails = get_details,
        .XLA_FFI_Error_Destroy = destroy_error,
        .XLA_FFI_Stream_Get = get_stream,
        .XLA_FFI_Type_Register = register_type,
        .XLA_FFI_State_Set = set_state,
        .XLA_FFI_State_Get = get_state,
        .XLA_FFI_DeviceMemory_Allocate = allocate,
        .XLA_FFI_DeviceMemory_Free = give_back,
        .XLA_FFI_RunId_Get = get_run,
        .XLA_FFI_DeviceOrdinal_Get = get_ordinal,
        .XLA_FFI_InvokeContext_FindExtension = find_extension,
    };
    api.struct_size = faults->no_lookup ? offsetof(XLA_FFI_Api, XLA_FFI_InvokeContext_FindExtension) : sizeof api;
    return &api;
}
