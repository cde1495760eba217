#include "gpu_host.h"

#include "gpu_ffi.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A device in a run. */
typedef struct device {
    struct XLA_FFI_InvokeContext ctx;
    const gpu_call *call;
    void *data[GPU_ARRAYS], *own; /* memory of the GPU: the call's, and of XLA's own collective */
    XLA_FFI_Buffer buffers[GPU_ARRAYS];
    int64_t dims[GPU_ARRAYS][GPU_DIMS];
    XLA_FFI_Error *error;
    pthread_barrier_t *all;
    atomic_bool *failed; /* some device has failed in this launch */
} device;

/* A frame with what it points to. */
typedef struct frame {
    XLA_FFI_CallFrame xla;
    XLA_FFI_AttrType types[GPU_ATTRIBUTES];
    XLA_FFI_ByteSpan names[GPU_ATTRIBUTES], texts[GPU_ATTRIBUTES];
    XLA_FFI_ByteSpan *name_list[GPU_ATTRIBUTES];
    XLA_FFI_Array arrays[GPU_ATTRIBUTES];
    XLA_FFI_Scalar scalars[GPU_ATTRIBUTES];
    int64_t numbers[GPU_ATTRIBUTES];
    void *values[GPU_ATTRIBUTES];
    void *operands[GPU_ARRAYS], *results[GPU_ARRAYS];
} frame;

static int last_cliques, last_blocks;

int gpu_host_cliques(void)
{
    return last_cliques;
}

int gpu_host_blocks(void)
{
    return last_blocks;
}

size_t gpu_host_bytes(const gpu_array *array)
{
    size_t bytes = 4;
    for (int d = 0; d < array->ndim; d++)
        bytes *= (size_t)array->dims[d];
    return bytes;
}

/* ---- Frames ---- */

static void set_attribute(frame *f, size_t at, const gpu_attribute *from)
{
    f->names[at] = (XLA_FFI_ByteSpan){from->name, strlen(from->name)};
    f->name_list[at] = &f->names[at];
    if (from->text) {
        f->types[at] = XLA_FFI_AttrType_STRING;
        f->texts[at] = (XLA_FFI_ByteSpan){from->text, from->count ? from->count : strlen(from->text)};
        f->values[at] = &f->texts[at];
    } else if (from->count) {
        f->types[at] = XLA_FFI_AttrType_ARRAY;
        f->arrays[at] = (XLA_FFI_Array){XLA_FFI_DataType_S64, from->count, (void *)(uintptr_t)from->numbers};
        f->values[at] = &f->arrays[at];
    } else {
        f->types[at] = XLA_FFI_AttrType_SCALAR;
        f->numbers[at] = from->number;
        f->scalars[at] = (XLA_FFI_Scalar){XLA_FFI_DataType_S64, &f->numbers[at]};
        f->values[at] = &f->scalars[at];
    }
}

static XLA_FFI_Error *serve(device *d, XLA_FFI_ExecutionStage stage)
{
    const gpu_call *const call = d->call;
    frame f = {
        .xla = {.struct_size = XLA_FFI_CallFrame_STRUCT_SIZE, .api = d->ctx.host->api, .ctx = &d->ctx, .stage = stage}};
    size_t count = 0;
    while (count < GPU_ATTRIBUTES && call->attributes[count].name) {
        set_attribute(&f, count, &call->attributes[count]);
        count++;
    }
    f.xla.attrs = (XLA_FFI_Attrs){.size = (int64_t)count, .types = f.types, .names = f.name_list, .attrs = f.values};
    for (int a = 0; a < call->operands + call->results; a++)
        *(a < call->operands ? &f.operands[a] : &f.results[a - call->operands]) = &d->buffers[a];
    if (stage == XLA_FFI_ExecutionStage_EXECUTE) {
        f.xla.args = (XLA_FFI_Args){.size = call->operands, .args = f.operands};
        f.xla.rets = (XLA_FFI_Rets){.size = call->results, .rets = f.results};
    }
    d->ctx.stage = stage;
    return call->handler(&f.xla);
}

/* Serves a stage of all call sites in turn, until one fails. */
static XLA_FFI_Error *serve_all(device *d, XLA_FFI_ExecutionStage stage)
{
    XLA_FFI_Error *error = NULL;
    for (d->ctx.site = 0; d->ctx.site <= d->ctx.host->faults.more_sites && !error; d->ctx.site++)
        error = serve(d, stage);
    return error;
}

