/** Memory of whole pages, straight from the system: for blocks so large that their pages are their
 * main cost. Thread-safe. */
#ifndef TSR_BASE_MEMORY_PAGES_H
#define TSR_BASE_MEMORY_PAGES_H

#include <stddef.h>

/** Bytes of a huge page: a block of at least this size asks the system for some. */
#define TSR_HUGE_PAGE ((size_t)2 << 20)

/** The size in bytes of the block that is made for `bytes`: whole pages. */
size_t tsr_pages_round(size_t bytes);

/** A block of `bytes`, a size that tsr_pages_round() returned; its content is undefined. It begins
 * at a page; from TSR_HUGE_PAGE bytes on it begins at a multiple of TSR_HUGE_PAGE, on huge pages if
 * the system gives them. NULL: there is no memory. */
void *tsr_pages_map(size_t bytes);

/** Gives a block of tsr_pages_map() back to the system; `bytes` is its size. */
void tsr_pages_unmap(void *pages, size_t bytes);

/** Lets the system take the pages when it runs short of memory; their content is lost. A page that
 * is written to before it is taken stays, without a page fault. */
void tsr_pages_offer(void *pages, size_t bytes);

/** Makes AddressSanitizer report any access to the bytes; does nothing in other builds. */
void tsr_pages_poison(void *pages, size_t bytes);

/** Undoes tsr_pages_poison(). */
void tsr_pages_unpoison(void *pages, size_t bytes);

#endif
