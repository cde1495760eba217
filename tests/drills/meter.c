#include "meter.h"

#include <stdlib.h>
#include <time.h>

static void *allocate(void *user, size_t bytes, size_t alignment)
{
    meter *m = user;
    void *memory = NULL;
    if (bytes > m->bound || m->used + bytes > m->bound || posix_memalign(&memory, alignment, bytes ? bytes : 1) != 0)
        return NULL;
    m->used += bytes;
    m->most = m->used > m->most ? m->used : m->most;
    return memory;
}

static void release(void *user, void *memory, size_t bytes)
{
    ((meter *)user)->used -= bytes;
    free(memory);
}

tsr_status meter_context(meter *m, tsr_context **out)
{
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    options.allocator = (tsr_allocator){allocate, release, m};
    return tsr_context_create(&options, out);
}

static double cpu_seconds(void)
{
    struct timespec at;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

void meter_begin(meter *m)
{
    m->before = m->most = m->used;
    m->began = cpu_seconds();
}

double meter_seconds(const meter *m)
{
    return cpu_seconds() - m->began;
}

size_t meter_memory(const meter *m)
{
    return m->most - m->before;
}

size_t meter_left(const meter *m)
{
    return m->used - m->before;
}
