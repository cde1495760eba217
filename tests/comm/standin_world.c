#include "standin_world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

standin_world standin = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

_Thread_local standin_tally standin_done;

static _Thread_local int current_device, calls_to_failure;
static _Thread_local const char *failed_call;

void standin_lock(void)
{
    pthread_mutex_lock(&standin.lock);
}

void standin_unlock(void)
{
    pthread_cond_broadcast(&standin.changed);
    pthread_mutex_unlock(&standin.lock);
}

uint64_t standin_draw(uint64_t below)
{
    standin.random ^= standin.random << 13;
    standin.random ^= standin.random >> 7;
    standin.random ^= standin.random << 17;
    return standin.random % below;
}

void standin_complain(const char *format, ...)
{
    if (standin.misuse[0])
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(standin.misuse, sizeof standin.misuse, format, arguments);
    va_end(arguments);
}

bool standin_fails(const char *call)
{
    if (calls_to_failure == 0 || --calls_to_failure > 0)
        return false;
    failed_call = call;
    return true;
}

void standin_fail_call(int k)
{
    calls_to_failure = k;
}

const char *standin_failed_call(void)
{
    const char *call = failed_call;
    failed_call = NULL;
    return call;
}

static void init_stream(struct CUstream_st *stream, int device)
{
    *stream = (struct CUstream_st){.device = device};
    stream->last = &stream->first;
}

void standin_begin(int devices, uint64_t seed)
{
    standin_lock();
    standin.devices = devices;
    standin.version = NCCL_VERSION_CODE;
    standin.random = seed * 2 + 1;
    standin.aborted = standin.kernels = 0;
    standin.misuse[0] = standin.last_error[0] = '\0';
    for (int i = 0; i < STANDIN_DEVICES; i++) {
        init_stream(&standin.defaults[i], i);
        standin.running[i] = NULL;
    }
    standin_unlock();
}

void standin_set_version(int version)
{
    standin_lock();
    standin.version = version;
    standin_unlock();
}

static void drop_work(struct CUstream_st *stream)
{
    while (stream->first) {
        standin_work *work = stream->first;
        stream->first = work->next;
        if (work->drop)
            work->drop(work);
        free(work);
    }
    stream->last = &stream->first;
}

static void end_streams(void)
{
    for (int i = 0; i < STANDIN_DEVICES; i++)
        drop_work(&standin.defaults[i]);
    while (standin.streams) {
        struct CUstream_st *stream = standin.streams;
        if (!stream->gone)
            standin_complain("a stream of device %d was not destroyed", stream->device);
        standin.streams = stream->next;
        drop_work(stream);
        free(stream);
    }
    while (standin.events) {
        struct CUevent_st *event = standin.events;
        if (!event->gone)
            standin_complain("an event was not destroyed");
        standin.events = event->next;
        free(event);
    }
}

static void end_blocks(void)
{
    while (standin.blocks) {
        standin_complain("%zu bytes of device %d were not freed", standin.blocks->bytes, standin.blocks->device);
        standin_release(standin.blocks->at);
    }
}

const char *standin_end(void)
{
    static char words[sizeof standin.misuse];
    standin_lock();
    standin_drive();
    const int comms = standin_free_comms();
    if (comms > 0)
        standin_complain("%d communicators were not destroyed", comms);
    end_streams();
    end_blocks();
    memcpy(words, standin.misuse, sizeof words);
    standin.misuse[0] = '\0';
    standin_unlock();
    return words[0] ? words : NULL;
}

const char *standin_misuse(void)
{
    static _Thread_local char words[sizeof standin.misuse];
    standin_lock();
    memcpy(words, standin.misuse, sizeof words);
    standin.misuse[0] = '\0';
    standin_unlock();
    return words[0] ? words : NULL;
}

int standin_aborted(void)
{
    standin_lock();
    const int count = standin.aborted;
    standin_unlock();
    return count;
}

int standin_kernels(void)
{
    standin_lock();
    const int count = standin.kernels;
    standin_unlock();
    return count;
}

int standin_device(void)
{
    return current_device;
}

