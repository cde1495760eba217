/* Streams, events, and the threads that carry out commands. A wait is for commands that were
 * enqueued before it, so there is always a stream that can go on. */
#include "queue.h"

#include <tessera/sys/memory.h>

#include <stdio.h>

char queue_default;

/* In front of the arguments, which are aligned as anything may be. */
enum { HEADER = (sizeof(queue_command) + 15) / 16 * 16 };

queue_command *queue_prepare(queue_machine *machine, size_t argument_bytes,
                             tsr_status (*run)(queue_machine *machine, void *arguments))
{
    void *made;
    if (tsr_allocate(machine->context, HEADER + argument_bytes, &made) != TSR_OK)
        return NULL;
    queue_command *const command = made;
    *command = (queue_command){.run = run};
    return command;
}

void *queue_arguments(queue_command *command)
{
    return (char *)command + HEADER;
}

void queue_discard(queue_machine *machine, queue_command *command)
{
    tsr_release(machine->context, command);
}

tsr_status queue_say_full(void)
{
    return tsr_status_set(TSR_ERROR_MEMORY, "queue: there is no memory for a command");
}

tsr_status queue_enter(const queue_machine *machine, const void *given, void **out)
{
    if (!space_has(&machine->memory, given))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "queue: %p is no memory of the device", (const void *)given);
    *out = space_find(&machine->memory, given);
    return TSR_OK;
}

void queue_enqueue(queue_machine *machine, queue_stream *stream, queue_command *command)
{
    pthread_mutex_lock(&machine->lock);
    *stream->last = command;
    stream->last = &command->next;
    stream->enqueued++;
    pthread_cond_broadcast(&machine->changed);
    pthread_mutex_unlock(&machine->lock);
}

static bool can_run(const queue_stream *stream, int index)
{
    const queue_command *const first = stream->first;
    return stream->index == index && first && (first->run || first->awaited->completed >= first->until);
}

/* The next stream of device `index` behind `after` that can go on: streams take turns. */
static queue_stream *choose(const queue_machine *machine, int index, queue_stream *after)
{
    for (queue_stream *s = after ? after->next : NULL; s; s = s->next)
        if (can_run(s, index))
            return s;
    for (queue_stream *s = machine->streams; s; s = s->next)
        if (can_run(s, index))
            return s;
    return NULL;
}

/* With the lock, which is given back while the command runs. */
static void run_first(queue_machine *machine, queue_stream *stream)
{
    queue_command *const command = stream->first;
    tsr_status status = TSR_OK;
    if (command->run) {
        pthread_mutex_unlock(&machine->lock);
        status = command->run(machine, queue_arguments(command));
        pthread_mutex_lock(&machine->lock);
    }
    if (status != TSR_OK && stream->failed == TSR_OK) {
        stream->failed = status;
        snprintf(stream->sentence, sizeof stream->sentence, "%s", tsr_status_message());
    }
    stream->first = command->next;
    if (!stream->first)
        stream->last = &stream->first;
    stream->completed++;
    tsr_release(machine->context, command);
    pthread_cond_broadcast(&machine->changed);
}

/* The default streams have the numbers of their devices, and a worker finds its own by its place in
 * the list of threads. */
typedef struct worker {
    queue_machine *machine;
    int index;
} worker;

static bool is_idle(const queue_machine *machine, int index)
{
    for (const queue_stream *s = machine->streams; s; s = s->next)
        if (s->index == index && s->first)
            return false;
    return true;
}

static void *work(void *arg)
{
    const worker mine = *(worker *)arg;
    queue_machine *const machine = mine.machine;
    queue_stream *last = NULL;
    tsr_release(machine->context, arg);
    pthread_mutex_lock(&machine->lock);
    while (!machine->closing || !is_idle(machine, mine.index)) {
        queue_stream *const next = choose(machine, mine.index, last);
        if (next)
            run_first(machine, last = next);
        else
            pthread_cond_wait(&machine->changed, &machine->lock);
    }
    pthread_mutex_unlock(&machine->lock);
    return NULL;
}

static tsr_status start_worker(queue_machine *machine, int index)
{
    void *made;
    TSR_TRY(tsr_allocate(machine->context, sizeof(worker), &made));
    *(worker *)made = (worker){machine, index};
    if (pthread_create(&machine->workers[index], NULL, work, made) != 0) {
        tsr_release(machine->context, made);
        return tsr_status_set(TSR_ERROR_MEMORY, "queue: there is no thread for device %d", index);
    }
    machine->started++;
    return TSR_OK;
}

static tsr_status start(queue_machine *machine)
{
    TSR_TRY(space_open(machine->context, &machine->memory));
    for (int d = 0; d < QUEUE_DEVICES; d++)
        TSR_TRY(queue_stream_open(machine, d, &machine->standard[d]));
    for (int d = 0; d < QUEUE_DEVICES; d++)
        TSR_TRY(start_worker(machine, d));
    return TSR_OK;
}

