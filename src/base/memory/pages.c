#include "base/memory/pages.h"

#include <stdint.h>
#include <stdlib.h>

#if defined(__linux__)
#include <sys/mman.h>
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

/* Blocks are rounded to 4 KiB, the page of most systems; from LARGE_BYTES on to 64 KiB, which is
 * whole pages on every system. */
#define SMALL_GRAIN ((size_t)4 << 10)
#define LARGE_GRAIN ((size_t)64 << 10)
#define LARGE_BYTES ((size_t)1 << 20)

size_t tsr_pages_round(size_t bytes)
{
    const size_t grain = bytes < LARGE_BYTES ? SMALL_GRAIN : LARGE_GRAIN;
    return (bytes + grain - 1) / grain * grain;
}

/* Under AddressSanitizer blocks come from the C library, so that it sees where they end and which
 * are leaked. */
#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)

static char *map_anywhere(size_t bytes)
{
    void *const pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

/* The system aligns to its small pages: a huge page more is mapped than is wanted, and the ends are
 * unmapped again. */
static void *map_aligned(size_t bytes)
{
    char *const wide = map_anywhere(bytes + TSR_HUGE_PAGE);
    if (!wide)
        return NULL;
    const size_t before = -(uintptr_t)wide % TSR_HUGE_PAGE;
    if (before > 0)
        munmap(wide, before);
    munmap(wide + before + bytes, TSR_HUGE_PAGE - before);
    return wide + before;
}

void *tsr_pages_map(size_t bytes)
{
    if (bytes < TSR_HUGE_PAGE)
        return map_anywhere(bytes);
    void *const pages = map_aligned(bytes);
#ifdef MADV_HUGEPAGE
    /* Fails where huge pages are switched off: the block has small pages then. */
    if (pages)
        (void)madvise(pages, bytes / TSR_HUGE_PAGE * TSR_HUGE_PAGE, MADV_HUGEPAGE);
#endif
    return pages;
}

void tsr_pages_unmap(void *pages, size_t bytes)
{
    munmap(pages, bytes);
}

#else

void *tsr_pages_map(size_t bytes)
{
    void *pages;
    return posix_memalign(&pages, bytes < TSR_HUGE_PAGE ? SMALL_GRAIN : TSR_HUGE_PAGE, bytes) == 0 ? pages : NULL;
}

void tsr_pages_unmap(void *pages, size_t bytes)
{
    (void)bytes;
    free(pages);
}

#endif

void tsr_pages_offer(void *pages, size_t bytes)
{
#if defined(__linux__) && defined(MADV_FREE)
    /* Fails for locked memory, whose pages stay. */
    (void)madvise(pages, bytes, MADV_FREE);
#else
    (void)pages, (void)bytes;
#endif
}

void tsr_pages_poison(void *pages, size_t bytes)
{
#ifdef __SANITIZE_ADDRESS__
    __asan_poison_memory_region(pages, bytes);
#else
    (void)pages, (void)bytes;
#endif
}

void tsr_pages_unpoison(void *pages, size_t bytes)
{
#ifdef __SANITIZE_ADDRESS__
    __asan_unpoison_memory_region(pages, bytes);
#else
    (void)pages, (void)bytes;
#endif
}
