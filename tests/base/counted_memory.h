/* An allocator for tests: counts what lives, checks what comes back, and fails the n-th allocation. Single-threaded. */
#ifndef TESTS_COUNTED_MEMORY_H
#define TESTS_COUNTED_MEMORY_H

#include <stddef.h>
#include <tessera/context.h>

typedef struct counted_memory {
    size_t allocations; /* so far, the failed one included */
    size_t fail_at;     /* 1 fails the first; 0 none */
    size_t live_blocks, live_bytes;
} counted_memory;

/* Options whose allocator counts in `memory`, and that no environment variable overrides. */
tsr_context_options counted_options(counted_memory *memory);

/* A context over them, which must succeed. */
tsr_context *counted_context(counted_memory *memory);

/* An environment without any variable. */
const char *no_environment(void *user, const char *name);

/* Fails the test unless all that was allocated has been released. */
void assert_nothing_leaked(const counted_memory *memory);

#endif
