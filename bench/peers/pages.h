/* Memory like that of Tessera's tensors (tsr_allocate()): large blocks lie on pages of 2 MiB, if
 * the system provides them. */
#ifndef PEERS_PAGES_H
#define PEERS_PAGES_H

#include <stdlib.h>
#include <sys/mman.h>

#define SMALL_PAGE ((size_t)4 << 10)
#define LARGE_PAGE ((size_t)2 << 20)

/** Allocates memory, which free() frees; NULL if there is none. A large block is rounded up to
 * whole large pages, since other data must not share its last one. */
static inline void *allocate_pages(size_t bytes)
{
    const size_t page = bytes >= 2 * LARGE_PAGE ? LARGE_PAGE : SMALL_PAGE;
    const size_t whole = (bytes + page - 1) / page * page;
    void *const at = aligned_alloc(page, whole);
    if (at && page == LARGE_PAGE)
        (void)madvise(at, whole, MADV_HUGEPAGE);
    return at;
}

#endif
