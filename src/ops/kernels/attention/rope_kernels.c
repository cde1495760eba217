#include "ops/kernels/attention/rope_kernels.h"

#include "ops/kernels/functions.h"

#define NAME_(kernels) tsr_rope_kernels_##kernels
#define NAME(kernels)  NAME_(kernels)

#define LOOP _Pragma("omp simd") for (int64_t i = 0; i < n; i++)

/* pi / 2 in three parts, the first two of 25 bits, so that their products with the number of
 * quarters are exact. */
#define QUARTER1 0x1.921fb5p+0
#define QUARTER2 0x1.110b46p-26
#define QUARTER3 0x1.1a62633145c07p-54

/* The series of sine and cosine up to pi / 4, as fdlibm has them. */
static inline double sine(double r)
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

static inline double cosine(double r)
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

static void turn(double position, const double *frequencies, int64_t n, double *cosines, double *sines)
{
    LOOP
    {
        const double angle = position * frequencies[i];
        /* Adding 1.5 * 2^52 rounds to an integer, whose last bits say which quarter it is. */
        const double shifted = angle * 0x1.45f306dc9c883p-1 + 0x1.8p52, quarters = shifted - 0x1.8p52;
        const double r = ((angle - quarters * QUARTER1) - quarters * QUARTER2) - quarters * QUARTER3;
        const uint64_t quarter = tsr_to_bits(shifted);
        const double s = sine(r), c = cosine(r);
        const double x = quarter & 1 ? s : c, y = quarter & 1 ? c : s;
        cosines[i] = (quarter + 1) & 2 ? -x : x;
        sines[i] = quarter & 2 ? -y : y;
    }
}

#define ROTATE(suffix, T)                                                                                              \
    static void rotate_##suffix(const void *x, int64_t n, const double *cosines, const double *sines, void *to)        \
    {                                                                                                                  \
        const T *const from = x;                                                                                       \
        T *const out = to;                                                                                             \
        LOOP                                                                                                           \
        {                                                                                                              \
            const double a = from[i], b = from[n + i];                                                                 \
            out[i] = (T)(a * cosines[i] - b * sines[i]);                                                               \
            out[n + i] = (T)(b * cosines[i] + a * sines[i]);                                                           \
        }                                                                                                              \
    }

ROTATE(f32, float)
ROTATE(f64, double)

const tsr_rope_kernels NAME(TSR_KERNELS) = {
    .turn = turn,
    .rotate = {[TSR_F32] = rotate_f32, [TSR_F64] = rotate_f64},
};
