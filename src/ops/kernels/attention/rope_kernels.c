#include "ops/kernels/attention/rope_kernels.h"

#include "ops/kernels/functions.h"

#define NAME_(kernels) tsr_rope_kernels_##kernels
#define NAME(kernels)  NAME_(kernels)

#define LOOP _Pragma("omp simd") for (int64_t i = 0; i < n; i++)

static void turn(double position, const double *frequencies, int64_t n, double *cosines, double *sines)
{
    LOOP
    {
        const double angle = position * frequencies[i];
        uint64_t quarter;
        const double r = tsr_f64_quarters(angle, &quarter);
        const double s = tsr_f64_sine(r), c = tsr_f64_cosine(r);
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
