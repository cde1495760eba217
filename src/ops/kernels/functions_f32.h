/** Functions of one f32 without branches, so that loops over them are vectorized. Multiply-adds
 * are fused where they are written so, and nowhere else, so every set of instructions gives the
 * same bits. Each comment says the error at most, in units in the last place (ulp) of the result;
 * tests/ops/test_f32_functions.c compares all f32. For kernels alone. */
#ifndef TSR_OPS_KERNELS_FUNCTIONS_F32_H
#define TSR_OPS_KERNELS_FUNCTIONS_F32_H

#include "ops/kernels/functions.h"

static inline float tsr_f32_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t tsr_f32_to_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/** x * y + z, rounded once. */
static inline float tsr_f32_fma(float x, float y, float z)
{
#if defined(__FP_FAST_FMAF) || defined(__FMA__)
    return __builtin_fmaf(x, y, z);
#else
    /* The product is exact in f64. The sum, if it is not, is rounded there to the odd one of its
     * two neighbours, so that rounding it to f32 is as rounding the exact sum: `bits`, or what is
     * before it towards 0, has a low bit of 1. */
    const double product = (double)x * y, sum = product + z, part = sum - product;
    const double lost = (product - (sum - part)) + (z - part);
    const uint64_t bits = tsr_to_bits(sum), apart = (tsr_to_bits(lost) ^ bits) >> 63;
    const double odd = tsr_from_bits((bits - apart) | 1);
    return (float)(fabs(lost) > 0 ? odd : sum);
#endif
}

/** 2^n; n, as a signed number, is from -126 to 127. Only its low 9 bits count. */
static inline float tsr_f32_power(uint32_t n)
{
    return tsr_f32_from_bits((n + 127) << 23);
}

/** Where x is beyond these bounds, a function is constant or simple. NaN stays. */
static inline float tsr_f32_within(float x, float low, float high)
{
    const float less = x > high ? high : x;
    return less < low ? low : less;
}

/** tsr_f32_within() for low < 0 < high, of NaN one of the bounds: two instructions, where compilers
 * make ten of a comparison with NaN. Signed, the bits of positive numbers ascend as these do, above
 * those of all negative numbers; unsigned, the bits of negative numbers ascend towards minus
 * infinity, above those of all positive numbers. */
static inline float tsr_f32_clamp(float x, float low, float high)
{
    const int32_t bits = (int32_t)tsr_f32_to_bits(x), most = (int32_t)tsr_f32_to_bits(high);
    const uint32_t less = (uint32_t)(bits < most ? bits : most), least = tsr_f32_to_bits(low);
    return tsr_f32_from_bits(less < least ? less : least);
}

/** |x|, or `most`, which is positive, if that is less or x is NaN: of positive numbers the bits
 * ascend as these do. */
static inline float tsr_f32_size(float x, float most)
{
    const uint32_t bits = tsr_f32_to_bits(x) & UINT32_C(0x7fffffff), bound = tsr_f32_to_bits(most);
    return tsr_f32_from_bits(bits < bound ? bits : bound);
}

/** e^r - 1 for |r| at most 0.3475. The polynomial q is within 2^-28 of (e^r - 1 - r) / r^2. */
static inline float tsr_f32_exp_rest(float r)
{
    float q = 0x1.6db648p-10f;
    q = tsr_f32_fma(q, r, 0x1.123ce0p-7f);
    q = tsr_f32_fma(q, r, 0x1.55545cp-5f);
    q = tsr_f32_fma(q, r, 0x1.55548cp-3f);
    q = tsr_f32_fma(q, r, 0.5f);
    return tsr_f32_fma(r * r, q, r);
}

/** e^(factor * x) = (1 + `*rest`) 2^n; factor is 1, -1 or 2, and the power at most 160 in size. n
 * times the first part of log 2, which has 15 bits, is exact, and so is what it leaves of the
 * power. */
