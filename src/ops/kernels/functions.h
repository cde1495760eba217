/** Functions of one f64 without branches, so that loops over them are vectorized. They use sums and
 * products alone, so every set of instructions gives the same bits. Errors are a few units in the
 * last place of f64. For kernels alone. */
#ifndef TSR_OPS_KERNELS_FUNCTIONS_H
#define TSR_OPS_KERNELS_FUNCTIONS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline double tsr_from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t tsr_to_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/** e^x = scale + scale * `*rest`, with scale a power of two; |x| is at most 700. */
static inline double tsr_f64_exp_parts(double x, double *rest)
{
    /* Adding 1.5 * 2^52 rounds to an integer, which is then in the low bits. */
    const double shifted = x * 0x1.71547652b82fep+0 + 0x1.8p52, n = shifted - 0x1.8p52;
    const double r = (x - n * 0x1.62e42fefa38p-1) - n * 0x1.ef35793c7673p-45;
    double p = 1.0 / 87178291200.0;
    p = p * r + 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    *rest = r + r * r * p;
    return tsr_from_bits((tsr_to_bits(shifted) + 1023) << 52);
}

/* The power of two is applied in two halves, so that it overflows or vanishes as it should. A NaN
 * stays one, because `rest` is. */
static inline double tsr_f64_exp(double x)
{
    const double high = x > 1400 ? 1400 : x, clamped = high < -1400 ? -1400 : high;
    double rest;
    const double scale = tsr_f64_exp_parts(clamped * 0.5, &rest), half = scale + scale * rest;
    return half * half;
}

static inline double tsr_f64_tanh(double x)
{
    const double size = fabs(x), twice = size > 20 ? 40 : 2 * size;
    double rest;
    const double scale = tsr_f64_exp_parts(twice, &rest), less_one = scale * rest + (scale - 1);
    return x != x ? x : copysign(less_one / (less_one + 2), x);
}

static inline double tsr_f64_sigmoid(double x)
{
    return 1 / (1 + tsr_f64_exp(-x));
}

static inline double tsr_f64_log(double x)
{
    const double whole = x < 0x1p-1022 ? x * 0x1p54 : x, less = x < 0x1p-1022 ? 1023 + 54 : 1023;
    const uint64_t bits = tsr_to_bits(whole);
    /* The mantissa is taken between sqrt(1/2) and sqrt(2); the exponent plus 1023 is small, and
     * becomes an f64 as the low bits of 2^52. */
    const uint64_t exponent = (bits - UINT64_C(0x3fe6a09e667f3bcd) + (UINT64_C(1023) << 52)) >> 52;
    const double m = tsr_from_bits(bits - (exponent << 52) + (UINT64_C(1023) << 52));
    const double s = (m - 1) / (m + 1), z = s * s;
    const double e = tsr_from_bits(exponent | UINT64_C(0x4330000000000000)) - 0x1p52 - less;
    double p = 1.0 / 23;
    p = p * z + 1.0 / 21;
    p = p * z + 1.0 / 19;
    p = p * z + 1.0 / 17;
    p = p * z + 1.0 / 15;
    p = p * z + 1.0 / 13;
    p = p * z + 1.0 / 11;
    p = p * z + 1.0 / 9;
    p = p * z + 1.0 / 7;
    p = p * z + 1.0 / 5;
    p = p * z + 1.0 / 3;
    const double value = e * 0x1.62e42fefa38p-1 + (2 * s + (2 * s * z * p + e * 0x1.ef35793c7673p-45));
    const double positive = x > 0x1.fffffffffffffp1023 ? x : value, zero = x == 0 ? -INFINITY : positive;
    return x >= 0 ? zero : NAN;
}

/* The complement of the error function, as t e^(-x^2 + f(t)) with t = 2 / (2 + |x|) and a Chebyshev
 * series f. */
static inline double tsr_f64_erfc(double x)
{
    static const double c[] = {
        -1.3026537197817094326,     0.64196979235649025883,     0.019476473204185837511,    -0.0095615147868086324137,
        -0.00094659534448203661694, 0.00036683949785276175563,  0.000042523324806906952418, -0.000020278578112533009689,
        -1.6242900046485208984e-6,  1.3036558355820959208e-6,   1.5626441720610144528e-8,   -8.523809591376682603e-8,
        6.52905443837832144e-9,     5.059343495744196995e-9,    -9.913641561345526113e-10,  -2.2736512315820798387e-10,
        9.6467912284535437658e-11,  2.3940365757453567981e-12,  -6.8860259626367610884e-12, 8.9448650009511902663e-13,
        3.1309325429677934018e-13,  -1.1270888769441391354e-13, 3.8122263299763369068e-16,  7.1065133637564310075e-15,
        -1.5239399563870308201e-15, -9.3280331673262850814e-17};
    const double size = fabs(x) > 100 ? 100 : fabs(x), t = 2 / (2 + size), y = 4 * t - 2;
    double d = 0, before = 0;
    /* Unrolled, so that a loop over elements around this function has no loop inside, and is
     * vectorized. */
    _Pragma("GCC unroll 32") for (int j = (int)(sizeof c / sizeof c[0]) - 1; j > 0; j--)
    {
        const double next = y * d - before + c[j];
        before = d;
        d = next;
    }
    const double tail = t * tsr_f64_exp(-size * size + 0.5 * (c[0] + y * d) - before);
    return x != x ? x : x < 0 ? 2 - tail : tail;
}

