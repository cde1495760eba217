#include "ops/kernels/random/random_kernels.h"

#include "ops/kernels/functions.h"
#include "ops/kernels/random/generators.h"

#define NAME_(kernels) tsr_random_kernels_##kernels
#define NAME(kernels)  NAME_(kernels)

#define LOOP(count) _Pragma("omp simd") for (int64_t i = 0; i < (count); i++)

static void threefry32(const uint64_t key[2], uint64_t first, int64_t n, uint32_t *to)
{
    const uint32_t k0 = (uint32_t)key[0], k1 = (uint32_t)key[1];
    LOOP(n)
    {
        const uint64_t words = tsr_threefry(k0, k1, first + (uint64_t)i);
        to[i] = (uint32_t)(words ^ words >> 32);
    }
}

static void threefry64(const uint64_t key[2], uint64_t first, int64_t n, uint64_t *to)
{
    const uint32_t k0 = (uint32_t)key[0], k1 = (uint32_t)key[1];
    LOOP(n)
    {
        to[i] = tsr_threefry(k0, k1, first + (uint64_t)i);
    }
}

static void philox64(const uint64_t key[2], uint64_t first, int64_t n, uint64_t *to)
{
    const uint64_t seed = key[0], counter = key[1] + first / 2;
    LOOP(n / 2)
    {
        uint64_t low, high;
        tsr_philox(seed, counter + (uint64_t)i, &low, &high);
        to[2 * i] = low;
        to[2 * i + 1] = high;
    }
}

static void philox32(const uint64_t key[2], uint64_t first, int64_t n, uint32_t *to)
{
    const uint64_t seed = key[0], counter = key[1] + first / 4;
    LOOP(n / 4)
    {
        uint64_t low, high;
        tsr_philox(seed, counter + (uint64_t)i, &low, &high);
        to[4 * i] = (uint32_t)(low >> 32);
        to[4 * i + 1] = (uint32_t)low;
        to[4 * i + 2] = (uint32_t)(high >> 32);
        to[4 * i + 3] = (uint32_t)high;
    }
}

/* An integer below 2^64 as an f64, rounded once: both halves are exact, as low bits of 2^52 and
 * 2^84. */
static inline double convert64(uint64_t x)
{
    const double low = tsr_from_bits((x & 0xffffffff) | UINT64_C(0x4330000000000000)) - 0x1p52;
    const double high = tsr_from_bits(x >> 32 | UINT64_C(0x4530000000000000)) - 0x1p84;
    return high + low;
}

/* An integer below 2^32 as an f32, rounded once. */
static inline float convert32(uint32_t x)
{
    return (float)(tsr_from_bits(x | UINT64_C(0x4330000000000000)) - 0x1p52);
}

static void uniform_f32(const uint32_t *bits, int64_t n, int shift, int digits, float low, float high, float *to)
{
    const uint32_t mask = (UINT32_C(1) << digits) - 1;
    const float unit = 1 / (float)(UINT32_C(1) << digits), range = high - low;
    LOOP(n)
    {
        const float value = (float)(int32_t)(bits[i] >> shift & mask) * unit * range + low;
        to[i] = value < low ? low : value;
    }
}

static void uniform_f64(const uint64_t *bits, int64_t n, int shift, int digits, double low, double high, double *to)
{
    const uint64_t mask = (UINT64_C(1) << digits) - 1;
    const double unit = 1 / (double)(UINT64_C(1) << digits), range = high - low;
    LOOP(n)
    {
        const double value = convert64(bits[i] >> shift & mask) * unit * range + low;
        to[i] = value < low ? low : value;
    }
}

/* log(1 - x), which keeps the digits of a small x. */
static inline double log_less(double x)
{
    const double rest = 1 - x, taken = 1 - rest;
    return taken == 0 ? -x : tsr_f64_log(rest) * (x / taken);
}

