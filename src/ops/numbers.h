/** Small arithmetic of sizes. Pure. */
#ifndef TSR_OPS_NUMBERS_H
#define TSR_OPS_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

static inline int64_t tsr_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t tsr_larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/** The bytes of a workspace whose parts, of `a` and `b` bytes, are used one after the other. */
static inline size_t tsr_larger_bytes(size_t a, size_t b)
{
    return a > b ? a : b;
}

/** `bytes` or the next multiple of 64, at which every part of a workspace begins. */
static inline size_t tsr_aligned_bytes(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

#endif