/** Where |x| is at most 0.75, its series, which relative to erf is exact; else what erfc leaves of
 * 1. */
static inline double tsr_f64_erf(double x)
{
    static const double c[] = {1.0,
                               -1.0 / 3,
                               1.0 / 10,
                               -1.0 / 42,
                               1.0 / 216,
                               -1.0 / 1320,
                               1.0 / 9360,
                               -1.0 / 75600,
                               1.0 / 685440,
                               -1.0 / 6894720,
                               1.0 / 76204800,
                               -1.0 / 918086400,
                               1.0 / 11975040000,
                               -1.0 / 168129561600,
                               1.0 / 2528170444800,
                               -1.0 / 40537905408000};
    const double size = fabs(x), near = size > 0.75 ? 0.75 : size, z = near * near;
    double p = 0;
    _Pragma("GCC unroll 16") for (int j = (int)(sizeof c / sizeof c[0]) - 1; j >= 0; j--)
    {
        p = p * z + c[j];
    }
    const double small = x * (p * 1.1283791670955126), large = copysign(1 - tsr_f64_erfc(size), x);
    return x != x ? x : size > 0.75 ? large : small;
}

/** The largest angle, in size, of which tsr_f64_quarters() is exact enough. */
#define TSR_ANGLE_MAX 0x1p28

/** The product of two numbers below 2^996 as a sum of two f64: the rounded one, and what it
 * lost. */
static inline double tsr_f64_product(double x, double y, double *lost)
{
    const double high = x * y, x_big = x * 134217729, y_big = y * 134217729;
    const double x1 = x_big - (x_big - x), y1 = y_big - (y_big - y), x2 = x - x1, y2 = y - y1;
    *lost = ((x1 * y1 - high) + x1 * y2 + x2 * y1) + x2 * y2;
    return high;
}

/** x, at most 1 in size, to the power of a whole number of steps, rounded once: squares have twice
 * the digits of an f64. Fractions of steps are dropped, and below 0 there are none. */
static inline double tsr_f64_power_of_steps(double x, double steps)
{
    double power = 1, power_rest = 0, square = x, square_rest = 0;
    for (uint64_t n = steps >= 1 ? (steps < 0x1p62 ? (uint64_t)steps : UINT64_C(1) << 62) : 0; n; n >>= 1) {
        double lost;
        if (n & 1) {
            const double high = tsr_f64_product(power, square, &lost);
            lost += power * square_rest + power_rest * square;
            power = high + lost;
            power_rest = lost - (power - high);
        }
        const double high = tsr_f64_product(square, square, &lost);
        lost += 2 * (square * square_rest);
        square = high + lost;
        square_rest = lost - (square - high);
    }
    return power;
}

/** What is left of x when the nearest multiple of pi / 2 is taken off; the last two bits of
 * `*quarter` say which one. Pi / 2 is in three parts, the first two of 25 bits, so that their
 * products with a number below 2^28 are exact. */
static inline double tsr_f64_quarters(double x, uint64_t *quarter)
{
    /* Adding 1.5 * 2^52 rounds to an integer, which is then in the low bits. */
    const double shifted = x * 0x1.45f306dc9c883p-1 + 0x1.8p52, n = shifted - 0x1.8p52;
    *quarter = tsr_to_bits(shifted);
    return ((x - n * 0x1.921fb5p+0) - n * 0x1.110b46p-26) - n * 0x1.1a62633145c07p-54;
}

/** The series of sine and cosine up to pi / 4, as fdlibm has them. */
static inline double tsr_f64_sine(double r)
{
    const double z = r * r;
    double p = 1.58969099521155010221e-10;
    p = p * z - 2.50507602534068634195e-08;
    p = p * z + 2.75573137070700676789e-06;
    p = p * z - 1.98412698298579493134e-04;
    p = p * z + 8.33333333332248946124e-03;
    p = p * z - 1.66666666666666324348e-01;
    return r + r * z * p;
}