static inline uint32_t tsr_f32_exp_parts(float x, float factor, float *rest)
{
    /* Adding 1.5 * 2^23 rounds to an integer, which is then in the low bits. */
    const float shifted = tsr_f32_fma(x, factor * 0x1.715476p+0f, 0x1.8p23f), n = shifted - 0x1.8p23f;
    const float left = tsr_f32_fma(n, -0x1.62e4p-1f, factor * x);
    *rest = tsr_f32_exp_rest(tsr_f32_fma(n, -0x1.7f7d1cp-20f, left));
    return tsr_f32_to_bits(shifted);
}

/** 1.1 ulp. The power of two is applied in two halves, so that it overflows or vanishes as it
 * should. */
static inline float tsr_f32_exp(float x)
{
    float rest;
    const uint32_t n = tsr_f32_exp_parts(tsr_f32_within(x, -110, 89), 1, &rest);
    const uint32_t half = (uint32_t)((int32_t)(n << 23) >> 24);
    return (1 + rest) * tsr_f32_power(half) * tsr_f32_power(n - half);
}

/** 0.9 ulp. The polynomial p is within 2^-30 of (log(1 + f) - f + f^2 / 2) / f^3. */
static inline float tsr_f32_log(float x)
{
    const float whole = x < 0x1p-126f ? x * 0x1p24f : x, less = x < 0x1p-126f ? 127 + 24 : 127;
    const uint32_t bits = tsr_f32_to_bits(whole);
    /* The mantissa is taken between sqrt(1/2) and sqrt(2). */
    const uint32_t exponent = (bits - UINT32_C(0x3f3504f3) + (UINT32_C(127) << 23)) >> 23;
    const float f = tsr_f32_from_bits(bits - (exponent << 23) + (UINT32_C(127) << 23)) - 1, z = f * f;
    const float e = (float)(int32_t)exponent - less;
    float p = 0x1.14c9a4p-4f;
    p = tsr_f32_fma(p, f, -0x1.deffd2p-4f);
    p = tsr_f32_fma(p, f, 0x1.e728b8p-4f);
    p = tsr_f32_fma(p, f, -0x1.fc07ccp-4f);
    p = tsr_f32_fma(p, f, 0x1.23322ap-3f);
    p = tsr_f32_fma(p, f, -0x1.555cccp-3f);
    p = tsr_f32_fma(p, f, 0x1.99a4f6p-3f);
    p = tsr_f32_fma(p, f, -0x1.000006p-2f);
    p = tsr_f32_fma(p, f, 0x1.555546p-2f);
    const float small = tsr_f32_fma(z, tsr_f32_fma(p, f, -0.5f), e * 0x1.7f7d1cp-20f);
    const float value = tsr_f32_fma(e, 0x1.62e4p-1f, f + small);
    const float positive = x > 0x1.fffffep127f ? x : value, zero = x == 0 ? -INFINITY : positive;
    return x >= 0 ? zero : NAN;
}

/** 1.4 ulp. Below 0.55 a polynomial in x^2, above 1 - 2 / (e^2x + 1). */
static inline float tsr_f32_tanh(float x)
{
    const float z = x * x;
    float rest, p = -0x1.9a7fdcp-8f;
    const float scale = tsr_f32_power(tsr_f32_exp_parts(tsr_f32_size(x, 10), 2, &rest));
    const float large = 1 - 2 / tsr_f32_fma(scale, rest, scale + 1);
    p = tsr_f32_fma(p, z, 0x1.592246p-6f);
    p = tsr_f32_fma(p, z, -0x1.b925d2p-5f);
    p = tsr_f32_fma(p, z, 0x1.110d1ap-3f);
    p = tsr_f32_fma(p, z, -0x1.55554ap-2f);
    const float small = tsr_f32_fma(x * z, p, x);
    return copysignf(fabsf(x) >= 0.55f ? large : small, x); /* of NaN: small, which is NaN */
}

/* Logistic functions are computed as times / (2^-64 + e^z 2^-64), of which the quotient is taken
 * by 2^-64 at last: so nothing overflows before, and what vanishes is rounded once. z is from -40,
 * below which e^z is nothing beside 1, to 110, above which the quotient vanishes also times z. */
