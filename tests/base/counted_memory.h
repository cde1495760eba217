/* An allocator for tests: counts what lives, checks what comes back, and fails the n-th allocation, or the n-th of one thread. Any threads
 * may share one. */
#ifndef TESTS_COUNTED_MEMORY_H
#define TESTS_COUNTED_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <tessera/context.h>

typedef struct counted_memory {
    atomic_size_t allocations; /* so far, the failed ones included */
    atomic_size_t bytes;       /* that were asked for, given back or not */
    size_t fail_at;            /* 1 fails the first; 0 none */
    atomic_size_t live_blocks, live_bytes;
} counted_memory;

/* It is to outlive what is allocated. */
tsr_allocator counted_allocator(counted_memory *memory);

/* Options whose allocator counts in `memory`, and that no environment variable overrides. */
tsr_context_options counted_options(counted_memory *memory);

/* A context over them, which must succeed. */
tsr_context *counted_context(counted_memory *memory);

/* An environment without any variable. */
const char *no_environment(void *user, const char *name);

/* Fails the test unless all that was allocated has been released. */
void assert_nothing_leaked(const counted_memory *memory);

/* For ranks on threads: of what the calling thread asks any counted memory for, the `nth` from now fails (1: the next), with all that
 * follow if it `goes_on`; 0: nothing does any more. Returns how many were left before of those that it was last called for: 0 if the nth
 * has failed, or none was to. */
size_t counted_fail_here(size_t nth, bool goes_on);

/* How often the calling thread has asked any counted memory. */
size_t counted_asked_here(void);

#endif
