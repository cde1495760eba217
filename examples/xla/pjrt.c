#include "pjrt.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        char *const why_ = (call);                                                                                     \
        if (why_)                                                                                                      \
            return why_;                                                                                               \
    } while (0)

/* The FFI extension, which pjrt_c_api.h leaves to a header that wheels do not have. */
typedef struct ffi_type_args {
    size_t struct_size;
    PJRT_Extension_Base *extension_start;
    const char *name;
    size_t name_size;
    int64_t type_id;
    void *type_info;
} ffi_type_args;

typedef struct ffi_data_args {
    size_t struct_size;
    PJRT_Extension_Base *extension_start;
    PJRT_ExecuteContext *context;
    int64_t type_id;
    void *data;
} ffi_data_args;

typedef struct ffi_handler_args {
    size_t struct_size;
    const char *name;
    size_t name_size;
    void *handler;
    const char *platform;
    size_t platform_size;
    int traits;
} ffi_handler_args;

typedef struct ffi_extension {
    PJRT_Extension_Base base;
    PJRT_Error *(*type_register)(ffi_type_args *args);
    PJRT_Error *(*user_data_add)(ffi_data_args *args);
    PJRT_Error *(*register_handler)(ffi_handler_args *args);
} ffi_extension;

/* ---- Errors and events ---- */

static char *say(const char *format, ...)
{
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return strdup(text);
}

/* The text of an error, which it destroys. */
static char *tell(const PJRT_Api *api, PJRT_Error *error)
{
    if (!error)
        return NULL;
    PJRT_Error_Message_Args message = {.struct_size = PJRT_Error_Message_Args_STRUCT_SIZE, .error = error};
    api->PJRT_Error_Message(&message);
    char *const text = say("%.*s", (int)message.message_size, message.message);
    PJRT_Error_Destroy_Args destroy = {.struct_size = PJRT_Error_Destroy_Args_STRUCT_SIZE, .error = error};
    api->PJRT_Error_Destroy(&destroy);
    return text;
}

/* Waits for an event, and destroys it. */
static char *await(const PJRT_Api *api, PJRT_Event *event)
{
    if (!event)
        return NULL;
    PJRT_Event_Await_Args args = {.struct_size = PJRT_Event_Await_Args_STRUCT_SIZE, .event = event};
    char *const why = tell(api, api->PJRT_Event_Await(&args));
    PJRT_Event_Destroy_Args destroy = {.struct_size = PJRT_Event_Destroy_Args_STRUCT_SIZE, .event = event};
    free(tell(api, api->PJRT_Event_Destroy(&destroy)));
    return why;
}

static const ffi_extension *find_ffi(const PJRT_Api *api)
{
    const PJRT_Extension_Base *at = api->extension_start;
    while (at && at->type != PJRT_Extension_Type_FFI)
        at = at->next;
    return (const ffi_extension *)at;
}

/* ---- Hosts ---- */

static char *make_client(xla_host *host, int64_t devices)
{
    const PJRT_NamedValue option = {.struct_size = PJRT_NamedValue_STRUCT_SIZE,
                                    .name = "cpu_device_count",
                                    .name_size = strlen("cpu_device_count"),
                                    .type = PJRT_NamedValue_kInt64,
                                    .int64_value = devices,
                                    .value_size = 1};
    PJRT_Client_Create_Args create = {
        .struct_size = PJRT_Client_Create_Args_STRUCT_SIZE, .create_options = &option, .num_options = 1};
    TRY(tell(host->api, host->api->PJRT_Client_Create(&create)));
    host->client = create.client;
    PJRT_Client_AddressableDevices_Args list = {.struct_size = PJRT_Client_AddressableDevices_Args_STRUCT_SIZE,
                                                .client = host->client};
    TRY(tell(host->api, host->api->PJRT_Client_AddressableDevices(&list)));
    host->devices = list.addressable_devices;
    host->count = list.num_addressable_devices;
    return find_ffi(host->api) ? NULL : say("the plugin has no FFI extension");
}

