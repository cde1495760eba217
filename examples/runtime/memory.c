#include "memory.h"

#include <stdlib.h>

static void *allocate(void *user, size_t bytes, size_t alignment)
{
    memory *const m = user;
    void *made;
    atomic_fetch_add(&m->calls, 1);
    if (posix_memalign(&made, alignment, bytes) != 0)
        return NULL;
    atomic_fetch_add(&m->blocks, 1);
    atomic_fetch_add(&m->bytes, bytes);
    return made;
}

static void release(void *user, void *given, size_t bytes)
{
    memory *const m = user;
    atomic_fetch_sub(&m->blocks, 1);
    atomic_fetch_sub(&m->bytes, bytes);
    free(given);
}

tsr_status memory_context(memory *m, tsr_context **out)
{
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    options.allocator = (tsr_allocator){allocate, release, m};
    return tsr_context_create(&options, out);
}
