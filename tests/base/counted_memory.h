/* An allocator for tests: counts allocations, checks releases, and makes the n-th allocation fail,
 * or the n-th of one thread. Threads may share one. */
#ifndef TESTS_COUNTED_MEMORY_H
#define TESTS_COUNTED_MEMORY_H

#include <tessera/context.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct counted_memory {
    atomic_size_t allocations; /* number of allocations so far, failed ones included */
    atomic_size_t bytes;       /* bytes of all allocations so far, released or not */
    size_t fail_at;            /* number of the allocation that fails, from 1; 0: none */
    atomic_size_t live_blocks, live_bytes;
} counted_memory;

/* The allocator over `memory`, which must outlive all allocations. */
tsr_allocator counted_allocator(counted_memory *memory);

/* Options whose allocator counts in `memory`, and that no environment variable overrides. */
tsr_context_options counted_options(counted_memory *memory);

/* A context with counted_options(); fails the test if that fails. */
tsr_context *counted_context(counted_memory *memory);

/* An environment without any variable. */
const char *no_environment(void *user, const char *name);

/* Fails the test unless all that was allocated has been released. */
void assert_nothing_leaked(const counted_memory *memory);

/* Makes the calling thread's `nth` allocation from now (1: the next; 0: none) in any counted memory
 * fail, and with `goes_on` all later ones. For ranks on threads. Returns how many allocations were
 * left before the failure of the last call: 0 if that has happened, or none was set. */
size_t counted_fail_here(size_t nth, bool goes_on);

/* The number of allocations of the calling thread in any counted memory. */
size_t counted_asked_here(void);

#endif
