/** Sizes that say when they overflow, and small integer helpers. Pure. */
#ifndef TSR_BASE_CHECKED_H
#define TSR_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** False on overflow or a negative factor; `*out` is then left alone. */
static inline bool tsr_multiply(int64_t a, int64_t b, int64_t *out)
{
    int64_t product;
    if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product))
        return false;
    *out = product;
    return true;
}

static inline bool tsr_add(int64_t a, int64_t b, int64_t *out)
{
    int64_t sum;
    if (a < 0 || b < 0 || __builtin_add_overflow(a, b, &sum))
        return false;
    *out = sum;
    return true;
}

static inline int64_t tsr_min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t tsr_max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/** The larger of two numbers of bytes. */
static inline size_t tsr_max_bytes(size_t a, size_t b)
{
    return a > b ? a : b;
}

/** What the parts of one allocation begin at multiples of, in bytes: a cache line, so that threads which write different parts do not share
 * one. */
#define TSR_LINE ((size_t)64)

/** Every dtype may begin at multiples of so many bytes. */
#define TSR_ALIGNMENT ((size_t)16)

/** `bytes` or the next multiple of a power of two. */
static inline size_t tsr_round_up(size_t bytes, size_t multiple)
{
    return (bytes + multiple - 1) & ~(multiple - 1);
}

/** `bytes` or the last multiple of a power of two before it. */
static inline size_t tsr_round_down(size_t bytes, size_t multiple)
{
    return bytes & ~(multiple - 1);
}

/** a >= 0, b > 0; does not overflow. */
static inline int64_t tsr_ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

#endif
