/*
 * Compiled once for each set of instructions, whose name TSR_KERNELS is. Operations are in the
 * order of the formulas that docs/sparse.md quotes, so that bits are those of PyTorch's and DGL's
 * as far as these do not fuse.
 */
#include "tensor/sparse/sparse_math.h"

#include <math.h>

#define MATH_(kernels) tsr_sparse_math_##kernels
#define MATH(kernels)  MATH_(kernels)

/* Elements of a row may begin at any byte. */
typedef float __attribute__((may_alias, aligned(1))) sparse_f32;
typedef double __attribute__((may_alias, aligned(1))) sparse_f64;

/* The partial sums in which squares are added. */
#define LANES 8

/* A NaN that comes out of a step is the positive quiet one without payload. */
#define CLEAN(native, x) ((x) == (x) ? (x) : (native)NAN)

#define DEFINE_SGD(type, native)                                                                                       \
    static void sgd_##type(void *w_, const void *g_, void *a_, void *b_, int64_t count, const tsr_sparse_numbers *n)   \
    {                                                                                                                  \
        type *restrict const w = w_;                                                                                   \
        const type *restrict const g = g_;                                                                             \
        const native rate = (native)n->rate;                                                                           \
        (void)a_;                                                                                                      \
        (void)b_;                                                                                                      \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            const native to = w[i] - rate * g[i];                                                                      \
            w[i] = CLEAN(native, to);                                                                                  \
        }                                                                                                              \
    }                                                                                                                  \
    static void momentum_##type(void *w_, const void *g_, void *a_, void *b_, int64_t count,                           \
                                const tsr_sparse_numbers *n)                                                           \
    {                                                                                                                  \
        type *restrict const w = w_;                                                                                   \
        type *restrict const a = a_;                                                                                   \
        const type *restrict const g = g_;                                                                             \
        const native rate = (native)n->rate, momentum = (native)n->momentum;                                           \
        (void)b_;                                                                                                      \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            const native speed = momentum * a[i] + g[i], to = w[i] - rate * speed;                                     \
            a[i] = CLEAN(native, speed);                                                                               \
            w[i] = CLEAN(native, to);                                                                                  \
        }                                                                                                              \
    }

#define DEFINE_ADAGRAD(type, native, root)                                                                             \
    static void adagrad_##type(void *w_, const void *g_, void *a_, void *b_, int64_t count,                            \
                               const tsr_sparse_numbers *n)                                                            \
    {                                                                                                                  \
        type *restrict const w = w_;                                                                                   \
        type *restrict const a = a_;                                                                                   \
        const type *restrict const g = g_;                                                                             \
        const native rate = (native)n->rate, inside = (native)n->in_root, beside = (native)n->beside_root;             \
        (void)b_;                                                                                                      \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            const native sum = a[i] + g[i] * g[i];                                                                     \
            const native to = w[i] - rate * (g[i] / (root(sum + inside) + beside));                                    \
            a[i] = CLEAN(native, sum);                                                                                 \
            w[i] = CLEAN(native, to);                                                                                  \
        }                                                                                                              \
    }                                                                                                                  \
    static void rowwise_##type(void *w_, const void *g_, void *a_, void *b_, int64_t count,                            \
                               const tsr_sparse_numbers *n)                                                            \
    {                                                                                                                  \
        type *restrict const w = w_;                                                                                   \
        const type *restrict const g = g_, *const a = a_;                                                              \
        const native rate = (native)n->rate;                                                                           \
        const native by = root(*a + (native)n->in_root) + (native)n->beside_root;                                      \
        (void)b_;                                                                                                      \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            const native to = w[i] - rate * (g[i] / by);                                                               \
            w[i] = CLEAN(native, to);                                                                                  \
        }                                                                                                              \
    }

