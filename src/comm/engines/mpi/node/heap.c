
#include "comm/engines/mpi/node/heap.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <stdbool.h>
#include <sys/mman.h>

#define PAGE ((size_t)4096)

/* Blocks of at least this many bytes keep their pages when they are freed, within what the context
 * allows, or give them back. To touch pages that were given back costs as much as a move. */
#define LARGE ((size_t)1 << 20)

struct tsr_mpi_block {
    tsr_mpi_block *next;
    size_t begin, end;
    const int32_t *left; /* retired: see tsr_mpi_heap_retire(); else NULL */
    int32_t count;
    uint64_t kept; /* 0: in use; else it is kept: heap->turns when that began */
};

void tsr_mpi_heap_init(tsr_mpi_heap *heap, tsr_context *context, void *base, size_t bytes, size_t most_kept)
{
    *heap = (tsr_mpi_heap){.context = context, .base = base, .bytes = bytes, .most_kept = most_kept};
}

void tsr_mpi_heap_finish(tsr_mpi_heap *heap)
{
    tsr_mpi_heap_trim(heap);
    while (heap->blocks) {
        tsr_mpi_block *block = heap->blocks;
        heap->blocks = block->next;
        tsr_release(heap->context, block);
    }
}

static size_t bytes_of(const tsr_mpi_block *block)
{
    return block->end - block->begin;
}

/* Removes the block at `*link`; a large one gives its pages back. */
static void drop_block(tsr_mpi_heap *heap, tsr_mpi_block **link)
{
    tsr_mpi_block *block = *link;
    *link = block->next;
    if (block->kept) {
        heap->kept -= bytes_of(block);
        tsr_keeper_drop(heap->context, bytes_of(block));
    }
    if (bytes_of(block) >= LARGE)
        madvise(heap->base + block->begin, bytes_of(block), MADV_REMOVE);
    tsr_release(heap->context, block);
}

/* The link to the block that has been kept longest; NULL: none is kept. */
static tsr_mpi_block **find_oldest(tsr_mpi_heap *heap)
{
    tsr_mpi_block **oldest = NULL;
    for (tsr_mpi_block **link = &heap->blocks; *link; link = &(*link)->next)
        if ((*link)->kept && (!oldest || (*link)->kept < (*oldest)->kept))
            oldest = link;
    return oldest;
}

size_t tsr_mpi_heap_trim(tsr_mpi_heap *heap)
{
    size_t bytes = 0;
    for (tsr_mpi_block **link = &heap->blocks; *link;) {
        if ((*link)->kept) {
            bytes += bytes_of(*link);
            drop_block(heap, link);
        } else {
            link = &(*link)->next;
        }
    }
    return bytes;
}

static bool has_room(tsr_mpi_heap *heap, size_t bytes)
{
    return bytes <= heap->most_kept - heap->kept && tsr_keeper_keep(heap->context, bytes);
}

/* True if a block of `bytes` bytes may be kept; older ones are dropped for it. */
static bool may_keep(tsr_mpi_heap *heap, size_t bytes)
{
    if (bytes < LARGE || bytes > heap->most_kept)
        return false;
    while (!has_room(heap, bytes)) {
        tsr_mpi_block **const oldest = find_oldest(heap);
        if (!oldest)
            return false;
        drop_block(heap, oldest);
    }
    heap->kept += bytes;
    return true;
}

/* The smallest kept block that is large enough, and at most an eighth too large; NULL: none. */
static tsr_mpi_block *find_kept(const tsr_mpi_heap *heap, size_t wanted)
{
    tsr_mpi_block *best = NULL;
    for (tsr_mpi_block *block = heap->blocks; block; block = block->next)
        if (block->kept && bytes_of(block) >= wanted && bytes_of(block) - wanted <= wanted / 8 &&
            (!best || bytes_of(block) < bytes_of(best)))
            best = block;
    return best;
}

