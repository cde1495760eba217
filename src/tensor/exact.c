#include "tensor/exact.h"

#include <math.h>
#include <string.h>

/* The lowest bit of digit 0 stands for 2^-LOWEST. */
#define LOWEST 2148

/* Each addition changes a digit by less than 2^33, so this many fit. */
#define MOST_PENDING (INT64_C(1) << 29)

/* Adds word * 2^(position - LOWEST), negated if `negative`. */
static inline void add_word(tsr_exact *sum, uint64_t word, int position, bool negative)
{
    const int shift = position % 32;
    const uint64_t low = (word & UINT32_MAX) << shift, high = (word >> 32) << shift;
    const int64_t sign = negative ? -1 : 1;
    int64_t *digits = &sum->digits[position / 32];
    digits[0] += sign * (int64_t)(low & UINT32_MAX);
    digits[1] += sign * (int64_t)((low >> 32) + (high & UINT32_MAX));
    digits[2] += sign * (int64_t)(high >> 32);
}

/* Adds (word * 2^(position - LOWEST))^2 * 2^LOWEST: squares begin at twice the position. */
static inline void add_square(tsr_exact *sum, uint64_t word, int position)
{
    const uint64_t low = word & UINT32_MAX, high = word >> 32;
    add_word(sum, low * low, position, false);
    add_word(sum, low * high, position + 33, false);
    add_word(sum, high * high, position + 64, false);
}

/* Counts additions, and carries in time. */
static inline void count_additions(tsr_exact *sum, int64_t count)
{
    sum->pending += count;
    if (sum->pending >= MOST_PENDING)
        tsr_exact_carry(sum);
}

static void add_special(tsr_exact *sum, uint64_t mantissa, bool negative)
{
    sum->nans += mantissa != 0;
    sum->plus += mantissa == 0 && !negative;
    sum->minus += mantissa == 0 && negative;
}

/* A finite f64 is mantissa * 2^(exponent - 1075), where a subnormal has exponent 1. */
static inline void add_double(tsr_exact *sum, double value, bool square)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const int field = (int)(bits >> 52 & 0x7ff);
    const uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1), mantissa = fraction | (uint64_t)(field > 0) << 52;
    const int exponent = (field > 0 ? field : 1) - 1075;
    if (field == 0x7ff)
        add_special(sum, fraction, bits >> 63 && !square);
    else if (square)
        add_square(sum, mantissa, 2 * exponent + LOWEST);
    else
        add_word(sum, mantissa, exponent + LOWEST, bits >> 63);
}

void tsr_exact_add_doubles(tsr_exact *sum, const double *values, int64_t count, bool squares)
{
    for (int64_t i = 0; i < count; i++) {
        add_double(sum, values[i], squares);
        count_additions(sum, 3);
    }
}

void tsr_exact_add_integer(tsr_exact *sum, uint64_t magnitude, bool negative, bool square)
{
    if (square)
        add_square(sum, magnitude, LOWEST);
    else
        add_word(sum, magnitude, LOWEST, negative);
    count_additions(sum, 3);
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
    return (rounded){(double)(kept + up), 32 * (top - 1) - shift + 11 - LOWEST};
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