#define DEFINE_ADAM(type, native, root)                                                                                \
    static void adam_##type(void *w_, const void *g_, void *a_, void *b_, int64_t count, const tsr_sparse_numbers *n)  \
    {                                                                                                                  \
        type *restrict const w = w_, *restrict const a = a_, *restrict const b = b_;                                   \
        const type *restrict const g = g_;                                                                             \
        const native rate = (native)n->rate, inside = (native)n->in_root, beside = (native)n->beside_root;             \
        const native new1 = (native)(1 - n->beta1), new2 = (native)(1 - n->beta2);                                     \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            const native mean = a[i] + (g[i] - a[i]) * new1, square = b[i] + (g[i] * g[i] - b[i]) * new2;              \
            const native to = w[i] - rate * (mean / (root(square + inside) + beside));                                 \
            a[i] = CLEAN(native, mean);                                                                                \
            b[i] = CLEAN(native, square);                                                                              \
            w[i] = CLEAN(native, to);                                                                                  \
        }                                                                                                              \
    }                                                                                                                  \
    static void adam_by_row_##type(void *w_, const void *g_, void *a_, void *b_, int64_t count,                        \
                                   const tsr_sparse_numbers *n)                                                        \
    {                                                                                                                  \
        type *restrict const w = w_, *restrict const a = a_, *restrict const b = b_;                                   \
        const type *restrict const g = g_;                                                                             \
        const native rate = (native)n->rate, inside = (native)n->in_root, beside = (native)n->beside_root;             \
        const native old1 = (native)n->beta1, old2 = (native)n->beta2;                                                 \
        const native new1 = (native)(1 - n->beta1), new2 = (native)(1 - n->beta2);                                     \
        const native by1 = (native)n->correction1, by2 = (native)n->correction2;                                       \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            const native mean = old1 * a[i] + new1 * g[i], square = old2 * b[i] + new2 * (g[i] * g[i]);                \
            const native to = w[i] - rate * (mean / by1) / (root(square / by2 + inside) + beside);                     \
            a[i] = CLEAN(native, mean);                                                                                \
            b[i] = CLEAN(native, square);                                                                              \
            w[i] = CLEAN(native, to);                                                                                  \
        }                                                                                                              \
    }

#define DEFINE_REST(type, native)                                                                                      \
    static void decay_##type(void *out_, const void *g_, const void *w_, double decay, int64_t count)                  \
    {                                                                                                                  \
        type *restrict const out = out_;                                                                               \
        const type *restrict const g = g_, *restrict const w = w_;                                                     \
        const native by = (native)decay;                                                                               \
        for (int64_t i = 0; i < count; i++)                                                                            \
            out[i] = g[i] + by * w[i];                                                                                 \
    }                                                                                                                  \
    static void add_mean_square_##type(void *state, const void *g_, int64_t count)                                     \
    {                                                                                                                  \
        const type *const g = g_;                                                                                      \
        native sums[LANES] = {0};                                                                                      \
        int64_t i = 0;                                                                                                 \
        for (; i + LANES <= count; i += LANES)                                                                         \
            for (int lane = 0; lane < LANES; lane++)                                                                   \
                sums[lane] += g[i + lane] * g[i + lane];                                                               \
        for (int lane = 0; i < count; i++, lane++)                                                                     \
            sums[lane] += g[i] * g[i];                                                                                 \
        for (int half = LANES / 2; half > 0; half /= 2)                                                                \
            for (int lane = 0; lane < half; lane++)                                                                    \
                sums[lane] += sums[lane + half];                                                                       \
        const native to = *(type *)state + (count > 0 ? sums[0] / (native)count : 0);                                  \
        *(type *)state = CLEAN(native, to);                                                                            \
    }

#define DEFINE(type, native, root)                                                                                     \
    DEFINE_SGD(type, native)                                                                                           \
    DEFINE_ADAGRAD(type, native, root)                                                                                 \
    DEFINE_ADAM(type, native, root)                                                                                    \
    DEFINE_REST(type, native)

DEFINE(sparse_f32, float, sqrtf)
DEFINE(sparse_f64, double, sqrt)

#define MATH_OF(type)                                                                                                  \
    {                                                                                                                  \
        sgd_##type, momentum_##type, adagrad_##type, rowwise_##type, adam_##type, adam_by_row_##type, decay_##type,    \
            add_mean_square_##type                                                                                     \
    }

const tsr_sparse_math MATH(TSR_KERNELS)[2] = {MATH_OF(sparse_f32), MATH_OF(sparse_f64)};