#define TSR_LOGISTIC_LOW  (-40)
#define TSR_LOGISTIC_HIGH 110
#define TSR_LOGISTIC_TINY 0x1p-64f

/** times / (1 + e^z), where e^z = (1 + rest) 2^n. */
static inline float tsr_f32_logistic(float times, float rest, uint32_t n)
{
    const float scale = tsr_f32_power(n - 64);
    return times / tsr_f32_fma(scale, rest, scale + TSR_LOGISTIC_TINY) * TSR_LOGISTIC_TINY;
}

/** s (1 + factor (1 - s)), where s = 1 / (1 + e^z) and e^z = (1 + rest) 2^n: the slope of a
 * product with s. */
static inline float tsr_f32_logistic_slope(float factor, float rest, uint32_t n)
{
    const float scale = tsr_f32_power(n - 64), power = tsr_f32_fma(scale, rest, scale);
    const float inverse = 1 / (power + TSR_LOGISTIC_TINY);
    return inverse * tsr_f32_fma(factor, power * inverse, 1) * TSR_LOGISTIC_TINY;
}

/** 2.4 ulp. */
static inline float tsr_f32_sigmoid(float x)
{
    float rest;
    const uint32_t n = tsr_f32_exp_parts(tsr_f32_within(x, -TSR_LOGISTIC_HIGH, -TSR_LOGISTIC_LOW), -1, &rest);
    return tsr_f32_logistic(1, rest, n);
}

/** 2.6 ulp. Of minus infinity: -0. */
static inline float tsr_f32_silu(float x)
{
    float rest;
    const float clamped = tsr_f32_clamp(x, -TSR_LOGISTIC_HIGH, -TSR_LOGISTIC_LOW);
    const uint32_t n = tsr_f32_exp_parts(clamped, -1, &rest);
    const float value = tsr_f32_logistic(clamped, rest, n);
    return x <= -TSR_LOGISTIC_LOW ? value : x; /* NaN stays */
}

/** 2^-22 of the larger of 1 and the slope: it is 0 at x = -1.28. */
static inline float tsr_f32_silu_slope(float x)
{
    float rest;
    const float clamped = tsr_f32_within(x, -TSR_LOGISTIC_HIGH, -TSR_LOGISTIC_LOW);
    const uint32_t n = tsr_f32_exp_parts(clamped, -1, &rest);
    return tsr_f32_logistic_slope(clamped, rest, n);
}

/** value * e^(-size^2 / 2), for a size of at most 16, rounded once: the square is taken in two
 * parts. */
static inline float tsr_f32_times_bell(float value, float size)
{
    const float square = size * size, low = tsr_f32_fma(size, size, -square);
    const float shifted = tsr_f32_fma(square, -0x1.715476p-1f, 0x1.8p23f), n = shifted - 0x1.8p23f;
    const float left = tsr_f32_fma(square, -0.5f, n * -0x1.62e4p-1f);
    const float rest = tsr_f32_exp_rest(tsr_f32_fma(low, -0.5f, tsr_f32_fma(n, -0x1.7f7d1cp-20f, left)));
    const float scale = tsr_f32_power(tsr_f32_to_bits(shifted) + 64);
    return tsr_f32_fma(value, rest, value) * scale * 0x1p-64f;
}

/** The normal distribution's tail above `size` is e^(-size^2 / 2) w(u) / (1 + size / 4), with u =
 * 1 - 0.625 t and t = size / (1 + size / 4). This polynomial is within 2^-26 of w. */