/* A kept block, which is in use from now on; NULL: none fits. */
static tsr_mpi_block *take_kept(tsr_mpi_heap *heap, size_t wanted)
{
    tsr_mpi_block *const block = wanted >= LARGE ? find_kept(heap, wanted) : NULL;
    if (wanted >= LARGE)
        tsr_keeper_take(heap->context, block ? bytes_of(block) : 0);
    if (block) {
        block->kept = 0;
        heap->kept -= bytes_of(block);
    }
    return block;
}

static void sweep_retired(tsr_mpi_heap *heap)
{
    for (tsr_mpi_block **link = &heap->blocks; *link;) {
        const tsr_mpi_block *block = *link;
        if (block->left && __atomic_load_n(block->left, __ATOMIC_ACQUIRE) == block->count)
            drop_block(heap, link);
        else
            link = &(*link)->next;
    }
}

/* The offset of the first gap of `bytes` bytes; `*link` becomes the place in the list for a block
 * there. */
static size_t find_gap(tsr_mpi_heap *heap, size_t bytes, tsr_mpi_block ***link)
{
    size_t at = 0;
    *link = &heap->blocks;
    while (**link && (**link)->begin - at < bytes) {
        at = (**link)->end;
        *link = &(**link)->next;
    }
    return at;
}

static bool is_room(const tsr_mpi_heap *heap, size_t at, size_t wanted, tsr_mpi_block *const *link)
{
    return *link || (at <= heap->bytes && heap->bytes - at >= wanted);
}

/* Finds a gap; if there is none, gives up all kept blocks and tries again. */
static bool find_room(tsr_mpi_heap *heap, size_t wanted, size_t *at, tsr_mpi_block ***link)
{
    *at = find_gap(heap, wanted, link);
    if (is_room(heap, *at, wanted, *link))
        return true;
    tsr_mpi_heap_trim(heap);
    *at = find_gap(heap, wanted, link);
    return is_room(heap, *at, wanted, *link);
}

tsr_status tsr_mpi_heap_alloc(tsr_mpi_heap *heap, size_t bytes, void **out)
{
    tsr_mpi_block *block, **link;
    size_t at;
    sweep_retired(heap);
    const size_t wanted = bytes == 0 ? PAGE : bytes <= heap->bytes ? (bytes + PAGE - 1) & ~(PAGE - 1) : SIZE_MAX;
    block = take_kept(heap, wanted);
    if (block) {
        *out = heap->base + block->begin;
        return TSR_OK;
    }
    if (!find_room(heap, wanted, &at, &link))
        return tsr_status_set(TSR_ERROR_MEMORY, "mpi: no memory for %zu bytes: this rank shares %zu with its node",
                              bytes, heap->bytes);
    TSR_TRY(tsr_allocate(heap->context, sizeof *block, (void **)&block));
    *block = (tsr_mpi_block){.next = *link, .begin = at, .end = at + wanted};
    *link = block;
    *out = heap->base + at;
    return TSR_OK;
}

static tsr_mpi_block **find_link(tsr_mpi_heap *heap, const void *memory)
{
    const size_t begin = (size_t)((const char *)memory - heap->base);
    tsr_mpi_block **link = &heap->blocks;
    while (*link && (*link)->begin != begin)
        link = &(*link)->next;
    return link;
}

void tsr_mpi_heap_free(tsr_mpi_heap *heap, void *memory)
{
    tsr_mpi_block *const block = *find_link(heap, memory);
    if (!block || block->kept)
        return;
    if (may_keep(heap, bytes_of(block)))
        block->kept = ++heap->turns;
    else
        drop_block(heap, find_link(heap, memory));
}

void tsr_mpi_heap_retire(tsr_mpi_heap *heap, void *memory, const int32_t *left, int32_t count)
{
    tsr_mpi_block **link = find_link(heap, memory);
    if (!*link)
        return;
    (*link)->left = left;
    (*link)->count = count;
}
