#include "base/memory/pool.h"

#include "base/memory/pages.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* A search looks through at most this many blocks; when the list is full the oldest block is
 * dropped. */
#define MOST_BLOCKS 256

/* Up to this many bytes of kept blocks are not offered to the system, which spares a system call
 * for each. */
#define WARM_BYTES ((size_t)32 << 20)

typedef struct pool_block {
    void *pages;
    size_t bytes;
    uint64_t turn;   /* the pool's count when the block was given: the oldest block has the least */
    pthread_t giver; /* the thread that gave the block: its pages are probably on that thread's node */
    bool warm;       /* the block was not offered to the system */
} pool_block;

struct tsr_pool {
    pthread_mutex_t mutex;
    size_t most_bytes, bytes, warm_bytes, count;
    size_t elsewhere_bytes, elsewhere_count; /* blocks that keepers keep */
    uint64_t turns, hits, misses;
    pthread_mutex_t keepers_mutex; /* locked before `mutex` and before any lock of a keeper */
    tsr_keeper *keepers;
    pool_block blocks[MOST_BLOCKS];
};

static bool make_mutexes(tsr_pool *pool)
{
    if (pthread_mutex_init(&pool->mutex, NULL) != 0)
        return false;
    if (pthread_mutex_init(&pool->keepers_mutex, NULL) == 0)
        return true;
    pthread_mutex_destroy(&pool->mutex);
    return false;
}

tsr_pool *tsr_pool_create(size_t most_bytes)
{
    tsr_pool *pool = calloc(1, sizeof *pool);
    if (!pool || !make_mutexes(pool)) {
        free(pool);
        return NULL;
    }
    pool->most_bytes = most_bytes;
    return pool;
}

void tsr_pool_destroy(tsr_pool *pool)
{
    if (!pool)
        return;
    tsr_pool_trim(pool);
    pthread_mutex_destroy(&pool->keepers_mutex);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}

/* True if the block holds `wanted` bytes and at most about an eighth more. */
static bool block_fits(const pool_block *block, size_t wanted)
{
    return block->bytes >= wanted && block->bytes <= tsr_pages_round(wanted + wanted / 8);
}

/* Prefers the smaller block; of equal ones a block that this thread gave; then the latest one,
 * which a cache may still hold. */
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
        if (block_fits(block, wanted) && is_better(block, best, self))
            best = block;
    return best;
}

