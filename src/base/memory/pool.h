/**
 * Large blocks of memory that were released, kept for the next that are wanted: their pages are there already.
 *
 * The kernel zeroes a page before it gives it away, and takes it back when the block is released; a move that makes a new result
 * of some MiB pays as much for its pages as for its bytes. A pool has a bound on what it keeps, and the system may take what exceeds
 * 32 MiB of that. Thread-safe; its lock is held to look through a list, never for a system call.
 */
#ifndef TSR_BASE_MEMORY_POOL_H
#define TSR_BASE_MEMORY_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <tessera/sys/memory.h>

/** Blocks up to here are the C library's: it has lists of its own for them. */
#define TSR_POOL_ABOVE ((size_t)64 << 10)

typedef struct tsr_pool tsr_pool;

/** Keeps up to `most_bytes`. NULL: there is no memory. */
tsr_pool *tsr_pool_create(size_t most_bytes);

/** When all blocks have been given back; NULL is fine. */
void tsr_pool_destroy(tsr_pool *pool);

/** A block for `wanted` bytes, which are more than TSR_POOL_ABOVE, of any content, on a page's boundary; `*bytes` is how large it
 * is: by no more than about an eighth larger. NULL: there is no memory. */
void *tsr_pool_take(tsr_pool *pool, size_t wanted, size_t *bytes);

/** Gives back a block of `bytes`, as tsr_pool_take() said. */
void tsr_pool_give(tsr_pool *pool, void *block, size_t bytes);

/** Gives all that the pool itself keeps to the system; returns how many bytes. */
size_t tsr_pool_trim(tsr_pool *pool);

/** The same of all keepers. */
size_t tsr_pool_trim_keepers(tsr_pool *pool);

/** Of the pool's blocks and those of keepers. */
tsr_kept_statistics tsr_pool_statistics(tsr_pool *pool);

/** What sys/memory.h says of keepers: they come and go, */
void tsr_pool_add_keeper(tsr_pool *pool, tsr_keeper *keeper);
void tsr_pool_remove_keeper(tsr_pool *pool, const tsr_keeper *keeper);

/** a block of theirs counts as kept, if there is room, and does no longer, */
bool tsr_pool_enter(tsr_pool *pool, size_t bytes);
void tsr_pool_leave(tsr_pool *pool, size_t bytes);

/** and one that was asked for was kept, or was not. */
void tsr_pool_count(tsr_pool *pool, bool hit);

#endif
