#include "ops/kernels/norms/norm_kernels.h"

#include "ops/kernels/functions.h"
#include "ops/kernels/functions_f32.h"
#include "ops/kernels/stream.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define NAME_(kernels) tsr_norm_kernels_##kernels
#define NAME(kernels)  NAME_(kernels)

#define SIMD _Pragma("omp simd")

/* The sums to which terms go. */
#define LANES 16
/* Elements of a row that go through loops at once: they stay in the first-level cache, and few
 * stores to memory follow one another. */
#define BLOCK 128
/* How far ahead memory is fetched, in bytes. */
#define AHEAD 1536

/* The sum of all, as a tree whose steps are vectors. */
static inline double fold(const double lanes[LANES])
{
    double eight[8], four[4];
    SIMD for (int j = 0; j < 8; j++)
    {
        eight[j] = lanes[j] + lanes[j + 8];
    }
    SIMD for (int j = 0; j < 4; j++)
    {
        four[j] = eight[j] + eight[j + 4];
    }
    return (four[0] + four[2]) + (four[1] + four[3]);
}

/* True if n squares of f32 that have this sum were neither too large for f32 nor lost. */
static inline bool is_safe(double sum, int64_t n)
{
    return sum >= (double)n * 0x1p-120 && sum < 0x1p127;
}

/* Bytes of a store that goes past the cache; 0: the set has no such store. */
#if defined(__AVX512F__)
#define VECTOR 64
#elif defined(__AVX2__)
#define VECTOR 32
#elif defined(__SSE2__)
#define VECTOR 16
#else
#define VECTOR 0
#endif

#if VECTOR
static inline void stream_vector(void *to, const void *from)
{
#if defined(__AVX512F__)
    _mm512_stream_si512(to, _mm512_loadu_si512(from));
#elif defined(__AVX2__)
    _mm256_stream_si256(to, _mm256_loadu_si256(from));
#else
    _mm_stream_si128(to, _mm_loadu_si128(from));
#endif
}
#endif

/* Asks for `bytes` bytes that are read later, into the second-level cache. Without it one thread
 * waits for memory. */
static inline void fetch(const void *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const char *)at + i, 0, 2);
}

/* The rows of a band that begins at `row`. */
static inline int64_t count_rows(const tsr_norm_rows *r, int64_t row, int64_t band)
{
    return row < 0 || row >= r->rows ? 0 : r->rows - row < band ? r->rows - row : band;
}

#if VECTOR
typedef float vector_f32 __attribute__((vector_size(VECTOR), aligned(sizeof(float)), may_alias));
typedef double vector_f64 __attribute__((vector_size(VECTOR), aligned(sizeof(double)), may_alias));
#endif

#define T        float
#define VT       vector_f32
#define STATE    state_f32
#define BANDS    bands_f32
#define FN(name) name##_f32
#define EXP(x)   tsr_f32_exp_short(x)
#include "ops/kernels/norms/norm_loops.h"
#undef T
#undef VT
#undef STATE
#undef BANDS
#undef FN
#undef EXP

#define T        double
#define VT       vector_f64
#define STATE    state_f64
#define BANDS    bands_f64
#define FN(name) name##_f64
#define EXP(x)   tsr_f64_exp(x)
#include "ops/kernels/norms/norm_loops.h"

#define BOTH(name)                                                                                                     \
    {                                                                                                                  \
        [TSR_F32] = name##_f32, [TSR_F64] = name##_f64                                                                 \
    }

const tsr_norm_kernels NAME(TSR_KERNELS) = {
    .loops =
        {
            [TSR_NORM_SOFTMAX] = BOTH(softmax),
            [TSR_NORM_LOG_SOFTMAX] = BOTH(log_softmax),
            [TSR_NORM_LOGSUMEXP] = BOTH(logsumexp),
            [TSR_NORM_SOFTMAX_GRADIENT] = BOTH(softmax_gradient),
            [TSR_NORM_LOG_SOFTMAX_GRADIENT] = BOTH(log_softmax_gradient),
            [TSR_NORM_RMS] = BOTH(rms),
            [TSR_NORM_RMS_GRADIENT] = BOTH(rms_gradient),
            [TSR_NORM_LAYER] = BOTH(layer),
            [TSR_NORM_LAYER_GRADIENT] = BOTH(layer_gradient),
            [TSR_NORM_ONE] = BOTH(one),
            [TSR_NORM_TWO] = BOTH(two),
            [TSR_NORM_LARGEST] = BOTH(largest),
            [TSR_NORM_ONE_GRADIENT] = BOTH(one_gradient),
            [TSR_NORM_TWO_GRADIENT] = BOTH(two_gradient),
            [TSR_NORM_LARGEST_GRADIENT] = BOTH(largest_gradient),
        },
};