/* The inverse error function divided by x is a polynomial of log(1 - x^2), or of its root. The
 * coefficients are those of M. Giles, "Approximating the erfinv function" (2010), for f32 and
 * f64. */
static const double middle_f32[] = {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                                    -0.00125372503, -0.00417768164, 0.246640727,    1.50140941};
static const double tail_f32[] = {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                                  -0.0076224613,   0.00943887047,  1.00167406,    2.83297682};
static const double middle[] = {
    -3.6444120640178196996e-21, -1.685059138182016589e-19,  1.2858480715256400167e-18,  1.115787767802518096e-17,
    -1.333171662854620906e-16,  2.0972767875968561637e-17,  6.6376381343583238325e-15,  -4.0545662729752068639e-14,
    -8.1519341976054721522e-14, 2.6335093153082322977e-12,  -1.2975133253453532498e-11, -5.4154120542946279317e-11,
    1.051212273321532285e-09,   -4.1126339803469836976e-09, -2.9070369957882005086e-08, 4.2347877827932403518e-07,
    -1.3654692000834678645e-06, -1.3882523362786468719e-05, 0.0001867342080340571352,   -0.00074070253416626697512,
    -0.0060336708714301490533,  0.24015818242558961693,     1.6536545626831027356,
};
static const double tail[] = {
    2.2137376921775787049e-09,  9.0756561938885390979e-08, -2.7517406297064545428e-07, 1.8239629214389227755e-08,
    1.5027403968909827627e-06,  -4.013867526981545969e-06, 2.9234449089955446044e-06,  1.2475304481671778723e-05,
    -4.7318229009055733981e-05, 6.8284851459573175448e-05, 2.4031110387097893999e-05,  -0.0003550375203628474796,
    0.00095328937973738049703,  -0.0016882755560235047313, 0.0024914420961078508066,   -0.0037512085075692412107,
    0.005370914553590063617,    1.0052589676941592334,     3.0838856104922207635,
};
static const double far_tail[] = {
    -2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09,  -3.7894654401267369937e-09,
    7.6157012080783393804e-09,  -1.4960026627149240478e-08, 2.9147953450901080826e-08,  -6.7711997758452339498e-08,
    2.2900482228026654717e-07,  -9.9298272942317002539e-07, 4.5260625972231537039e-06,  -1.9681778105531670567e-05,
    7.5995277030017761139e-05,  -0.00021503011930044477347, -0.00013871931833623122026, 1.0103004648645343977,
    4.8499064014085844221,
};

#define TERMS(c) (int)(sizeof c / sizeof *(c))
#define POLYNOMIAL(c, x, value)                                                                                        \
    double value = c[0];                                                                                               \
    _Pragma("GCC unroll 32") for (int j = 1; j < TERMS(c); j++) value = value * (x) + c[j]

static inline double invert_by_f32(double x, double square)
{
    const double w = -log_less(square), root = sqrt(w);
    POLYNOMIAL(middle_f32, w - 2.5, near);
    POLYNOMIAL(tail_f32, root - 3, far);
    return x * (w < 5 ? near : far);
}

static inline double invert(double x)
{
    const double w = -log_less(x * x), root = sqrt(w);
    POLYNOMIAL(middle, w - 3.125, near);
    POLYNOMIAL(tail, root - 3.25, far);
    POLYNOMIAL(far_tail, root - 5, farther);
    return x * (w < 6.25 ? near : w < 16 ? far : farther);
}

/* The square is rounded to f32, as jax.random does: next to 1 that decides many digits. */
static void invert_f32(float *values, int64_t n)
{
    LOOP(n)
    {
        const float square = values[i] * values[i];
        values[i] = (float)(1.41421353816986083984375 * invert_by_f32(values[i], square));
    }
}

static void invert_f64(double *values, int64_t n)
{
    LOOP(n)
    {
        values[i] = 1.41421356237309504880 * invert(values[i]);
    }
}

