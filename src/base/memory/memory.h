/** Memory from a context's allocator: aligned to 64 bytes, its size remembered. Thread-safe as the
 * allocator is. */
#ifndef TSR_BASE_MEMORY_MEMORY_H
#define TSR_BASE_MEMORY_MEMORY_H

#include <tessera/sys/memory.h>

/** tsr_allocate(), with all bytes 0. */
tsr_status tsr_allocate_zeroed(tsr_context *context, size_t bytes, void **out);

/** `count` elements of `bytes` bytes each, all bytes 0. TSR_ERROR_MEMORY also if the product
 * overflows. */
tsr_status tsr_allocate_array(tsr_context *context, size_t count, size_t bytes, void **out);

/** Grows an array to hold at least `wanted` elements of `bytes` bytes each, to double its capacity
 * at least; keeps its elements. A new array starts as NULL with `*capacity` 0. */
tsr_status tsr_reserve(tsr_context *context, void **array, size_t *capacity, size_t wanted, size_t bytes);

#endif
