/* Streams are queues that one thread drains; events are positions in them. A wait is for operations
 * enqueued before it, so there is always one that can run. */
#include "async_machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void async_complain(async_machine *machine, const char *format, ...)
{
    va_list arguments;
    if (machine->fault[0])
        return;
    va_start(arguments, format);
    vsnprintf(machine->fault, sizeof machine->fault, format, arguments);
    va_end(arguments);
}

uint64_t async_random(async_machine *machine)
{
    uint64_t z = machine->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

async_op *async_op_create(size_t bytes, void (*run)(async_machine *machine, const async_op *op))
{
    async_op *op = calloc(1, sizeof *op + bytes);
    if (op)
        op->run = run;
    return op;
}

static void merge(async_clock *clock, const async_clock *other)
{
    for (int s = 0; s < ASYNC_STREAMS; s++)
        clock->at[s] = clock->at[s] > other->at[s] ? clock->at[s] : other->at[s];
}

void async_tick(async_machine *machine, async_stream *stream)
{
    merge(&stream->clock, &machine->done);
    stream->clock.at[stream->number]++;
}

void async_enqueue(async_machine *machine, async_stream *stream, async_op *op)
{
    *stream->last = op;
    stream->last = &op->next;
    stream->enqueued++;
    pthread_cond_broadcast(&machine->changed);
}

async_stream *async_find(async_machine *machine, int index, tsr_stream stream)
{
    async_stream *found = stream ? stream : &machine->streams[index];
    if (!found->live || found->index != index)
        async_complain(machine, "stream %d of device %d was used on device %d", found->number, found->index, index);
    return found;
}

static bool may_run(const async_machine *machine, const async_stream *stream)
{
    return stream->first &&
           (stream->first->run || machine->streams[stream->first->awaited].completed >= stream->first->until);
}

static async_stream *choose(async_machine *machine)
{
    async_stream *best = NULL;
    for (int s = 0; s < ASYNC_STREAMS; s++) {
        async_stream *stream = &machine->streams[s];
        if (may_run(machine, stream) && (!best || stream->priority > best->priority))
            best = stream;
    }
    return best;
}

static bool is_empty(const async_machine *machine)
{
    for (int s = 0; s < ASYNC_STREAMS; s++)
        if (machine->streams[s].first)
            return false;
    return true;
}

static void run_next(async_machine *machine, async_stream *stream)
{
    async_op *op = stream->first;
    stream->first = op->next;
    if (!stream->first)
        stream->last = &stream->first;
    if (op->run) {
        pthread_mutex_unlock(&machine->lock);
        op->run(machine, op);
        pthread_mutex_lock(&machine->lock);
    }
    free(op);
    stream->completed++;
    /* now and then a stream gets another priority */
    if (async_random(machine) % 4 == 0)
        stream->priority = async_random(machine);
    pthread_cond_broadcast(&machine->changed);
}

void *async_work(void *arg)
{
    async_machine *machine = arg;
    pthread_mutex_lock(&machine->lock);
    while (!machine->closing || !is_empty(machine)) {
        const bool asked = !machine->options.lazy || machine->waiting > 0 || machine->closing;
        async_stream *stream = asked ? choose(machine) : NULL;
        if (stream)
            run_next(machine, stream);
        else
            pthread_cond_wait(&machine->changed, &machine->lock);
    }
    pthread_mutex_unlock(&machine->lock);
    return NULL;
}

static void drain_one(async_machine *machine, const async_stream *stream)
{
    const uint64_t until = stream->enqueued;
    const async_clock clock = stream->clock;
    while (stream->completed < until)
        pthread_cond_wait(&machine->changed, &machine->lock);
    merge(&machine->done, &clock);
}

void async_drain(async_machine *machine, async_stream *stream)
{
    machine->waiting++;
    pthread_cond_broadcast(&machine->changed);
    if (stream)
        drain_one(machine, stream);
    for (int s = 0; !stream && s < ASYNC_STREAMS; s++)
        drain_one(machine, &machine->streams[s]);
    machine->waiting--;
}