/* ---- Devices ---- */

static void begin_device(gpu_host *host, const gpu_call *call, int partition, device *d)
{
    const int ordinal = host->assignment ? (int)host->assignment[partition] : partition;
    *d = (device){.ctx = {.host = host, .partition = partition, .ordinal = ordinal}, .call = call};
    standin_api.cuda_set_device(ordinal);
    assert_int_equal(standin_api.cuda_stream_create_with_flags(&d->ctx.stream, cudaStreamNonBlocking), cudaSuccess);
    assert_int_equal(host->table->alloc(host->self, ordinal, sizeof(int32_t), d->ctx.stream, &d->own), TSR_OK);
    for (int a = 0; a < call->operands + call->results; a++) {
        const gpu_array *const array = &call->arrays[a];
        assert_int_equal(host->table->alloc(host->self, ordinal, gpu_host_bytes(array) + 1, d->ctx.stream, &d->data[a]),
                         TSR_OK);
        memcpy(d->dims[a], array->dims, sizeof d->dims[a]);
        d->buffers[a] = (XLA_FFI_Buffer){.struct_size = XLA_FFI_Buffer_STRUCT_SIZE,
                                         .dtype = array->dtype,
                                         .data = d->data[a],
                                         .rank = array->ndim,
                                         .dims = d->dims[a]};
    }
}

static void end_device(device *d)
{
    gpu_host *const host = d->ctx.host;
    const gpu_call *const call = d->call;
    standin_api.cuda_set_device(d->ctx.ordinal);
    host->table->free(host->self, d->ctx.ordinal, d->own, sizeof(int32_t), d->ctx.stream);
    for (int a = 0; a < call->operands + call->results; a++)
        host->table->free(host->self, d->ctx.ordinal, d->data[a], gpu_host_bytes(&call->arrays[a]) + 1, d->ctx.stream);
    host->table->stream_synchronize(host->self, d->ctx.ordinal, d->ctx.stream);
    standin_api.cuda_stream_destroy(d->ctx.stream);
}

/* Copies the partition's operands in, or its results out. */
static void copy_arrays(const device *d, bool in)
{
    const gpu_call *const call = d->call;
    for (int a = 0; a < call->operands + call->results; a++) {
        const size_t bytes = gpu_host_bytes(&call->arrays[a]);
        char *const outside = (char *)call->arrays[a].data + (size_t)d->ctx.partition * bytes;
        if (in && a < call->operands)
            memcpy(d->data[a], outside, bytes);
        else if (in)
            memset(d->data[a], 0x5a, bytes);
        else if (a >= call->operands)
            memcpy(outside, d->data[a], bytes);
    }
}

/* ---- Communicators ---- */

/* Waits until a communicator has done what it was told. */
static void settle(ncclComm_t comm)
{
    ncclResult_t state = ncclInProgress;
    while (standin_api.comm_get_async_error(comm, &state) == ncclSuccess && state == ncclInProgress)
        sched_yield();
}

/* Makes the device's communicators of all cliques that were requested; all devices do. */
static void acquire(device *d)
{
    gpu_host *const host = d->ctx.host;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = !host->faults.non_blocking;
    for (int c = 0; c < host->clique_count; c++) {
        gpu_clique *const clique = &host->cliques[c];
        ncclComm_t *const comm = &clique->comms[d->ctx.partition];
        for (size_t i = 0; i < clique->size && !*comm; i++)
            if (clique->ids[i] == d->ctx.partition) {
                standin_api.comm_init_rank_config(comm, (int)clique->size, clique->id, (int)i, &config);
                settle(*comm);
            }
    }
}

static void abort_all(gpu_host *host)
{
    for (int c = 0; c < host->clique_count; c++)
        for (int p = 0; p < host->devices; p++)
            if (host->cliques[c].comms[p])
                standin_api.comm_abort(host->cliques[c].comms[p]);
    host->clique_count = 0;
}

static const int64_t everyone[GPU_DEVICES] = {0, 1, 2, 3};

/* The number of devices, by a collective of XLA's own. */
static void count_devices(device *d)
{
    gpu_clique *const clique = gpu_ffi_clique(d->ctx.host, everyone, (size_t)d->ctx.host->devices, 0, false);
    *(int32_t *)d->own = 1;
    standin_api.all_reduce(d->own, d->own, 1, ncclInt32, ncclSum, clique->comms[d->ctx.partition], d->ctx.stream);
    settle(clique->comms[d->ctx.partition]);
}

