/* Creation and destruction of a machine, and its queries. */
#include "async_machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void make_streams(async_machine *machine)
{
    for (int s = 0; s < ASYNC_STREAMS; s++)
        machine->streams[s] = (async_stream){.live = s < machine->options.devices,
                                             .number = s,
                                             .index = s < machine->options.devices ? s : 0,
                                             .last = &machine->streams[s].first,
                                             .priority = async_random(machine)};
}

async_machine *async_create(const async_options *options)
{
    async_machine *machine = calloc(1, sizeof *machine);
    if (!machine || !async_memory_create(machine))
        return NULL;
    machine->options = *options;
    machine->host = tsr_device_driver_table(NULL, &machine->host_self);
    machine->random = options->seed;
    make_streams(machine);
    pthread_mutex_init(&machine->lock, NULL);
    pthread_cond_init(&machine->changed, NULL);
    return pthread_create(&machine->worker, NULL, async_work, machine) == 0 ? machine : NULL;
}

void async_destroy(async_machine *machine)
{
    pthread_mutex_lock(&machine->lock);
    machine->closing = true;
    pthread_cond_broadcast(&machine->changed);
    pthread_mutex_unlock(&machine->lock);
    pthread_join(machine->worker, NULL);
    for (const async_block *block = machine->blocks; block; block = block->next)
        fprintf(stderr, "async: %zu bytes of device %d were never freed\n", block->bytes, block->owner);
    async_memory_destroy(machine);
    pthread_cond_destroy(&machine->changed);
    pthread_mutex_destroy(&machine->lock);
    free(machine);
}

int64_t async_count(async_machine *machine, async_call call)
{
    pthread_mutex_lock(&machine->lock);
    const int64_t count = machine->counts[call];
    pthread_mutex_unlock(&machine->lock);
    return count;
}

void async_fail(async_machine *machine, async_call call, int64_t nth)
{
    pthread_mutex_lock(&machine->lock);
    machine->failing[call] = nth;
    pthread_mutex_unlock(&machine->lock);
}

const char *async_fault(async_machine *machine)
{
    pthread_mutex_lock(&machine->lock);
    memcpy(machine->told, machine->fault, sizeof machine->told);
    machine->fault[0] = '\0';
    pthread_mutex_unlock(&machine->lock);
    return machine->told[0] ? machine->told : NULL;
}

void async_capture(async_machine *machine, int index, tsr_stream stream, uint64_t id)
{
    pthread_mutex_lock(&machine->lock);
    async_find(machine, index, stream)->capture = id;
    pthread_mutex_unlock(&machine->lock);
}

void async_leave_out(async_machine *machine, unsigned mask)
{
    pthread_mutex_lock(&machine->lock);
    machine->left_out = mask;
    pthread_mutex_unlock(&machine->lock);
}
