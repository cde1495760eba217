/**
 * Large blocks of memory that were released, kept for later allocations: their pages are mapped
 * already.
 *
 * The kernel zeroes a page before it gives it away, and takes it back when the block is released; a
 * move that makes a new result of some MiB pays as much for its pages as for its bytes. A pool
 * bounds how many bytes it keeps; all but 32 MiB of them are offered to the system, which may take
 * them. Thread-safe; its lock is held to look through a list, never for a system call.
 */
#ifndef TSR_BASE_MEMORY_POOL_H
#define TSR_BASE_MEMORY_POOL_H

#include <tessera/sys/memory.h>

#include <stdbool.h>
#include <stddef.h>

/** Blocks of up to this many bytes come from the C library, which keeps lists of small blocks
 * itself. */
#define TSR_POOL_ABOVE ((size_t)64 << 10)

typedef struct tsr_pool tsr_pool;

/** A pool that keeps up to `most_bytes`; the caller destroys it. NULL: there is no memory. */
tsr_pool *tsr_pool_create(size_t most_bytes);

/** Call it when all blocks have been given back; NULL is fine. */
void tsr_pool_destroy(tsr_pool *pool);

/** A block of at least `wanted` bytes, which are more than TSR_POOL_ABOVE. It begins at a page, and
 * its content is undefined. `*bytes` becomes its size, at most about an eighth more than `wanted`.
 * NULL: there is no memory. */
void *tsr_pool_take(tsr_pool *pool, size_t wanted, size_t *bytes);

/** Gives back a block; `bytes` is the size that tsr_pool_take() stored. */
void tsr_pool_give(tsr_pool *pool, void *block, size_t bytes);

/** Gives all blocks that the pool itself keeps back to the system; returns their bytes. */
size_t tsr_pool_trim(tsr_pool *pool);

/** Makes all keepers give back the blocks that they keep; returns their bytes. */
size_t tsr_pool_trim_keepers(tsr_pool *pool);

/** Statistics of the blocks that the pool and its keepers keep. */
tsr_kept_statistics tsr_pool_statistics(tsr_pool *pool);

/** Adds a keeper, as tsr_keeper_add() says. */
void tsr_pool_add_keeper(tsr_pool *pool, tsr_keeper *keeper);

/** Removes a keeper, as tsr_keeper_remove() says. */
void tsr_pool_remove_keeper(tsr_pool *pool, const tsr_keeper *keeper);

/** True: a keeper may keep a block of `bytes`, which counts from now on. False: there is no room
 * for it. */
bool tsr_pool_enter(tsr_pool *pool, size_t bytes);

/** A keeper no longer keeps a block of `bytes`. */
void tsr_pool_leave(tsr_pool *pool, size_t bytes);

/** Counts a request to a keeper as a hit (it had a kept block) or a miss. */
void tsr_pool_count(tsr_pool *pool, bool hit);

#endif