tsr_status queue_machine_create(tsr_context *context, queue_machine **out)
{
    tsr_context *own = tsr_context_retain(context);
    void *made;
    if (!own)
        TSR_TRY(tsr_context_create(NULL, &own));
    tsr_status status = tsr_allocate(own, sizeof(queue_machine), &made);
    if (status != TSR_OK) {
        tsr_context_destroy(own);
        return status;
    }
    queue_machine *const machine = made;
    *machine = (queue_machine){.context = own};
    machine->host = tsr_device_driver_table(NULL, &machine->host_self);
    pthread_mutex_init(&machine->lock, NULL);
    pthread_cond_init(&machine->changed, NULL);
    status = start(machine);
    if (status == TSR_OK)
        *out = machine;
    else
        queue_machine_destroy(machine);
    return status;
}

void queue_machine_destroy(queue_machine *machine)
{
    tsr_context *const context = machine->context;
    pthread_mutex_lock(&machine->lock);
    machine->closing = true;
    pthread_cond_broadcast(&machine->changed);
    pthread_mutex_unlock(&machine->lock);
    for (int d = 0; d < machine->started; d++)
        pthread_join(machine->workers[d], NULL);
    while (machine->streams) {
        queue_stream *const first = machine->streams;
        machine->streams = first->next;
        tsr_release(context, first);
    }
    space_close(&machine->memory);
    pthread_cond_destroy(&machine->changed);
    pthread_mutex_destroy(&machine->lock);
    tsr_release(context, machine);
    tsr_context_destroy(context);
}

queue_stream *queue_find(const queue_machine *machine, int index, tsr_stream handle)
{
    return handle && handle != &queue_default ? handle : machine->standard[index];
}

/* With the lock: a stream of the device that was destroyed, or NULL. */
static queue_stream *reuse(const queue_machine *machine, int index)
{
    queue_stream *found = machine->streams;
    while (found && (found->live || found->index != index))
        found = found->next;
    return found;
}

tsr_status queue_stream_open(queue_machine *machine, int index, queue_stream **out)
{
    void *made;
    TSR_TRY(tsr_allocate(machine->context, sizeof(queue_stream), &made));
    queue_stream *fresh = made;
    pthread_mutex_lock(&machine->lock);
    queue_stream *found = reuse(machine, index);
    if (!found) {
        found = fresh;
        fresh = NULL;
        *found = (queue_stream){.next = machine->streams, .index = index, .last = &found->first};
        machine->streams = found;
    }
    found->live = true;
    found->failed = TSR_OK;
    pthread_mutex_unlock(&machine->lock);
    tsr_release(machine->context, fresh);
    *out = found;
    return TSR_OK;
}

void queue_stream_close(queue_machine *machine, queue_stream *stream)
{
    queue_wait(machine, stream);
    pthread_mutex_lock(&machine->lock);
    stream->live = false;
    pthread_mutex_unlock(&machine->lock);
}

/* With the lock. */
static void drain(queue_machine *machine, const queue_stream *stream)
{
    const uint64_t until = stream->enqueued;
    while (stream->completed < until)
        pthread_cond_wait(&machine->changed, &machine->lock);
}

tsr_status queue_wait(queue_machine *machine, queue_stream *stream)
{
    tsr_status status = TSR_OK;
    pthread_mutex_lock(&machine->lock);
    for (const queue_stream *s = machine->streams; s && !stream; s = s->next)
        drain(machine, s);
    if (stream) {
        drain(machine, stream);
        if (stream->failed != TSR_OK)
            status = tsr_status_set(stream->failed, "%s", stream->sentence);
        stream->failed = TSR_OK;
    }
    pthread_mutex_unlock(&machine->lock);
    return status;
}

tsr_status queue_event_create(queue_machine *machine, void **out)
{
    void *made;
    TSR_TRY(tsr_allocate(machine->context, sizeof(queue_event), &made));
    *(queue_event *)made = (queue_event){NULL, 0};
    *out = made;
    return TSR_OK;
}

void queue_event_destroy(queue_machine *machine, void *event)
{
    tsr_release(machine->context, event);
}

void queue_record(queue_machine *machine, queue_event *event, queue_stream *stream)
{
    pthread_mutex_lock(&machine->lock);
    *event = (queue_event){stream, stream->enqueued};
    pthread_mutex_unlock(&machine->lock);
}

tsr_status queue_await(queue_machine *machine, const queue_event *event, queue_stream *stream)
{
    pthread_mutex_lock(&machine->lock);
    const queue_event recorded = *event;
    pthread_mutex_unlock(&machine->lock);
    if (!recorded.stream || recorded.stream == stream)
        return TSR_OK;
    queue_command *const command = queue_prepare(machine, 0, NULL);
    if (!command)
        return queue_say_full();
    command->awaited = recorded.stream;
    command->until = recorded.at;
    queue_enqueue(machine, stream, command);
    return TSR_OK;
}