char *xla_host_open(const char *path, int64_t devices, xla_host *out)
{
    *out = (xla_host){.library = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
    if (!out->library)
        return say("%s", dlerror());
    const PJRT_Api *(*get)(void);
    *(void **)&get = dlsym(out->library, "GetPjrtApi");
    if (!get)
        return say("%s has no GetPjrtApi", path);
    out->api = get();
    PJRT_Plugin_Initialize_Args initialize = {.struct_size = PJRT_Plugin_Initialize_Args_STRUCT_SIZE};
    TRY(tell(out->api, out->api->PJRT_Plugin_Initialize(&initialize)));
    return make_client(out, devices);
}

void xla_host_close(xla_host *host)
{
    PJRT_Client_Destroy_Args args = {.struct_size = PJRT_Client_Destroy_Args_STRUCT_SIZE, .client = host->client};
    if (host->client)
        free(tell(host->api, host->api->PJRT_Client_Destroy(&args)));
    host->client = NULL;
}

char *xla_host_register(const xla_host *host, const char *name, void *handler)
{
    ffi_handler_args args = {.struct_size = offsetof(ffi_handler_args, traits) + sizeof args.traits,
                             .name = name,
                             .name_size = strlen(name),
                             .handler = handler,
                             .platform = "Host",
                             .platform_size = strlen("Host")};
    return tell(host->api, find_ffi(host->api)->register_handler(&args));
}

/* ---- Programs ---- */

/* A message of protocol buffers. */
typedef struct message {
    char bytes[1024];
    size_t size;
} message;

static void put_number(message *m, uint64_t value)
{
    do {
        m->bytes[m->size++] = (char)((value & 127) | (value > 127 ? 128 : 0));
        value >>= 7;
    } while (value);
}

static void put_field(message *m, unsigned field, uint64_t value)
{
    put_number(m, field << 3);
    put_number(m, value);
}

static void put_message(message *m, unsigned field, const message *inner)
{
    put_number(m, field << 3 | 2);
    put_number(m, inner->size);
    memcpy(m->bytes + m->size, inner->bytes, inner->size);
    m->size += inner->size;
}

/* A CompileOptionsProto for one replica of an SPMD program that Shardy partitions. */
static void put_options(message *m, size_t partitions, const int64_t *devices)
{
    message assignment = {.size = 0}, build = {.size = 0};
    put_field(&assignment, 1, 1);          /* replica_count */
    put_field(&assignment, 2, partitions); /* computation_count */
    for (size_t p = 0; p < partitions; p++) {
        message computation = {.size = 0};
        put_field(&computation, 1, devices ? (uint64_t)devices[p] : p); /* replica_device_ids */
        put_message(&assignment, 3, &computation);                      /* computation_devices */
    }
    put_field(&build, 1, (uint64_t)-1);  /* device_ordinal */
    put_field(&build, 4, 1);             /* num_replicas */
    put_field(&build, 5, partitions);    /* num_partitions */
    put_field(&build, 6, 1);             /* use_spmd_partitioning */
    put_message(&build, 9, &assignment); /* device_assignment */
    put_field(&build, 19, 1);            /* use_shardy_partitioner */
    put_message(m, 3, &build);           /* executable_build_options */
}

char *xla_program_compile(const xla_host *host, const char *text, size_t partitions, const int64_t *devices,
                          xla_program *out)
{
    message options = {.size = 0};
    if (partitions > 32)
        return say("%zu partitions; this host compiles for at most 32", partitions);
    put_options(&options, partitions, devices);
    const PJRT_Program program = {.struct_size = PJRT_Program_STRUCT_SIZE,
                                  .code = (char *)(uintptr_t)text,
                                  .code_size = strlen(text),
                                  .format = "mlir",
                                  .format_size = strlen("mlir")};
    PJRT_Client_Compile_Args args = {.struct_size = PJRT_Client_Compile_Args_STRUCT_SIZE,
                                     .client = host->client,
                                     .program = &program,
                                     .compile_options = options.bytes,
                                     .compile_options_size = options.size};
    TRY(tell(host->api, host->api->PJRT_Client_Compile(&args)));
    *out = (xla_program){host, args.executable, partitions};
    return NULL;
}

void xla_program_destroy(xla_program *program)
{
    PJRT_LoadedExecutable_Destroy_Args args = {.struct_size = PJRT_LoadedExecutable_Destroy_Args_STRUCT_SIZE,
                                               .executable = program->executable};
    if (program->executable)
        free(tell(program->host->api, program->host->api->PJRT_LoadedExecutable_Destroy(&args)));
    program->executable = NULL;
}

static char *read_optimized(const PJRT_Api *api, PJRT_Executable *executable, char **out, size_t *size)
{
    PJRT_Program program = {.struct_size = PJRT_Program_STRUCT_SIZE};
    PJRT_Executable_OptimizedProgram_Args args = {.struct_size = PJRT_Executable_OptimizedProgram_Args_STRUCT_SIZE,
                                                  .executable = executable,
                                                  .program = &program};
    TRY(tell(api, api->PJRT_Executable_OptimizedProgram(&args)));
    program.code = calloc(1, program.code_size + 1);
    char *const why = program.code ? tell(api, api->PJRT_Executable_OptimizedProgram(&args)) : say("no memory");
    if (why)
        free(program.code);
    else {
        *out = program.code;
        *size = program.code_size;
    }
    return why;
}

char *xla_program_optimized(const xla_program *program, char **out, size_t *size)
{
    const PJRT_Api *const api = program->host->api;
    PJRT_LoadedExecutable_GetExecutable_Args get = {.struct_size = PJRT_LoadedExecutable_GetExecutable_Args_STRUCT_SIZE,
                                                    .loaded_executable = program->executable};
    TRY(tell(api, api->PJRT_LoadedExecutable_GetExecutable(&get)));
    char *const why = read_optimized(api, get.executable, out, size);
    PJRT_Executable_Destroy_Args destroy = {.struct_size = PJRT_Executable_Destroy_Args_STRUCT_SIZE,
                                            .executable = get.executable};
    free(tell(api, api->PJRT_Executable_Destroy(&destroy)));
    return why;
}

/* ---- Buffers ---- */

char *xla_buffer_create(const xla_host *host, size_t device, PJRT_Buffer_Type type, size_t ndim, const int64_t *dims,
                        const void *data, PJRT_Buffer **out)
{
    PJRT_Client_BufferFromHostBuffer_Args args = {.struct_size = PJRT_Client_BufferFromHostBuffer_Args_STRUCT_SIZE,
                                                  .client = host->client,
                                                  .data = data,
                                                  .type = type,
                                                  .dims = dims,
                                                  .num_dims = ndim,
                                                  .host_buffer_semantics =
                                                      PJRT_HostBufferSemantics_kImmutableOnlyDuringCall,
                                                  .device = host->devices[device]};
    TRY(tell(host->api, host->api->PJRT_Client_BufferFromHostBuffer(&args)));
    *out = args.buffer;
    return await(host->api, args.done_with_host_buffer);
}

char *xla_buffer_read(const xla_host *host, PJRT_Buffer *buffer, void *out, size_t size)
{
    PJRT_Buffer_ToHostBuffer_Args args = {
        .struct_size = PJRT_Buffer_ToHostBuffer_Args_STRUCT_SIZE, .src = buffer, .dst = out, .dst_size = size};
    TRY(tell(host->api, host->api->PJRT_Buffer_ToHostBuffer(&args)));
    return await(host->api, args.event);
}

void xla_buffer_destroy(const xla_host *host, PJRT_Buffer *buffer)
{
    PJRT_Buffer_Destroy_Args args = {.struct_size = PJRT_Buffer_Destroy_Args_STRUCT_SIZE, .buffer = buffer};
    if (buffer)
        free(tell(host->api, host->api->PJRT_Buffer_Destroy(&args)));
}

/* ---- Launches ---- */

/* A context with the launch's user data. */
static char *make_context(const PJRT_Api *api, const xla_launch *launch, PJRT_ExecuteContext **out)
{
    PJRT_ExecuteContext_Create_Args create = {.struct_size = PJRT_ExecuteContext_Create_Args_STRUCT_SIZE};
    TRY(tell(api, api->PJRT_ExecuteContext_Create(&create)));
    *out = create.context;
    ffi_data_args args = {
        .struct_size = sizeof args, .context = create.context, .type_id = launch->type, .data = launch->data};
    return tell(api, find_ffi(api)->user_data_add(&args));
}

/* Starts the program on all devices, and waits. */
static char *execute(const xla_program *program, PJRT_ExecuteOptions *options, PJRT_Buffer *const *const *arguments,
                     size_t count, PJRT_Buffer **const *results, char **errors)
{
    const PJRT_Api *const api = program->host->api;
    PJRT_Event **const done = calloc(program->partitions, sizeof(PJRT_Event *));
    if (!done)
        return say("no memory");
    PJRT_LoadedExecutable_Execute_Args args = {.struct_size = PJRT_LoadedExecutable_Execute_Args_STRUCT_SIZE,
                                               .executable = program->executable,
                                               .options = options,
                                               .argument_lists = arguments,
                                               .num_devices = program->partitions,
                                               .num_args = count,
                                               .output_lists = results,
                                               .device_complete_events = done};
    char *first = tell(api, api->PJRT_LoadedExecutable_Execute(&args));
    for (size_t p = 0; p < program->partitions; p++) {
        char *const why = await(api, done[p]);
        if (why && !first)
            first = strdup(why);
        if (errors)
            errors[p] = why;
        else
            free(why);
    }
    free(done);
    return first;
}

char *xla_program_run(const xla_program *program, const xla_launch *launch, PJRT_Buffer *const *const *arguments,
                      size_t count, PJRT_Buffer **const *results, char **errors)
{
    const PJRT_Api *const api = program->host->api;
    PJRT_ExecuteOptions options = {.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE};
    char *why = NULL;
    if (launch)
        options.launch_id = launch->id;
    if (launch && launch->data)
        why = make_context(api, launch, &options.context);
    if (!why)
        why = execute(program, &options, arguments, count, results, errors);
    PJRT_ExecuteContext_Destroy_Args destroy = {.struct_size = PJRT_ExecuteContext_Destroy_Args_STRUCT_SIZE,
                                                .context = options.context};
    if (options.context)
        free(tell(api, api->PJRT_ExecuteContext_Destroy(&destroy)));
    return why;
}
