/** The host's allocator, which counts. All memory that Tessera takes for a host comes from it. */
#ifndef EXAMPLES_RUNTIME_MEMORY_H
#define EXAMPLES_RUNTIME_MEMORY_H

#include <tessera/context.h>

#include <stdatomic.h>

typedef struct memory {
    atomic_size_t calls;         /**< of the allocator, so far */
    atomic_size_t blocks, bytes; /**< in use */
} memory;

/** A context whose memory is counted in `m`, which must outlive it. */
tsr_status memory_context(memory *m, tsr_context **out);

#endif
