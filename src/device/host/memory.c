#include "device/host/memory.h"

#include <stdlib.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#define ALIGNMENT 64
/* Blocks of at least HUGE_THRESHOLD bytes ask for huge pages: with pages of 4 KiB, a walk through a
 * tensor could miss the TLB at every row. */
#define HUGE_PAGE      ((size_t)2 << 20)
#define HUGE_THRESHOLD (2 * HUGE_PAGE)

tsr_status tsr_host_count(void *self, int *count, const char **reason)
{
    (void)self;
    *count = 1;
    *reason = NULL;
    return TSR_OK;
}

tsr_status tsr_host_alloc(void *self, int index, size_t bytes, tsr_stream stream, void **out)
{
    void *memory;
    const size_t alignment = bytes >= HUGE_THRESHOLD ? HUGE_PAGE : ALIGNMENT;
    (void)self, (void)index, (void)stream;
    if (posix_memalign(&memory, alignment, bytes > 0 ? bytes : 1) != 0)
        return tsr_status_set(TSR_ERROR_MEMORY, "host device: no memory for %zu bytes", bytes);
#if defined(MADV_HUGEPAGE)
    /* Whole huge pages only; the system may refuse the advice, which does no harm. */
    if (alignment == HUGE_PAGE)
        (void)madvise(memory, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#endif
    *out = memory;
    return TSR_OK;
}

void tsr_host_free(void *self, int index, void *memory, size_t bytes, tsr_stream stream)
{
    (void)self, (void)index, (void)bytes, (void)stream;
    free(memory);
}
