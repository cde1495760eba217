#include "base/memory/memory.h"

#include "base/memory/pages.h"
#include "base/memory/pool.h"
#include "base/settings.h"

#include <tessera/sys/status.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#define ALIGNMENT      64
#define HUGE_THRESHOLD (2 * TSR_HUGE_PAGE)

/* Stands in front of the caller's bytes, and is as long as their alignment. */
typedef struct header {
    _Alignas(ALIGNMENT) size_t bytes; /* of the whole block, with this header */
    bool pooled;                      /* the block came from the pool, not from the allocator */
} header;

_Static_assert(sizeof(header) == ALIGNMENT, "the header must not break the alignment of what follows it");

/* Large blocks span far more pages than a TLB holds, so they ask for huge pages. A program's own
 * allocator decides for itself. */
static size_t alignment_of(const tsr_settings *settings, size_t block)
{
    return settings->huge_pages && block >= HUGE_THRESHOLD ? TSR_HUGE_PAGE : ALIGNMENT;
}

static void advise(void *block, size_t bytes, size_t alignment)
{
#if defined(MADV_HUGEPAGE)
    /* Whole huge pages only: memory behind the block is not ours. The system may refuse the advice,
     * which does no harm. */
    if (alignment == TSR_HUGE_PAGE)
        (void)madvise(block, bytes / TSR_HUGE_PAGE * TSR_HUGE_PAGE, MADV_HUGEPAGE);
#else
    (void)block, (void)bytes, (void)alignment;
#endif
}

static header *allocate_block(const tsr_settings *settings, size_t block)
{
    const size_t alignment = alignment_of(settings, block);
    header *const front = settings->allocator.allocate(settings->allocator.user, block, alignment);
    if (!front)
        return NULL;
    advise(front, block, alignment);
    front->bytes = block;
    front->pooled = false;
    return front;
}

static header *allocate_pooled(const tsr_settings *settings, size_t block)
{
    size_t given;
    header *const front = tsr_pool_take(settings->pool, block, &given);
    if (!front)
        return NULL;
    front->bytes = given;
    front->pooled = true;
    return front;
}

typedef header *allocate_function(const tsr_settings *settings, size_t block);

static tsr_status out_of_memory(size_t bytes)
{
    return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for %zu bytes", bytes);
}

/* If there is no memory, gives the pool's kept blocks back to the system and tries again. */
static tsr_status allocate_or_trim(const tsr_settings *settings, allocate_function *how, size_t bytes, void **out)
{
    if (bytes > PTRDIFF_MAX - sizeof(header))
        return out_of_memory(bytes);
    header *front = how(settings, bytes + sizeof(header));
    if (!front && settings->pool && tsr_pool_trim(settings->pool) > 0)
        front = how(settings, bytes + sizeof(header));
    if (!front)
        return out_of_memory(bytes);
    *out = front + 1;
    return TSR_OK;
}

tsr_status tsr_allocate(tsr_context *context, size_t bytes, void **out)
{
    return allocate_or_trim(tsr_context_settings(context), allocate_block, bytes, out);
}

tsr_status tsr_allocate_data(tsr_context *context, size_t bytes, void **out)
{
    const tsr_settings *settings = tsr_context_settings(context);
    const bool pooled = settings->pool && bytes > TSR_POOL_ABOVE - sizeof(header);
    return allocate_or_trim(settings, pooled ? allocate_pooled : allocate_block, bytes, out);
}

tsr_status tsr_allocate_zeroed(tsr_context *context, size_t bytes, void **out)
{
    TSR_TRY(tsr_allocate(context, bytes, out));
    memset(*out, 0, bytes);
    return TSR_OK;
}

tsr_status tsr_allocate_array(tsr_context *context, size_t count, size_t bytes, void **out)
{
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total))
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for %zu elements of %zu bytes", count, bytes);
    return tsr_allocate_zeroed(context, total, out);
}

tsr_status tsr_reserve(tsr_context *context, void **array, size_t *capacity, size_t wanted, size_t bytes)
{
    if (wanted <= *capacity)
        return TSR_OK;
    const size_t doubled = *capacity <= SIZE_MAX / 2 ? 2 * *capacity : wanted;
    const size_t grown = wanted > doubled ? wanted : doubled;
    void *next;
    size_t total;
    if (__builtin_mul_overflow(grown, bytes, &total))
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for %zu elements of %zu bytes", grown, bytes);
    TSR_TRY(tsr_allocate(context, total, &next));
    if (*array)
        memcpy(next, *array, *capacity * bytes);
    tsr_release(context, *array);
    *array = next;
    *capacity = grown;
    return TSR_OK;
}

void tsr_release(tsr_context *context, void *memory)
{
    if (!memory)
        return;
    const tsr_settings *settings = tsr_context_settings(context);
    header *front = (header *)memory - 1;
    if (front->pooled)
        tsr_pool_give(settings->pool, front, front->bytes);
    else
        settings->allocator.release(settings->allocator.user, front, front->bytes);
}
