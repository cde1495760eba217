#include "comm/mpi/heap.h"

#include <sys/mman.h>
#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#define PAGE ((size_t)4096)

/* From here on a block's pages are given back, which costs as much as touching them again. */
#define LARGE ((size_t)1 << 20)

struct tsr_mpi_block {
    tsr_mpi_block *next;
    size_t begin, end;
    const int32_t *left; /* retired: see tsr_mpi_heap_retire(); else NULL */
    int32_t count;
};

void tsr_mpi_heap_init(tsr_mpi_heap *heap, tsr_context *context, void *base, size_t bytes)
{
    *heap = (tsr_mpi_heap){.context = context, .base = base, .bytes = bytes};
}

void tsr_mpi_heap_finish(tsr_mpi_heap *heap)
{
    while (heap->blocks) {
        tsr_mpi_block *block = heap->blocks;
        heap->blocks = block->next;
        tsr_release(heap->context, block);
    }
}

/* Takes the block at `*link` out. */
static void drop(tsr_mpi_heap *heap, tsr_mpi_block **link)
{
    tsr_mpi_block *block = *link;
    *link = block->next;
    if (block->end - block->begin >= LARGE)
        madvise(heap->base + block->begin, block->end - block->begin, MADV_REMOVE);
    tsr_release(heap->context, block);
}

static void sweep(tsr_mpi_heap *heap)
{
    for (tsr_mpi_block **link = &heap->blocks; *link;) {
        const tsr_mpi_block *block = *link;
        if (block->left && __atomic_load_n(block->left, __ATOMIC_ACQUIRE) == block->count)
            drop(heap, link);
        else
            link = &(*link)->next;
    }
}

/* Where a gap of so many bytes begins: after the block that `*link` follows. */
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

tsr_status tsr_mpi_heap_alloc(tsr_mpi_heap *heap, size_t bytes, void **out)
{
    tsr_mpi_block *block, **link;
    sweep(heap);
    const size_t wanted = bytes == 0 ? PAGE : bytes <= heap->bytes ? (bytes + PAGE - 1) & ~(PAGE - 1) : SIZE_MAX;
    const size_t at = find_gap(heap, wanted, &link);
    if (!*link && (at > heap->bytes || heap->bytes - at < wanted))
        return tsr_status_set(TSR_ERROR_MEMORY, "mpi: no memory for %zu bytes: this rank shares %zu with its node", bytes, heap->bytes);
    TSR_TRY(tsr_allocate(heap->context, sizeof *block, (void **)&block));
    *block = (tsr_mpi_block){.next = *link, .begin = at, .end = at + wanted};
    *link = block;
    *out = heap->base + at;
    return TSR_OK;
}

static tsr_mpi_block **find(tsr_mpi_heap *heap, const void *memory)
{
    const size_t begin = (size_t)((const char *)memory - heap->base);
    tsr_mpi_block **link = &heap->blocks;
    while (*link && (*link)->begin != begin)
        link = &(*link)->next;
    return link;
}

void tsr_mpi_heap_free(tsr_mpi_heap *heap, void *memory)
{
    tsr_mpi_block **link = find(heap, memory);
    if (*link)
        drop(heap, link);
}

void tsr_mpi_heap_retire(tsr_mpi_heap *heap, void *memory, const int32_t *left, int32_t count)
{
    tsr_mpi_block **link = find(heap, memory);
    if (!*link)
        return;
    (*link)->left = left;
    (*link)->count = count;
}
