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

/** a / b rounded up, for a >= 0 and b > 0; does not overflow. */
static inline int64_t tsr_ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

#endif
