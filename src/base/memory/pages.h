/** Memory of whole pages, straight from the system: for blocks so large that what pages cost is what they cost. Thread-safe. */
#ifndef TSR_BASE_MEMORY_PAGES_H
#define TSR_BASE_MEMORY_PAGES_H

#include <stddef.h>

/** What the system can be asked for as one page, where a block is large enough to hold one. */
#define TSR_HUGE_PAGE ((size_t)2 << 20)

/** So large a block is made for at least `bytes`: whole pages. */
size_t tsr_pages_round(size_t bytes);

/** `bytes`, a size that tsr_pages_round() gave, of any content: on a page's boundary, from TSR_HUGE_PAGE on at a multiple of that,
 * and on pages of that size where the system gives some. NULL: there is no memory. */
void *tsr_pages_map(size_t bytes);

/** Gives back what tsr_pages_map() gave for as many bytes. */
void tsr_pages_unmap(void *pages, size_t bytes);

/** The system may take the pages when it runs short; whoever writes to them first keeps them, at no page fault. Their content
 * is lost. */
void tsr_pages_offer(void *pages, size_t bytes);

/** To the address sanitizer the bytes are nobody's; and somebody's again. Else nothing. */
void tsr_pages_poison(void *pages, size_t bytes);
void tsr_pages_unpoison(void *pages, size_t bytes);

#endif