static inline double tsr_f64_cosine(double r)
{
    const double z = r * r;
    double p = -1.13596475577881948265e-11;
    p = p * z + 2.08757232129817482790e-09;
    p = p * z - 2.75573143513906633035e-07;
    p = p * z + 2.48015872894767294178e-05;
    p = p * z - 1.38888888888741095749e-03;
    p = p * z + 4.16666666666666019037e-02;
    return 1 - (0.5 * z - z * z * p);
}

/** For |x| up to TSR_ANGLE_MAX; -0 stays. */
static inline double tsr_f64_sin(double x)
{
    uint64_t quarter;
    const double r = tsr_f64_quarters(x, &quarter), s = tsr_f64_sine(r), c = tsr_f64_cosine(r);
    const double y = quarter & 1 ? c : s;
    return x == 0 ? x : quarter & 2 ? -y : y;
}

static inline double tsr_f64_cos(double x)
{
    uint64_t quarter;
    const double r = tsr_f64_quarters(x, &quarter), s = tsr_f64_sine(r), c = tsr_f64_cosine(r);
    const double y = quarter & 1 ? s : c;
    return (quarter + 1) & 2 ? -y : y;
}

/* Minus infinity gives -0, as the limit is. */
static inline double tsr_f64_silu(double x)
{
    return (x < -800 ? -800 : x) * tsr_f64_sigmoid(x);
}

static inline double tsr_f64_silu_slope(double x)
{
    const double clamped = x < -800 ? -800 : x > 800 ? 800 : x, s = tsr_f64_sigmoid(clamped);
    return s * (1 + clamped * tsr_f64_sigmoid(-clamped));
}

/** The constants of gelu's form with tanh: 2 sqrt(2 / pi), and that times 0.044715. */
#define TSR_GELU_TWICE 1.5957691216057308
#define TSR_GELU_CUBED 0.071354816272600249

/* x (1 + tanh u) / 2 = x / (1 + e^-2u). */
static inline double tsr_f64_gelu_tanh(double x)
{
    const double clamped = x < -30 ? -30 : x > 30 ? 30 : x;
    const double power = clamped * (TSR_GELU_TWICE + TSR_GELU_CUBED * (clamped * clamped));
    return (x < -30 ? -30 : x) * tsr_f64_sigmoid(power);
}

static inline double tsr_f64_gelu_tanh_slope(double x)
{
    const double clamped = x < -30 ? -30 : x > 30 ? 30 : x, square = clamped * clamped;
    const double power = clamped * (TSR_GELU_TWICE + TSR_GELU_CUBED * square);
    const double factor = clamped * (TSR_GELU_TWICE + 3 * TSR_GELU_CUBED * square);
    return tsr_f64_sigmoid(power) * (1 + factor * tsr_f64_sigmoid(-power));
}

static inline double tsr_f64_gelu_erf(double x)
{
    return 0.5 * (x < -100 ? -100 : x) * tsr_f64_erfc(-x * 0.70710678118654752440);
}

/* 1 / sqrt(2 pi) is the height of the bell. */
static inline double tsr_f64_gelu_erf_slope(double x)
{
    const double clamped = x < -100 ? -100 : x > 100 ? 100 : x;
    const double bell = clamped * 0.39894228040143267794 * tsr_f64_exp(-0.5 * clamped * clamped);
    return 0.5 * tsr_f64_erfc(-clamped * 0.70710678118654752440) + bell;
}

/* x^y as e^(y log |x|), with x's sign for odd y: within |y log x| 2^-51 of the result. */
static inline double tsr_f64_pow(double x, double y)
{
    const double size = fabs(x), value = size == 1 ? 1 : tsr_f64_exp(y * tsr_f64_log(size)), half = 0.5 * y;
    const int whole = floor(y) == y, odd = whole && floor(half) != half;
    const double of_negative = size > 0 && size < INFINITY && !whole && fabs(y) < INFINITY ? NAN : value;
    const double signed_value = odd ? copysign(value, x) : x < 0 ? of_negative : value;
    return y == 0 || x == 1 ? 1 : signed_value;
}

static inline double tsr_f64_expm1(double x)
{
    const double high = x > 700 ? 700 : x, clamped = high < -50 ? -50 : high;
    double rest;
    const double scale = tsr_f64_exp_parts(clamped, &rest), value = scale * rest + (scale - 1);
    return x > 700 ? tsr_f64_exp(x) : x == 0 ? x : value;
}

/* What 1 + x loses when it is rounded is added to first order. */
static inline double tsr_f64_log1p(double x)
{
    const double whole = 1 + x, lost = x - (whole - 1), value = tsr_f64_log(whole) + lost / whole;
    return x == 0 || x > 0x1p60 ? (x > 0x1p60 ? tsr_f64_log(x) : x) : x == -1 ? -INFINITY : value;
}

static inline double tsr_f64_softplus(double x)
{
    return (x > 0 ? x : x == x ? 0 : x) + tsr_f64_log1p(tsr_f64_exp(-fabs(x)));
}

#endif