struct CUstream_st *standin_stream(cudaStream_t stream, int device, const char *call)
{
    if (!stream)
        return &standin.defaults[device];
    for (struct CUstream_st *known = standin.streams; known; known = known->next)
        if (known == stream && known->device == device && !known->gone)
            return known;
    standin_complain("%s: no stream of device %d", call, device);
    return NULL;
}

void standin_enqueue(struct CUstream_st *stream, standin_work *work)
{
    work->next = NULL;
    if (stream->capture) {
        standin_record(stream->capture, work, "a captured stream");
        return;
    }
    *stream->last = work;
    stream->last = &work->next;
    standin.stirred = true;
}

/* Does work of a stream; true if any was done. */
static bool advance(struct CUstream_st *stream)
{
    bool done = false;
    while (stream->first && stream->first->step(stream->first)) {
        standin_work *work = stream->first;
        stream->first = work->next;
        if (!stream->first)
            stream->last = &stream->first;
        if (work->drop)
            work->drop(work);
        free(work);
        done = true;
        if (standin_draw(2))
            break;
    }
    return done;
}

/* Advances streams drawn at random, or all; true if any work was done. */
static bool advance_streams(bool all)
{
    bool done = false;
    for (struct CUstream_st *stream = standin.streams; stream; stream = stream->next)
        if (all || standin_draw(2))
            done |= advance(stream);
    for (int i = 0; i < standin.devices; i++)
        if (all || standin_draw(2))
            done |= advance(&standin.defaults[i]);
    return done;
}

/* Stops when nothing has changed since the last pass, since no further work could be done. */
void standin_drive(void)
{
    while (standin.stirred) {
        advance_streams(false);
        standin.stirred = advance_streams(true);
    }
}

void *standin_allocate(size_t bytes, int device)
{
    standin_done.allocations++;
    standin_refuse_capture(device < 0 ? current_device : device, "an allocation");
    standin_block *block = malloc(sizeof *block);
    char *at = bytes < SIZE_MAX / 2 ? aligned_alloc(64, (bytes + 63) / 64 * 64 + 64) : NULL;
    if (!block || !at) {
        free(at);
        free(block);
        return NULL;
    }
    memset(at, 0xd5, bytes);
    *block = (standin_block){standin.blocks, at, bytes, device};
    standin.blocks = block;
    return at;
}

bool standin_release(void *memory)
{
    for (standin_block **at = &standin.blocks; *at; at = &(*at)->next)
        if ((*at)->at == memory) {
            standin_block *block = *at;
            *at = block->next;
            free(block->at);
            free(block);
            return true;
        }
    return false;
}

bool standin_reaches(int device, const void *memory, size_t bytes)
{
    const char *from = memory;
    for (const standin_block *block = standin.blocks; block; block = block->next)
        if (from >= block->at && from + bytes <= block->at + block->bytes)
            return block->device < 0 || block->device == device;
    return bytes == 0;
}

static cudaError_t get_device_count(int *count)
{
    if (standin_fails("cudaGetDeviceCount"))
        return cudaErrorInsufficientDriver;
    standin_lock();
    *count = standin.devices;
    standin_unlock();
    return cudaSuccess;
}

static cudaError_t get_device(int *device)
{
    if (standin_fails("cudaGetDevice"))
        return cudaErrorUnknown;
    *device = current_device;
    return cudaSuccess;
}

static cudaError_t set_device(int device)
{
    if (device < 0 || device >= standin.devices)
        return cudaErrorInvalidDevice;
    current_device = device;
    return cudaSuccess;
}

static bool is_idle(int device)
{
    bool idle = !standin.defaults[device].first;
    for (const struct CUstream_st *stream = standin.streams; stream; stream = stream->next)
        idle = idle && (stream->device != device || !stream->first);
    return idle;
}

/* Adds a stream to the list. */
static void link_stream(struct CUstream_st *made)
{
    made->next = standin.streams;
    standin.streams = made;
}

/* A destroyed stream of the thread's device, or NULL. */
static struct CUstream_st *find_gone(void)
{
    struct CUstream_st *known = standin.streams;
    while (known && !(known->gone && !known->capture && known->device == current_device))
        known = known->next;
    return known;
}

