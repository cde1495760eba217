#include "ops/kernels/squares_kernels.h"

#include "ops/kernels/pointwise_kernels.h"
#include "ops/kernels/stream.h"

#include <string.h>

#define NAME_(kernels) tsr_squares_kernels_##kernels
#define NAME(kernels)  NAME_(kernels)

#define DEFINE_SQUARES(dtype, T)                                                                                       \
    static void squares_##dtype(const void *from, double factor, double *out, int64_t n)                               \
    {                                                                                                                  \
        const T *const terms = from, by = (T)factor;                                                                   \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                                                            \
        {                                                                                                              \
            const double x = terms[i] * by;                                                                            \
            out[i] = x * x;                                                                                            \
        }                                                                                                              \
    }                                                                                                                  \
    static void add_squares_##dtype(const void *from, double factor, double *sums, int64_t n)                          \
    {                                                                                                                  \
        enum { LANES = TSR_POINTWISE_LANES };                                                                          \
        const T *terms = from;                                                                                         \
        const T by = (T)factor;                                                                                        \
        double lanes[LANES], last[LANES];                                                                              \
        memcpy(lanes, sums, sizeof lanes);                                                                             \
        for (; n >= LANES; n -= LANES, terms += LANES) {                                                               \
            stream_fetch(terms);                                                                                       \
            _Pragma("omp simd") for (int i = 0; i < LANES; i++)                                                        \
            {                                                                                                          \
                const double x = terms[i] * by;                                                                        \
                lanes[i] += x * x;                                                                                     \
            }                                                                                                          \
        }                                                                                                              \
        squares_##dtype(terms, factor, last, n);                                                                       \
        for (int64_t i = 0; i < n; i++)                                                                                \
            lanes[i] += last[i];                                                                                       \
        memcpy(sums, lanes, sizeof lanes);                                                                             \
    }

DEFINE_SQUARES(f64, double)
DEFINE_SQUARES(f32, float)

const tsr_squares_kernels NAME(TSR_KERNELS) = {
    .squares = {[TSR_F64] = squares_f64, [TSR_F32] = squares_f32},
    .add_squares = {[TSR_F64] = add_squares_f64, [TSR_F32] = add_squares_f32},
};
