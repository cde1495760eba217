#include "tensor/exact.h"

#include <math.h>
#include <string.h>

/* The lowest bit of digit 0 stands for 2^-LOWEST. */
#define LOWEST 2148U

/* A word changes a digit by less than 2^33, so this many fit. */
#define MOST_PENDING (INT64_C(1) << 29)

/* Adds word * 2^(position - LOWEST), negated if `negative`. */
static inline void add_word(tsr_exact *sum, uint64_t word, unsigned position, bool negative)
{
    const unsigned shift = position % 32;
    const uint64_t low = (word & UINT32_MAX) << shift, high = (word >> 32) << shift;
    const int64_t mask = -(int64_t)negative;
    int64_t *digits = &sum->digits[position / 32];
    digits[0] += ((int64_t)(low & UINT32_MAX) ^ mask) - mask;
    digits[1] += ((int64_t)((low >> 32) + (high & UINT32_MAX)) ^ mask) - mask;
    digits[2] += ((int64_t)(high >> 32) ^ mask) - mask;
}

/* Adds word * word * 2^(position - LOWEST). */
static inline void add_square(tsr_exact *sum, uint64_t word, unsigned position)
{
    const uint64_t low = word & UINT32_MAX, high = word >> 32, mixed = low * high;
    const uint64_t lower = low * low + (mixed << 33);
    add_word(sum, lower, position, false);
    add_word(sum, high * high + (mixed >> 31) + (lower < low * low), position + 64, false);
}

/* Carries before `count` more words may be too many. */
static inline void expect_words(tsr_exact *sum, int64_t count)
{
    if (sum->pending + count >= MOST_PENDING)
        tsr_exact_carry(sum);
    sum->pending += count;
}

static void add_special(tsr_exact *sum, uint64_t fraction, bool negative)
{
    sum->nans += fraction != 0;
    sum->plus += fraction == 0 && !negative;
    sum->minus += fraction == 0 && negative;
}

/* An f64: where it is finite, mantissa * 2^(exponent - 1075), and a subnormal has exponent 1. */
typedef struct parts {
    uint64_t fraction, mantissa;
    unsigned field, exponent;
    bool negative;
} parts;

static inline parts take_apart(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const unsigned field = (unsigned)(bits >> 52 & 0x7ff);
    const uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    return (parts){fraction, fraction | (uint64_t)(field > 0) << 52, field, field > 0 ? field : 1, bits >> 63};
}

static inline void add_double(tsr_exact *sum, double value, bool square)
{
    const parts p = take_apart(value);
    if (p.field == 0x7ff)
        add_special(sum, p.fraction, p.negative && !square);
    else if (square)
        add_square(sum, p.mantissa, 2 * p.exponent + LOWEST - 2 * 1075);
    else
        add_word(sum, p.mantissa, p.exponent + LOWEST - 1075, p.negative);
}

void tsr_exact_add_doubles(tsr_exact *sum, const double *values, int64_t count, bool squares)
{
    expect_words(sum, 2 * count);
    for (int64_t i = 0; i < count; i++)
        add_double(sum, values[i], squares);
}

void tsr_exact_add_integer(tsr_exact *sum, uint64_t magnitude, bool negative, bool square)
{
    expect_words(sum, 2);
    if (square)
        add_square(sum, magnitude, LOWEST);
    else
        add_word(sum, magnitude, LOWEST, negative);
}

/* The highest 48 bits of a mantissa are all that a product of two narrow numbers has. */
#define NARROW_SHIFT 5

void tsr_exact_add_narrow(tsr_exact *sum, tsr_exact_bins *bins, const double *values, int64_t count, bool squares)
{
    bins->pending += count;
    for (int64_t i = 0; i < count; i++) {
        const parts p = take_apart(squares ? values[i] * values[i] : values[i]);
        const int64_t mask = -(int64_t)p.negative;
        if (p.field == 0x7ff)
            add_special(sum, p.fraction, p.negative);
        else
            bins->at[p.field] += ((int64_t)(p.mantissa >> NARROW_SHIFT) ^ mask) - mask;
    }
    if (bins->pending + TSR_EXACT_PIECE > TSR_EXACT_BINNED)
        tsr_exact_empty_bins(sum, bins);
}

