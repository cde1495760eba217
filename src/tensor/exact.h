/**
 * Exact sums of numbers and of their squares, in fixed point with room for every f64 and its square
 * (a Kulisch accumulator).
 *
 * Such a sum does not depend on the order of its terms or on how they are spread over ranks: it is
 * rounded once, at the end. Pure; nothing allocates.
 */
#ifndef TSR_TENSOR_EXACT_H
#define TSR_TENSOR_EXACT_H

#include <stdbool.h>
#include <stdint.h>

/** Digits of 32 bits: from 2^-2148, the square of the smallest f64, to 2^2048 and 2^63 terms. */
#define TSR_EXACT_DIGITS 136

/** A sum; begins as all zero. All fields are int64_t, and those of a sum over several ranks are the
 * sums of the ranks' fields after tsr_exact_carry(). */
typedef struct tsr_exact {
    int64_t digits[TSR_EXACT_DIGITS]; /**< the lowest first; several terms may be in a digit before a carry */
    int64_t nans, plus, minus;        /**< how many terms were NaN, infinity and minus infinity */
    int64_t pending;                  /**< words added since the last carry, at most */
} tsr_exact;

/** The number of int64_t of a sum. */
#define TSR_EXACT_WORDS (TSR_EXACT_DIGITS + 4)

/** Adds `count` numbers, at most TSR_EXACT_PIECE, or their squares. */
void tsr_exact_add_doubles(tsr_exact *sum, const double *values, int64_t count, bool squares);

/** The most numbers that are added in one call. */
#define TSR_EXACT_PIECE 1024

/** Mantissas of narrow numbers by exponent, which are cheaper to add to than digits; begins as all
 * zero, and is emptied into a sum. */
typedef struct tsr_exact_bins {
    int64_t at[2048];
    int64_t pending; /**< numbers in the bins */
} tsr_exact_bins;

/** The most numbers in bins: mantissas of 48 bits fit with them into 63. */
#define TSR_EXACT_BINNED (INT64_C(1) << 14)

/** tsr_exact_add_doubles() by way of bins, for values of narrow dtypes: at most 24 significant
 * bits, and magnitudes from 2^-149 to below 2^128. */
void tsr_exact_add_narrow(tsr_exact *sum, tsr_exact_bins *bins, const double *values, int64_t count, bool squares);

/** Adds what is in the bins to the sum. */
void tsr_exact_empty_bins(tsr_exact *sum, tsr_exact_bins *bins);

/** Adds the integer `magnitude`, negated if `negative`, or its square. */
void tsr_exact_add_integer(tsr_exact *sum, uint64_t magnitude, bool negative, bool square);

/** Makes all digits but the highest lie in [0, 2^32), without changing the sum. */
void tsr_exact_carry(tsr_exact *sum);

/** The sum, rounded to nearest even; 0 is +0. NaN if there was one, or both infinities. */
double tsr_exact_round(const tsr_exact *sum);

/** The square root of a sum of squares: the sum is rounded to 53 bits, and its root again. */
double tsr_exact_root(const tsr_exact *sum);

#endif