/* Sine and cosine of an angle between 0 and 2 pi. Pi / 2 is taken off in three parts, the first two
 * of 33 bits, so that products with the quadrant are exact. */
static inline void turn(double angle, double *sine, double *cosine)
{
    static const double sines[] = {1.0 / 355687428096000, -1.0 / 1307674368000, 1.0 / 6227020800, -1.0 / 39916800,
                                   1.0 / 362880,          -1.0 / 5040,          1.0 / 120,        -1.0 / 6};
    static const double cosines[] = {-1.0 / 6402373705728000,
                                     1.0 / 20922789888000,
                                     -1.0 / 87178291200,
                                     1.0 / 479001600,
                                     -1.0 / 3628800,
                                     1.0 / 40320,
                                     -1.0 / 720,
                                     1.0 / 24,
                                     -0.5};
    const double shifted = angle * 0.63661977236758134308 + 0x1.8p52, quadrant = shifted - 0x1.8p52;
    const double r =
        ((angle - quadrant * 0x1.921fb544p+0) - quadrant * 0x1.0b4611a6p-34) - quadrant * 0x1.3198a2e037073p-69;
    const uint64_t turns = tsr_to_bits(shifted);
    const double z = r * r;
    POLYNOMIAL(sines, z, s);
    POLYNOMIAL(cosines, z, c);
    const double sin_r = r + r * z * s, cos_r = 1 + z * c;
    const double first = turns & 1 ? cos_r : sin_r, second = turns & 1 ? sin_r : cos_r;
    *sine = turns & 2 ? -first : first;
    *cosine = (turns + 1) & 2 ? -second : second;
}

/* Uniform numbers and the angle are rounded to f32, as torch.func._random does. */
static void box_muller_f32(const uint32_t *bits, int64_t n, float *to)
{
    LOOP(n / 2)
    {
        const float u = convert32(bits[2 * i]) * 0x1p-32f + 0x1p-33f;
        const float v = convert32(bits[2 * i + 1]) * 0x1p-32f + 0x1p-33f;
        const float angle = v * 6.283185482025146484375f;
        const double radius = sqrt(-2 * tsr_f64_log(u));
        double sine, cosine;
        turn(angle, &sine, &cosine);
        to[2 * i] = (float)(radius * cosine);
        to[2 * i + 1] = (float)(radius * sine);
    }
}

static void box_muller_f64(const uint64_t *bits, int64_t n, double *to)
{
    LOOP(n / 2)
    {
        const double u = convert64(bits[2 * i]) * 0x1p-64 + 0x1p-65;
        const double v = convert64(bits[2 * i + 1]) * 0x1p-64 + 0x1p-65;
        const double radius = sqrt(-2 * tsr_f64_log(u));
        double sine, cosine;
        turn(v * 6.28318530717958647693, &sine, &cosine);
        to[2 * i] = radius * cosine;
        to[2 * i + 1] = radius * sine;
    }
}

static void drop_f32(const float *draws, int64_t n, float keep, float *values)
{
    LOOP(n)
    {
        values[i] = draws[i] < keep ? values[i] / keep : 0;
    }
}

static void drop_f64(const float *draws, int64_t n, float keep, double *values)
{
    LOOP(n)
    {
        values[i] = draws[i] < keep ? values[i] / keep : 0;
    }
}

const tsr_random_kernels NAME(TSR_KERNELS) = {
    .bits32 = {[TSR_LOOPS_THREEFRY] = threefry32, [TSR_LOOPS_PHILOX] = philox32},
    .bits64 = {[TSR_LOOPS_THREEFRY] = threefry64, [TSR_LOOPS_PHILOX] = philox64},
    .uniform_f32 = uniform_f32,
    .uniform_f64 = uniform_f64,
    .invert_f32 = invert_f32,
    .invert_f64 = invert_f64,
    .box_muller_f32 = box_muller_f32,
    .box_muller_f64 = box_muller_f64,
    .drop_f32 = drop_f32,
    .drop_f64 = drop_f64,
};
