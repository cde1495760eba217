/** An allocator of whole pages in one range of memory: first fit. Not thread-safe. */
#ifndef TSR_COMM_ENGINES_MPI_NODE_HEAP_H
#define TSR_COMM_ENGINES_MPI_NODE_HEAP_H

#include <tessera/context.h>

#include <stddef.h>
#include <stdint.h>

typedef struct tsr_mpi_block tsr_mpi_block;

typedef struct tsr_mpi_heap {
    tsr_context *context; /**< allocates the list of blocks, which lies outside the range */
    char *base;
    size_t bytes;
    size_t most_kept, kept; /**< bytes of kept blocks, which are free but have their pages: at most, and now */
    tsr_mpi_block *blocks;  /**< blocks in use and kept blocks, ascending */
    uint64_t turns;         /**< how many times a block was kept */
} tsr_mpi_heap;

/** `context` is borrowed. Blocks that are freed may keep their pages, up to `most_kept` bytes in
 * all, which is no more than the context allows. */
void tsr_mpi_heap_init(tsr_mpi_heap *heap, tsr_context *context, void *base, size_t bytes, size_t most_kept);

/** Forgets all blocks; the memory must still be mapped. A zeroed heap is allowed. */
void tsr_mpi_heap_finish(tsr_mpi_heap *heap);

/** TSR_ERROR_MEMORY: there is no room; the sentence says how much was wanted. */
tsr_status tsr_mpi_heap_alloc(tsr_mpi_heap *heap, size_t bytes, void **out);

/** Frees a block. A large one keeps its pages for a later allocation, if the limits allow it
 * (sys/memory.h), or gives them back to the system. */
void tsr_mpi_heap_free(tsr_mpi_heap *heap, void *memory);

/** Gives the pages of all kept blocks back to the system. Returns how many bytes. */
size_t tsr_mpi_heap_trim(tsr_mpi_heap *heap);

/** Marks a block to be freed by the first allocation after `*left`, which other processes write,
 * has become `count`. */
void tsr_mpi_heap_retire(tsr_mpi_heap *heap, void *memory, const int32_t *left, int32_t count);

#endif
