/** Arithmetic of sizes that tells of an overflow, and small integer helpers. Pure. */
#ifndef TSR_BASE_CHECKED_H
#define TSR_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** a * b in `*out`. False on overflow or if a factor is negative: `*out` is left alone then. */
static inline bool tsr_multiply(int64_t a, int64_t b, int64_t *out)
{
    int64_t product;
    if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product))
        return false;
    *out = product;
    return true;
}

/** a + b in `*out`. False on overflow or if a term is negative: `*out` is left alone then. */
static inline bool tsr_add_sizes(int64_t a, int64_t b, int64_t *out)
{
    int64_t sum;
    if (a < 0 || b < 0 || __builtin_add_overflow(a, b, &sum))
        return false;
    *out = sum;
    return true;
}

/** True if a shape has no elements. Its other dims may be very long, so that their product is not
 * asked for. */
static inline bool tsr_shape_is_empty(int ndim, const int64_t *shape)
{
    for (int dim = 0; dim < ndim; dim++)
        if (shape[dim] == 0)
            return true;
    return false;
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

/** Bytes of a cache line. Parts of one allocation that different threads write begin at multiples
 * of it. */
#define TSR_LINE ((size_t)64)

/** Bytes at whose multiples an element of any dtype may begin. */
#define TSR_ALIGNMENT ((size_t)16)

/** The least multiple of `multiple`, a power of two, that is at least `bytes`. */
static inline size_t tsr_round_up(size_t bytes, size_t multiple)
{
    return (bytes + multiple - 1) & ~(multiple - 1);
}

/** The greatest multiple of `multiple`, a power of two, that is at most `bytes`. */
static inline size_t tsr_round_down(size_t bytes, size_t multiple)
{
    return bytes & ~(multiple - 1);
}

/** a / b rounded up, for a >= 0 and b > 0; does not overflow. */
static inline int64_t tsr_ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

#endif
