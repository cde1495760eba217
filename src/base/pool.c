#include "base/pool.h"

#include "base/pages.h"
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* More are not looked through; the oldest goes. */
#define MOST_BLOCKS 256

/* Of so many bytes the pages are not offered to the system, which would cost a call for each block. */
#define WARM_BYTES ((size_t)32 << 20)

typedef struct pool_block {
    void *pages;
    size_t bytes;
    uint64_t turn;   /* when it was given, in the order of the pool */
    pthread_t giver; /* on whose node its pages probably are */
    bool warm;       /* not offered to the system */
} pool_block;

struct tsr_pool {
    pthread_mutex_t mutex;
    size_t most_bytes, bytes, warm_bytes, count;
    uint64_t turns, hits, misses;
    pool_block blocks[MOST_BLOCKS];
};

tsr_pool *tsr_pool_create(size_t most_bytes)
{
    tsr_pool *pool = malloc(sizeof *pool);
    if (!pool)
        return NULL;
    if (pthread_mutex_init(&pool->mutex, NULL) != 0) {
        free(pool);
        return NULL;
    }
    pool->most_bytes = most_bytes;
    pool->bytes = pool->warm_bytes = pool->count = 0;
    pool->turns = pool->hits = pool->misses = 0;
    return pool;
}

void tsr_pool_destroy(tsr_pool *pool)
{
    if (!pool)
        return;
    tsr_pool_trim(pool);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}

/* Small enough for the request that not much of it lies idle, and large enough. */
static bool fits(const pool_block *block, size_t wanted)
{
    return block->bytes >= wanted && block->bytes <= tsr_pages_round(wanted + wanted / 8);
}

/* The smaller one, else this thread's own, else the one that was given last, which a cache may still hold. */
static bool is_better(const pool_block *block, const pool_block *best, pthread_t self)
{
    if (!best || block->bytes != best->bytes)
        return !best || block->bytes < best->bytes;
    const int own = pthread_equal(block->giver, self) != 0, best_own = pthread_equal(best->giver, self) != 0;
    return own != best_own ? own > best_own : block->turn > best->turn;
}

static pool_block *find_best(tsr_pool *pool, size_t wanted)
{
    const pthread_t self = pthread_self();
    pool_block *best = NULL;
    for (pool_block *block = pool->blocks; block < pool->blocks + pool->count; block++)
        if (fits(block, wanted) && is_better(block, best, self))
            best = block;
    return best;
}

/* NULL if there is none. */
static pool_block *find_oldest(tsr_pool *pool)
{
    pool_block *oldest = pool->count > 0 ? pool->blocks : NULL;
    for (pool_block *block = pool->blocks; block < pool->blocks + pool->count; block++)
        if (block->turn < oldest->turn)
            oldest = block;
    return oldest;
}

static pool_block remove_block(tsr_pool *pool, pool_block *block)
{
    const pool_block removed = *block;
    *block = pool->blocks[--pool->count];
    pool->bytes -= removed.bytes;
    pool->warm_bytes -= removed.warm ? removed.bytes : 0;
    return removed;
}

/* One that is kept, or a block without pages. */
static pool_block take_kept(tsr_pool *pool, size_t wanted)
{
    pthread_mutex_lock(&pool->mutex);
    pool_block *const best = find_best(pool, wanted);
    const pool_block taken = best ? remove_block(pool, best) : (pool_block){.pages = NULL};
    pool->hits += taken.pages != NULL;
    pool->misses += taken.pages == NULL;
    pthread_mutex_unlock(&pool->mutex);
    return taken;
}

void *tsr_pool_take(tsr_pool *pool, size_t wanted, size_t *bytes)
{
    pool_block block = take_kept(pool, wanted);
    if (block.pages) {
        tsr_pages_unpoison(block.pages, block.bytes);
    } else {
        block.bytes = tsr_pages_round(wanted);
        block.pages = tsr_pages_map(block.bytes);
    }
    if (block.pages)
        tsr_pages_poison((char *)block.pages + wanted, block.bytes - wanted);
    *bytes = block.bytes;
    return block.pages;
}

static void drop(const pool_block *block)
{
    tsr_pages_unpoison(block->pages, block->bytes);
    tsr_pages_unmap(block->pages, block->bytes);
}

/* Whether the pages can stay as they are: then they count from now on. */
static bool stays_warm(tsr_pool *pool, size_t bytes)
{
    pthread_mutex_lock(&pool->mutex);
    const bool warm = bytes <= WARM_BYTES - pool->warm_bytes;
    pool->warm_bytes += warm ? bytes : 0;
    pthread_mutex_unlock(&pool->mutex);
    return warm;
}

/* Keeps a block if there is room for it; else `*oldest` has left the pool, to make some. */
static bool keep(tsr_pool *pool, pool_block block, pool_block *oldest)
{
    pthread_mutex_lock(&pool->mutex);
    const bool room = block.bytes <= pool->most_bytes - pool->bytes && pool->count < MOST_BLOCKS;
    if (room) {
        block.turn = pool->turns++;
        pool->blocks[pool->count++] = block;
        pool->bytes += block.bytes;
    } else {
        *oldest = remove_block(pool, find_oldest(pool));
    }
    pthread_mutex_unlock(&pool->mutex);
    return room;
}

void tsr_pool_give(tsr_pool *pool, void *pages, size_t bytes)
{
    pool_block block = {.pages = pages, .bytes = bytes, .giver = pthread_self()}, oldest;
    if (bytes > pool->most_bytes) {
        drop(&block);
        return;
    }
    block.warm = stays_warm(pool, bytes);
    if (!block.warm)
        tsr_pages_offer(pages, bytes);
    tsr_pages_poison(pages, bytes);
    while (!keep(pool, block, &oldest))
        drop(&oldest);
}

/* False once nothing is kept. */
static bool take_any(tsr_pool *pool, pool_block *block)
{
    pthread_mutex_lock(&pool->mutex);
    const bool found = pool->count > 0;
    if (found)
        *block = remove_block(pool, &pool->blocks[pool->count - 1]);
    pthread_mutex_unlock(&pool->mutex);
    return found;
}

size_t tsr_pool_trim(tsr_pool *pool)
{
    size_t bytes = 0;
    for (pool_block block; take_any(pool, &block); bytes += block.bytes)
        drop(&block);
    return bytes;
}

tsr_kept_statistics tsr_pool_statistics(tsr_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    const tsr_kept_statistics statistics = {
        .most_bytes = pool->most_bytes, .bytes = pool->bytes, .blocks = pool->count, .hits = pool->hits, .misses = pool->misses};
    pthread_mutex_unlock(&pool->mutex);
    return statistics;
}
