/* Memory as Tessera's tensors have it (tsr_allocate()): what is large lies on pages of 2 MiB, where the system gives them. */
#ifndef PEERS_PAGES_H
#define PEERS_PAGES_H

#include <stdlib.h>
#include <sys/mman.h>

#define SMALL_PAGE ((size_t)4 << 10)
#define LARGE_PAGE ((size_t)2 << 20)

/** Freed by free(); NULL where there is no memory. Whole pages only are asked to be large, as what lies behind them belongs to others. */
static inline void *allocate_pages(size_t bytes)
{
    const size_t page = bytes >= 2 * LARGE_PAGE ? LARGE_PAGE : SMALL_PAGE;
    const size_t whole = (bytes + page - 1) / page * page;
    void *const at = aligned_alloc(page, whole);
    if (at != NULL && page == LARGE_PAGE)
        (void)madvise(at, whole, MADV_HUGEPAGE);
    return at;
}

#endif