/* Gives a new stream the handle of a destroyed one, whose work goes on in `spare`. */
static struct CUstream_st *take_handle(struct CUstream_st *gone, struct CUstream_st *spare)
{
    struct CUstream_st *const next = gone->next;
    *spare = *gone;
    if (!spare->first)
        spare->last = &spare->first;
    link_stream(spare);
    init_stream(gone, current_device);
    gone->next = next;
    return gone;
}

cudaError_t standin_stream_create(cudaStream_t *stream, unsigned flags)
{
    if (standin_fails("cudaStreamCreateWithFlags"))
        return cudaErrorUnknown;
    struct CUstream_st *made = malloc(sizeof *made);
    if (!made)
        return cudaErrorMemoryAllocation;
    init_stream(made, current_device);
    standin_lock();
    if (flags != cudaStreamNonBlocking)
        standin_complain("a stream that waits for the default one");
    struct CUstream_st *const gone = standin_draw(2) ? find_gone() : NULL;
    if (gone)
        made = take_handle(gone, made);
    else
        link_stream(made);
    standin_unlock();
    *stream = made;
    return cudaSuccess;
}

/* Work that the stream still holds is done later. */
cudaError_t standin_stream_destroy(cudaStream_t stream)
{
    standin_lock();
    struct CUstream_st *known = stream ? standin_stream(stream, stream->device, "cudaStreamDestroy") : NULL;
    if (known)
        known->gone = true;
    standin_unlock();
    return known ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

cudaError_t standin_stream_query(cudaStream_t stream)
{
    if (standin_fails("cudaStreamQuery"))
        return cudaErrorUnknown;
    standin_lock();
    standin_done.waits++;
    standin_refuse_capture(current_device, "cudaStreamQuery");
    const struct CUstream_st *asked = standin_stream(stream, current_device, "cudaStreamQuery");
    standin_drive();
    const bool done = asked && !asked->first;
    standin_unlock();
    return !asked ? cudaErrorInvalidResourceHandle : done ? cudaSuccess : cudaErrorNotReady;
}

/* A record or a wait in a stream. */
typedef struct event_work {
    standin_work work;
    struct CUevent_st *event;
    int64_t number;
} event_work;

static bool meet_event(standin_work *work)
{
    const event_work *mine = (const event_work *)work;
    if (mine->event->met < mine->number)
        mine->event->met = mine->number;
    return true;
}

static bool await_event(standin_work *work)
{
    const event_work *mine = (const event_work *)work;
    return mine->event->met >= mine->number;
}

cudaError_t standin_event_create(cudaEvent_t *event, unsigned flags)
{
    (void)flags;
    if (standin_fails("cudaEventCreateWithFlags"))
        return cudaErrorUnknown;
    struct CUevent_st *made = calloc(1, sizeof *made);
    if (!made)
        return cudaErrorMemoryAllocation;
    standin_lock();
    made->next = standin.events;
    standin.events = made;
    standin_unlock();
    *event = made;
    return cudaSuccess;
}

cudaError_t standin_event_destroy(cudaEvent_t event)
{
    standin_lock();
    if (event->gone)
        standin_complain("cudaEventDestroy: an event that was destroyed");
    event->gone = true;
    standin_unlock();
    return cudaSuccess;
}

static cudaError_t add_event(cudaEvent_t event, cudaStream_t stream, bool record, const char *call)
{
    if (standin_fails(call))
        return cudaErrorUnknown;
    event_work *work = calloc(1, sizeof *work);
    if (!work)
        return cudaErrorMemoryAllocation;
    standin_lock();
    struct CUstream_st *known = standin_stream(stream, current_device, call);
    event->recorded += record;
    *work = (event_work){{.step = record ? meet_event : await_event}, event, event->recorded};
    if (known)
        standin_enqueue(known, &work->work);
    else
        free(work);
    standin_unlock();
    return known ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

cudaError_t standin_event_record(cudaEvent_t event, cudaStream_t stream)
{
    return add_event(event, stream, true, "cudaEventRecord");
}

cudaError_t standin_stream_wait_event(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    (void)flags;
    return add_event(event, stream, false, "cudaStreamWaitEvent");
}

static cudaError_t is_capturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    standin_lock();
    const struct CUstream_st *known = standin_stream(stream, current_device, "cudaStreamIsCapturing");
    *status = known && known->capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    standin_unlock();
    return known ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

static cudaError_t malloc_host(void **memory, size_t bytes)
{
    if (standin_fails("cudaMallocHost"))
        return cudaErrorMemoryAllocation;
    standin_lock();
    void *made = standin_allocate(bytes, -1);
    standin_unlock();
    if (made)
        *memory = made;
    return made ? cudaSuccess : cudaErrorMemoryAllocation;
}

static cudaError_t free_host(void *memory)
{
    standin_lock();
    standin_done.waits++;
    standin_refuse_capture(current_device, "cudaFreeHost");
    for (standin_drive(); !is_idle(current_device); standin_drive())
        pthread_cond_wait(&standin.changed, &standin.lock);
    if (!standin_release(memory))
        standin_complain("cudaFreeHost: no such memory");
    standin_unlock();
    return cudaSuccess;
}

static cudaError_t get_last_cuda_error(void)
{
    return cudaSuccess;
}

static const char *get_cuda_error_name(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaErrorOfTheStandIn";
}

static const char *get_cuda_error_string(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation     ? "out of memory"
           : error == cudaErrorInsufficientDriver ? "no driver"
                                                  : "made to fail";
}

static ncclResult_t get_version(int *version)
{
    if (standin_fails("ncclGetVersion"))
        return ncclSystemError;
    standin_lock();
    *version = standin.version;
    standin_unlock();
    return ncclSuccess;
}

static const char *get_error_string(ncclResult_t result)
{
    static const char *const words[ncclNumResults] = {"no error",
                                                      "unhandled cuda error",
                                                      "unhandled system error",
                                                      "internal error",
                                                      "invalid argument",
                                                      "invalid usage",
                                                      "remote process exited or there was a network error",
                                                      "NCCL operation in progress"};
    return words[result];
}

static const char *get_last_error(ncclComm_t comm)
{
    static _Thread_local char words[sizeof standin.last_error];
    (void)comm;
    standin_lock();
    memcpy(words, standin.last_error, sizeof words);
    standin_unlock();
    return words;
}

const tsr_nccl_api standin_api = {
    .get_version = get_version,
    .get_unique_id = standin_get_unique_id,
    .comm_init_rank_config = standin_comm_init,
    .comm_split = standin_comm_split,
    .comm_finalize = standin_comm_finalize,
    .comm_destroy = standin_comm_destroy,
    .comm_abort = standin_comm_abort,
    .comm_get_async_error = standin_comm_get_async_error,
    .comm_count = standin_comm_count,
    .comm_user_rank = standin_comm_user_rank,
    .comm_cu_device = standin_comm_cu_device,
    .get_error_string = get_error_string,
    .get_last_error = get_last_error,
    .group_start = standin_group_start,
    .group_end = standin_group_end,
    .send = standin_send,
    .recv = standin_recv,
    .all_gather = standin_all_gather,
    .reduce_scatter = standin_reduce_scatter,
    .all_reduce = standin_all_reduce,
    .broadcast = standin_broadcast,
    .cuda_get_device_count = get_device_count,
    .cuda_get_device = get_device,
    .cuda_set_device = set_device,
    .cuda_stream_create_with_flags = standin_stream_create,
    .cuda_stream_destroy = standin_stream_destroy,
    .cuda_stream_query = standin_stream_query,
    .cuda_stream_is_capturing = is_capturing,
    .cuda_stream_wait_event = standin_stream_wait_event,
    .cuda_event_create_with_flags = standin_event_create,
    .cuda_event_destroy = standin_event_destroy,
    .cuda_event_record = standin_event_record,
    .cuda_malloc_host = malloc_host,
    .cuda_free_host = free_host,
    .cuda_get_last_error = get_last_cuda_error,
    .cuda_get_error_name = get_cuda_error_name,
    .cuda_get_error_string = get_cuda_error_string,
};
