/** Blocks of one range of memory: whole pages, the first that is large enough. Not thread-safe. */
#ifndef TSR_COMM_ENGINES_MPI_NODE_HEAP_H
#define TSR_COMM_ENGINES_MPI_NODE_HEAP_H

#include <stddef.h>
#include <stdint.h>
#include <tessera/context.h>

typedef struct tsr_mpi_block tsr_mpi_block;

typedef struct tsr_mpi_heap {
    tsr_context *context; /**< for what is known of blocks, which lies outside the range */
    char *base;
    size_t bytes;
    size_t most_kept, kept; /**< bytes of blocks that are nobody's, with their pages */
    tsr_mpi_block *blocks;  /**< those in use, and those that are kept, ascending */
    uint64_t turns;         /**< so many were kept */
} tsr_mpi_heap;

/** `context` is borrowed. Of what is freed, the pages of up to `most_kept` bytes may stay, which is no more than the context allows. */
void tsr_mpi_heap_init(tsr_mpi_heap *heap, tsr_context *context, void *base, size_t bytes, size_t most_kept);

/** Forgets all blocks, while the memory is there; of a zeroed heap too. */
void tsr_mpi_heap_finish(tsr_mpi_heap *heap);

/** TSR_ERROR_MEMORY says how much was wanted. */
tsr_status tsr_mpi_heap_alloc(tsr_mpi_heap *heap, size_t bytes, void **out);

/** A large block keeps its pages for the next, within what the context allows (sys/memory.h), or they go back to the system. */
void tsr_mpi_heap_free(tsr_mpi_heap *heap, void *memory);

/** Gives the pages of all that is kept back to the system; returns how many bytes. */
size_t tsr_mpi_heap_trim(tsr_mpi_heap *heap);

/** Free at the first need after `*left`, which others write, has become `count`. */
void tsr_mpi_heap_retire(tsr_mpi_heap *heap, void *memory, const int32_t *left, int32_t count);

#endif