static inline float tsr_f32_tail(float t)
{
    const float u = tsr_f32_fma(t, -0.625f, 1);
    float w = 0x1.2c3cdep-18f;
    w = tsr_f32_fma(w, u, 0x1.25105ap-16f);
    w = tsr_f32_fma(w, u, -0x1.e16b00p-15f);
    w = tsr_f32_fma(w, u, -0x1.747d7ep-12f);
    w = tsr_f32_fma(w, u, 0x1.68a0c8p-13f);
    w = tsr_f32_fma(w, u, 0x1.b6f0d4p-8f);
    w = tsr_f32_fma(w, u, 0x1.f1776cp-6f);
    w = tsr_f32_fma(w, u, 0x1.50e432p-4f);
    w = tsr_f32_fma(w, u, 0x1.426780p-3f);
    return tsr_f32_fma(w, u, 0x1.c9b2a0p-3f);
}

/** 3.8 ulp, also where gelu is nearly 0. Of minus infinity: -0. With h(|x|) = |x| times the tail
 * above |x|, gelu is x - h(|x|) above 0, else -h(|x|). */
static inline float tsr_f32_gelu_erf(float x)
{
    const float size = tsr_f32_size(x, 16), t = size / tsr_f32_fma(size, 0.25f, 1);
    return (x < 0 ? -0.0f : x) - tsr_f32_times_bell(t * tsr_f32_tail(t), size);
}

/** 2^-22 of the larger of 1 and the slope: it is 0 at x = -0.75. The slope at -|x| is the tail
 * less |x| times the height of the bell, e^(-x^2 / 2) / sqrt(2 pi). */
static inline float tsr_f32_gelu_erf_slope(float x)
{
    const float size = fabsf(x) > 16 ? 16 : fabsf(x), v = 1 / tsr_f32_fma(size, 0.25f, 1);
    const float low = tsr_f32_times_bell(tsr_f32_fma(size, -0x1.988454p-2f, v * tsr_f32_tail(size * v)), size);
    return x > 0 ? 1 - low : low;
}

/** The power of gelu's form with tanh: e^-2u = (1 + `*rest`) 2^n. It grows as the cube of x, so it
 * is computed in f64. */
static inline uint32_t tsr_f32_gelu_tanh_parts(float x, float *rest)
{
    const double wide = x, power = -wide * (TSR_GELU_TWICE + TSR_GELU_CUBED * (wide * wide));
    const double shifted = power * 0x1.71547652b82fep+0 + 0x1.8p52, n = shifted - 0x1.8p52;
    *rest = tsr_f32_exp_rest((float)(power - n * 0x1.62e42fefa39efp-1));
    return (uint32_t)tsr_to_bits(shifted);
}

/* Where the power is within the bounds of logistic functions. */
#define TSR_GELU_LOW  (-11)
#define TSR_GELU_HIGH 7

/** 2.8 ulp, also where gelu is nearly 0: x / (1 + e^-2u). Of minus infinity: -0. */
static inline float tsr_f32_gelu_tanh(float x)
{
    float rest;
    const float clamped = tsr_f32_within(x, TSR_GELU_LOW, TSR_GELU_HIGH);
    const uint32_t n = tsr_f32_gelu_tanh_parts(clamped, &rest);
    const float value = tsr_f32_logistic(clamped, rest, n);
    return x > TSR_GELU_HIGH ? x : value;
}

/** 2^-22 of the larger of 1 and the slope: it is 0 at x = -0.75. */
static inline float tsr_f32_gelu_tanh_slope(float x)
{
    float rest;
    const float clamped = tsr_f32_within(x, TSR_GELU_LOW, TSR_GELU_HIGH);
    const float cubed = 3 * (float)TSR_GELU_CUBED,
                factor = clamped * tsr_f32_fma(cubed * clamped, clamped, (float)TSR_GELU_TWICE);
    const uint32_t n = tsr_f32_gelu_tanh_parts(clamped, &rest);
    return tsr_f32_logistic_slope(factor, rest, n);
}

/** 1.5 ulp. For x up to 88; where e^x is below 2^-126 it is 0. It has half the work of
 * tsr_f32_exp(). */
static inline float tsr_f32_exp_short(float x)
{
    float rest;
    const float scale = tsr_f32_power(tsr_f32_exp_parts(x, 1, &rest));
    return x < -0x1.5d589ep6f ? 0 : tsr_f32_fma(scale, rest, scale);
}

#endif