/* Field 0 has zeros alone: no narrow number nor its square is a subnormal f64. */
void tsr_exact_empty_bins(tsr_exact *sum, tsr_exact_bins *bins)
{
    expect_words(sum, 2048);
    for (unsigned field = 1; field < 0x7ff; field++) {
        const int64_t value = bins->at[field];
        if (value != 0)
            add_word(sum, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, field + LOWEST - 1075 + NARROW_SHIFT,
                     value < 0);
    }
    memset(bins, 0, sizeof *bins);
}

void tsr_exact_carry(tsr_exact *sum)
{
    int64_t carry = 0;
    for (int i = 0; i < TSR_EXACT_DIGITS - 1; i++) {
        const int64_t digit = sum->digits[i] + carry;
        sum->digits[i] = digit & UINT32_MAX;
        carry = (digit - sum->digits[i]) / (INT64_C(1) << 32);
    }
    sum->digits[TSR_EXACT_DIGITS - 1] += carry;
    sum->pending = 0;
}

/* A finite sum is fraction * 2^exponent; the fraction is 0, or rounded to 53 bits. */
typedef struct rounded {
    double fraction;
    int exponent;
} rounded;

/* The sum's magnitude, carried; true if the sum is negative. */
static bool take_magnitude(tsr_exact *sum)
{
    tsr_exact_carry(sum);
    if (sum->digits[TSR_EXACT_DIGITS - 1] >= 0)
        return false;
    for (int i = 0; i < TSR_EXACT_DIGITS; i++)
        sum->digits[i] = -sum->digits[i];
    tsr_exact_carry(sum);
    return true;
}

static bool any_below(const int64_t *digits, int count)
{
    bool any = false;
    for (int i = 0; i < count; i++)
        any = any || digits[i] != 0;
    return any;
}

/* Takes the 64 bits from the highest set bit on, of which 11 are rounded away together with all
 * lower ones. Digit `top` is not 0 and has two below it. */
static rounded round_magnitude(const int64_t *digits, int top)
{
    const uint64_t high = (uint64_t)digits[top] << 32 | (uint64_t)digits[top - 1], low = (uint64_t)digits[top - 2];
    const int shift = __builtin_clzll(high);
    const uint64_t bits = high << shift | low << shift >> 32;
    const bool sticky = (low << shift & UINT32_MAX) != 0 || any_below(digits, top - 2);
    const uint64_t kept = bits >> 11, rest = bits & 0x7ff, half = 0x400;
    const bool up = rest > half || (rest == half && (sticky || (kept & 1) != 0));
    return (rounded){(double)(kept + up), 32 * (top - 1) - shift + 11 - (int)LOWEST};
}

/* Shifts the digits up by two, so that there are two below each. */
static rounded round_sum(const tsr_exact *given)
{
    tsr_exact sum = *given;
    const bool negative = take_magnitude(&sum);
    int64_t shifted[TSR_EXACT_DIGITS + 2] = {0};
    memcpy(shifted + 2, sum.digits, sizeof sum.digits);
    int top = TSR_EXACT_DIGITS + 1;
    while (top > 1 && shifted[top] == 0)
        top--;
    if (top == 1)
        return (rounded){0, 0};
    rounded result = round_magnitude(shifted, top);
    result.exponent -= 64;
    result.fraction = negative ? -result.fraction : result.fraction;
    return result;
}

double tsr_exact_round(const tsr_exact *sum)
{
    if (sum->nans > 0 || (sum->plus > 0 && sum->minus > 0))
        return (double)NAN;
    if (sum->plus > 0 || sum->minus > 0)
        return sum->plus > 0 ? (double)INFINITY : -(double)INFINITY;
    const rounded result = round_sum(sum);
    return ldexp(result.fraction, result.exponent);
}

double tsr_exact_root(const tsr_exact *sum)
{
    if (sum->nans > 0 || sum->plus > 0)
        return sum->nans > 0 ? (double)NAN : (double)INFINITY;
    rounded result = round_sum(sum);
    if (result.exponent % 2 != 0) {
        result.fraction *= 2;
        result.exponent--;
    }
    return ldexp(sqrt(result.fraction), result.exponent / 2);
}
