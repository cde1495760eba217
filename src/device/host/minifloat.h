/**
 * The narrow floating types and f32, one element at a time, in integer arithmetic that compilers
 * vectorise.
 *
 * A narrow type has a sign, exponent bits with a bias, and M mantissa bits. Widening is exact.
 * Narrowing rounds once to nearest even; values past the largest number become infinity, or NaN in
 * a type without infinity; every NaN becomes the positive quiet NaN. For a subnormal, the processor
 * rounds: a power of two is added whose last bit is worth the type's smallest subnormal.
 */
#ifndef TSR_DEVICE_HOST_MINIFLOAT_H
#define TSR_DEVICE_HOST_MINIFLOAT_H

#include <stdint.h>
#include <string.h>

/* A compiler for devices must be told which functions run on devices. */
#ifndef MINIFLOAT_CALL
#define MINIFLOAT_CALL static inline
#endif

#define F32_NAN      UINT32_C(0x7fc00000)
#define F32_INFINITY UINT32_C(0x7f800000)
#define F64_NAN      UINT64_C(0x7ff8000000000000)

MINIFLOAT_CALL uint32_t bits_of_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

MINIFLOAT_CALL float f32_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

MINIFLOAT_CALL uint64_t bits_of_f64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

MINIFLOAT_CALL double f64_of_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/**
 * a < b ? yes : no, for a and b below 2^31. By a mask, because compilers move arithmetic into a
 * branch and then leave the loop scalar.
 */
MINIFLOAT_CALL uint32_t choose_less(uint32_t a, uint32_t b, uint32_t yes, uint32_t no)
{
    const uint32_t mask = (uint32_t)((int32_t)(a - b) >> 31);
    return no ^ ((yes ^ no) & mask);
}

MINIFLOAT_CALL float canonical_f32(float value)
{
    return value != value ? f32_of_bits(F32_NAN) : value;
}

MINIFLOAT_CALL double canonical_f64(double value)
{
    return value != value ? f64_of_bits(F64_NAN) : value;
}

/** The parameters of a narrow type; always a constant, so that compilers fold it away. `special` is
 * the least magnitude that is not a finite number: infinity, or NaN in a type without infinity. */
typedef struct minifloat {
    unsigned bits, mantissa, bias;
    uint32_t special, nan;
    uint32_t overflow; /* the code of a magnitude past the largest number */
    int overflow_keeps_sign;
} minifloat;

#if defined(__cplusplus)
#define MINIFLOAT(...) (minifloat{__VA_ARGS__})
#else
#define MINIFLOAT(...) ((minifloat){__VA_ARGS__})
#endif

#define MINIFLOAT_F16    MINIFLOAT(16, 10, 15, 0x7c00, 0x7e00, 0x7c00, 1)
#define MINIFLOAT_F8E4M3 MINIFLOAT(8, 3, 7, 0x7f, 0x7f, 0x7f, 0)
#define MINIFLOAT_F8E5M2 MINIFLOAT(8, 2, 15, 0x7c, 0x7e, 0x7c, 1)

MINIFLOAT_CALL float minifloat_widen(minifloat type, uint32_t code)
{
    const unsigned shift = 23 - type.mantissa;
    const uint32_t sign_bit = UINT32_C(1) << (type.bits - 1);
    const uint32_t magnitude = code & (sign_bit - 1), sign = (code & sign_bit) << (32 - type.bits);
    const uint32_t rebias = (127 - type.bias) << 23;
    const uint32_t normal = (magnitude << shift) + rebias;
    /* A subnormal has the smallest normal's exponent but no leading 1; it is given one, which the
     * subtraction takes away. */
    const uint32_t one = UINT32_C(1) << 23;
    const uint32_t subnormal = bits_of_f32(f32_of_bits(normal + one) - f32_of_bits(rebias + one));
    const uint32_t special =
        type.special == type.nan ? F32_NAN : choose_less(type.special, magnitude, F32_NAN, F32_INFINITY);
    const uint32_t finite = choose_less(magnitude, UINT32_C(1) << type.mantissa, subnormal, normal);
    return f32_of_bits(sign | choose_less(magnitude, type.special, finite, special));
}

MINIFLOAT_CALL uint32_t minifloat_narrow(minifloat type, float value)
{
    const unsigned shift = 23 - type.mantissa;
    const uint32_t bits = bits_of_f32(value);
    const uint32_t magnitude = bits & UINT32_C(0x7fffffff), sign = (bits >> 31) << (type.bits - 1);
    const uint32_t smallest_normal = (128 - type.bias) << 23;
    const uint32_t to_even = (UINT32_C(1) << (shift - 1)) - 1 + ((magnitude >> shift) & 1);
    const uint32_t normal = (magnitude - ((127 - type.bias) << 23) + to_even) >> shift;
    const uint32_t magic = (151 - type.bias - type.mantissa) << 23;
    const uint32_t subnormal = bits_of_f32(f32_of_bits(magnitude) + f32_of_bits(magic)) - magic;
    const uint32_t rounded = choose_less(magnitude, smallest_normal, subnormal, normal);
    const uint32_t overflow = type.overflow | (type.overflow_keeps_sign ? sign : 0);
    const uint32_t number = choose_less(rounded, type.special, sign | rounded, overflow);
    return choose_less(F32_INFINITY, magnitude, type.nan, number);
}

MINIFLOAT_CALL float f16_widen(uint32_t code)
{
    return minifloat_widen(MINIFLOAT_F16, code);
}

MINIFLOAT_CALL uint32_t f16_narrow(float value)
{
    return minifloat_narrow(MINIFLOAT_F16, value);
}

MINIFLOAT_CALL float f8e4m3_widen(uint32_t code)
{
    return minifloat_widen(MINIFLOAT_F8E4M3, code);
}

MINIFLOAT_CALL uint32_t f8e4m3_narrow(float value)
{
    return minifloat_narrow(MINIFLOAT_F8E4M3, value);
}

MINIFLOAT_CALL float f8e5m2_widen(uint32_t code)
{
    return minifloat_widen(MINIFLOAT_F8E5M2, code);
}

MINIFLOAT_CALL uint32_t f8e5m2_narrow(float value)
{
    return minifloat_narrow(MINIFLOAT_F8E5M2, value);
}

/* bf16 is the upper half of an f32: no exponent to adjust, subnormals round like the rest. */
MINIFLOAT_CALL float bf16_widen(uint32_t code)
{
    return f32_of_bits(code << 16);
}

MINIFLOAT_CALL uint32_t bf16_narrow(float value)
{
    const uint32_t bits = bits_of_f32(value);
    const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    return choose_less(F32_INFINITY, bits & UINT32_C(0x7fffffff), 0x7fc0, rounded);
}

/**
 * Rounds to odd: the next f32 towards zero, with its last bit set if anything was cut off. Rounding
 * the result to a type of at most 22 mantissa bits gives the same as rounding `value` itself,
 * because the set bit tells on which side of a tie `value` was. (Boldo and Melquiond, "Emulation of
 * FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008.)
 */
MINIFLOAT_CALL float f32_odd_of_f64(double value)
{
    const float nearest = (float)value;
    const double back = (double)nearest, magnitude = value < 0 ? -value : value,
                 back_magnitude = back < 0 ? -back : back;
    const uint32_t bits = bits_of_f32(nearest);
    const uint32_t cut = back_magnitude > magnitude ? bits - 1 : bits;
    return f32_of_bits(back == value || value != value ? bits : cut | 1);
}

#endif