/* ---- Launches ---- */

/* Meets all devices; true if none has failed so far. */
static bool meet(device *d)
{
    if (d->error)
        atomic_store(d->failed, true);
    pthread_barrier_wait(d->all);
    const bool fine = !atomic_load(d->failed);
    pthread_barrier_wait(d->all);
    return fine;
}

static void pass_stages(device *d)
{
    const bool whole = !d->ctx.host->faults.skips_prepare;
    gpu_ffi_clique(d->ctx.host, everyone, (size_t)d->ctx.host->devices, 0, true);
    if (whole)
        d->error = serve_all(d, XLA_FFI_ExecutionStage_PREPARE);
    if (!meet(d))
        return;
    acquire(d);
    pthread_barrier_wait(d->all);
    if (whole)
        d->error = serve_all(d, XLA_FFI_ExecutionStage_INITIALIZE);
    if (!meet(d))
        return;
    count_devices(d);
    d->error = serve_all(d, XLA_FFI_ExecutionStage_EXECUTE);
    meet(d);
}

static void *run_device(void *arg)
{
    device *const d = arg;
    gpu_host *const host = d->ctx.host;
    standin_api.cuda_set_device(d->ctx.ordinal);
    copy_arrays(d, true);
    pthread_barrier_wait(d->all);
    pass_stages(d);
    pthread_barrier_wait(d->all);
    /* As XLA's, which aborts communicators of a run that failed. */
    if (atomic_load(d->failed) && d->ctx.partition == 0 && host->launch != host->faults.kept_at)
        abort_all(host);
    pthread_barrier_wait(d->all);
    host->table->stream_synchronize(host->self, d->ctx.ordinal, d->ctx.stream);
    if (!atomic_load(d->failed))
        assert_int_equal(*(int32_t *)d->own, host->devices);
    copy_arrays(d, false);
    return NULL;
}

/* Keeps the first error's text. */
static void take_error(XLA_FFI_Error *error, char **why)
{
    if (error && !*why)
        *why = strdup(error->text);
    free(error);
}

static void launch(gpu_host *host, device *devices, char **why)
{
    pthread_t threads[GPU_DEVICES];
    pthread_barrier_t all;
    atomic_bool failed = false;
    pthread_barrier_init(&all, NULL, (unsigned)host->devices);
    if (host->launch == host->faults.renews)
        abort_all(host);
    for (int p = 0; p < host->devices; p++) {
        devices[p].all = &all;
        devices[p].failed = &failed;
        devices[p].error = NULL;
        assert_int_equal(pthread_create(&threads[p], NULL, run_device, &devices[p]), 0);
    }
    for (int p = 0; p < host->devices; p++)
        pthread_join(threads[p], NULL);
    for (int p = 0; p < host->devices; p++)
        take_error(devices[p].error, why);
    pthread_barrier_destroy(&all);
}

static char *run_host(gpu_host *host, const gpu_call *call, int launches)
{
    device devices[GPU_DEVICES];
    char *why = NULL;
    for (int p = 0; p < host->devices; p++)
        begin_device(host, call, p, &devices[p]);
    take_error(serve_all(&devices[0], XLA_FFI_ExecutionStage_INSTANTIATE), &why);
    for (host->launch = 1; host->launch <= launches && host->states[0]; host->launch++)
        launch(host, devices, &why);
    gpu_ffi_delete_states(host);
    last_cliques = host->clique_count;
    last_blocks = host->blocks;
    abort_all(host);
    for (int p = 0; p < host->devices; p++)
        end_device(&devices[p]);
    return why;
}

char *gpu_host_run(const gpu_call *call, int devices, const int64_t *assignment, int launches, const gpu_faults *faults)
{
    gpu_host host = {.devices = devices, .assignment = assignment};
    if (faults)
        host.faults = *faults;
    host.api = gpu_ffi_table(&host.faults);
    standin_begin(devices, 7);
    assert_int_equal(standin_driver_create(&host.driver), TSR_OK);
    host.table = tsr_device_driver_table(host.driver, &host.self);
    pthread_mutex_init(&host.gate, NULL);
    char *const why = run_host(&host, call, launches);
    pthread_mutex_destroy(&host.gate);
    const char *const misuse = standin_end();
    tsr_device_driver_destroy(host.driver);
    if (misuse)
        fail_msg("misuse of NCCL: %s%s%s", misuse, why ? ", after: " : "", why ? why : "");
    return why;
}