/* The pool has at least one block. */
static pool_block *find_oldest(tsr_pool *pool)
{
    pool_block *oldest = pool->blocks;
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

/* Takes the best kept block out of the pool; if no block fits, `pages` of the result is NULL. */
static pool_block take_kept(tsr_pool *pool, size_t wanted)
{
    pthread_mutex_lock(&pool->mutex);
    pool_block *const best = find_best(pool, wanted);
    const pool_block taken = best ? remove_block(pool, best) : (pool_block){.pages = NULL};
    pool->hits += taken.pages != NULL;
    pool->misses += !taken.pages;
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

static void drop_block(const pool_block *block)
{
    tsr_pages_unpoison(block->pages, block->bytes);
    tsr_pages_unmap(block->pages, block->bytes);
}

/* True if a block of `bytes` need not be offered to the system; its bytes then count as warm. */
static bool stays_warm(tsr_pool *pool, size_t bytes)
{
    pthread_mutex_lock(&pool->mutex);
    const bool warm = bytes <= WARM_BYTES - pool->warm_bytes;
    pool->warm_bytes += warm ? bytes : 0;
    pthread_mutex_unlock(&pool->mutex);
    return warm;
}

static bool has_room(const tsr_pool *pool, size_t bytes)
{
    return bytes <= pool->most_bytes - pool->bytes - pool->elsewhere_bytes;
}

static void insert_block(tsr_pool *pool, const pool_block *block)
{
    pool->blocks[pool->count] = *block;
    pool->blocks[pool->count++].turn = pool->turns++;
    pool->bytes += block->bytes;
}

/* Keeps a block if there is room: the result then has no pages. Else returns a block that the
 * caller must drop: the oldest one, after which the caller tries again, or `block` itself if the
 * pool has no other. */
static pool_block keep_block(tsr_pool *pool, const pool_block *block)
{
    pool_block gone = {.pages = NULL};
    pthread_mutex_lock(&pool->mutex);
    if (has_room(pool, block->bytes) && pool->count < MOST_BLOCKS) {
        insert_block(pool, block);
    } else if (pool->count > 0) {
        gone = remove_block(pool, find_oldest(pool));
    } else {
        pool->warm_bytes -= block->warm ? block->bytes : 0;
        gone = *block;
    }
    pthread_mutex_unlock(&pool->mutex);
    return gone;
}

void tsr_pool_give(tsr_pool *pool, void *pages, size_t bytes)
{
    pool_block block = {.pages = pages, .bytes = bytes, .giver = pthread_self()};
    if (bytes > pool->most_bytes) {
        drop_block(&block);
        return;
    }
    block.warm = stays_warm(pool, bytes);
    if (!block.warm)
        tsr_pages_offer(pages, bytes);
    tsr_pages_poison(pages, bytes);
    for (pool_block gone = keep_block(pool, &block); gone.pages; gone = keep_block(pool, &block)) {
        drop_block(&gone);
        if (gone.pages == pages)
            return;
    }
}

/* Takes one kept block out of the pool. False: the pool keeps no block. */
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
        drop_block(&block);
    return bytes;
}

tsr_kept_statistics tsr_pool_statistics(tsr_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    const tsr_kept_statistics statistics = {.most_bytes = pool->most_bytes,
                                            .bytes = pool->bytes + pool->elsewhere_bytes,
                                            .blocks = pool->count + pool->elsewhere_count,
                                            .hits = pool->hits,
                                            .misses = pool->misses};
    pthread_mutex_unlock(&pool->mutex);
    return statistics;
}

void tsr_pool_add_keeper(tsr_pool *pool, tsr_keeper *keeper)
{
    pthread_mutex_lock(&pool->keepers_mutex);
    keeper->next = pool->keepers;
    pool->keepers = keeper;
    pthread_mutex_unlock(&pool->keepers_mutex);
}

void tsr_pool_remove_keeper(tsr_pool *pool, const tsr_keeper *keeper)
{
    pthread_mutex_lock(&pool->keepers_mutex);
    tsr_keeper **link = &pool->keepers;
    while (*link && *link != keeper)
        link = &(*link)->next;
    if (*link)
        *link = keeper->next;
    pthread_mutex_unlock(&pool->keepers_mutex);
}

size_t tsr_pool_trim_keepers(tsr_pool *pool)
{
    size_t bytes = 0;
    pthread_mutex_lock(&pool->keepers_mutex);
    for (const tsr_keeper *keeper = pool->keepers; keeper; keeper = keeper->next)
        bytes += keeper->trim(keeper->self);
    pthread_mutex_unlock(&pool->keepers_mutex);
    return bytes;
}

bool tsr_pool_enter(tsr_pool *pool, size_t bytes)
{
    pthread_mutex_lock(&pool->mutex);
    const bool room = has_room(pool, bytes);
    pool->elsewhere_bytes += room ? bytes : 0;
    pool->elsewhere_count += room;
    pthread_mutex_unlock(&pool->mutex);
    return room;
}

void tsr_pool_leave(tsr_pool *pool, size_t bytes)
{
    pthread_mutex_lock(&pool->mutex);
    pool->elsewhere_bytes -= bytes;
    pool->elsewhere_count--;
    pthread_mutex_unlock(&pool->mutex);
}

void tsr_pool_count(tsr_pool *pool, bool hit)
{
    pthread_mutex_lock(&pool->mutex);
    pool->hits += hit;
    pool->misses += !hit;
    pthread_mutex_unlock(&pool->mutex);
}
