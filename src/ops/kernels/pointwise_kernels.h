/**
 * Loops of pointwise ops over a few hundred elements without gaps: one source, compiled once for
 * each set of instructions; all sets give the same bits, but for those of NaNs.
 *
 * f32 results are computed in f32, exp, log, tanh and what is made of them by polynomials of
 * Tessera's own (functions_f32.h); f64 likewise (functions.h). Integers wrap.
 */
#ifndef TSR_OPS_KERNELS_POINTWISE_KERNELS_H
#define TSR_OPS_KERNELS_POINTWISE_KERNELS_H

#include <tessera/dtype.h>

#include <stdint.h>

/** The pointwise ops, as rows of the table call them. A condition is one byte, 0 or 1. */
typedef enum tsr_pointwise {
    TSR_POINTWISE_ADD,
    TSR_POINTWISE_SUB,
    TSR_POINTWISE_MUL,
    TSR_POINTWISE_DIV,
    TSR_POINTWISE_MAXIMUM,   /**< NaN passes, -0 is below +0 */
    TSR_POINTWISE_MINIMUM,   /**< NaN passes, -0 is below +0 */
    TSR_POINTWISE_SHARE_MAX, /**< d, x, y: what x gets of the gradient d of maximum(x, y) */
    TSR_POINTWISE_SHARE_MIN, /**< likewise of minimum(x, y) */
    TSR_POINTWISE_NEG,
    TSR_POINTWISE_ABS,
    TSR_POINTWISE_SIGN,
    TSR_POINTWISE_EXP,
    TSR_POINTWISE_LOG,
    TSR_POINTWISE_SQRT,
    TSR_POINTWISE_RSQRT,
    TSR_POINTWISE_TANH,
    TSR_POINTWISE_TANH_BACKWARD, /**< d, y */
    TSR_POINTWISE_SIGMOID,
    TSR_POINTWISE_SIGMOID_BACKWARD, /**< d, y */
    TSR_POINTWISE_SILU,
    TSR_POINTWISE_SILU_BACKWARD, /**< d, x */
    TSR_POINTWISE_SILU_MUL,      /**< gate, up */
    TSR_POINTWISE_RELU,
    TSR_POINTWISE_RELU_BACKWARD, /**< d, x */
    TSR_POINTWISE_GELU,          /**< parameter: 1 for the form with tanh */
    TSR_POINTWISE_GELU_BACKWARD, /**< d, x */
    TSR_POINTWISE_SCALE,         /**< x times the parameter */
    TSR_POINTWISE_WHERE,         /**< condition, x, y */
    TSR_POINTWISE_KEEP,          /**< condition, x: x or 0 */
    TSR_POINTWISE_DROP,          /**< condition, x: 0 or x */
    TSR_POINTWISE_COPY,
    TSR_POINTWISE_POW,
    TSR_POINTWISE_POW_BACKWARD,      /**< d, x, y: what x gets */
    TSR_POINTWISE_EXPONENT_BACKWARD, /**< d, x, y: what y gets; 0 where x is 0 */
    TSR_POINTWISE_CLAMP,             /**< parameters: the least and the largest; NaN passes */
    TSR_POINTWISE_CLAMP_BACKWARD,    /**< d, x */
    TSR_POINTWISE_FILL,              /**< x, mask: the parameter where the mask is 1 */
    TSR_POINTWISE_RECIPROCAL,
    TSR_POINTWISE_SQUARE,
    TSR_POINTWISE_FLOOR,
    TSR_POINTWISE_CEIL,
    TSR_POINTWISE_ROUND, /**< halves to even */
    TSR_POINTWISE_EXPM1,
    TSR_POINTWISE_LOG1P,
    TSR_POINTWISE_LOG1P_BACKWARD, /**< d, x */
    TSR_POINTWISE_SOFTPLUS,
    TSR_POINTWISE_SIN,
    TSR_POINTWISE_COS,
    TSR_POINTWISE_ERF,
    TSR_POINTWISE_ERF_BACKWARD,        /**< d, x */
    TSR_POINTWISE_LEAKY_RELU,          /**< parameter: the slope below 0 */
    TSR_POINTWISE_LEAKY_RELU_BACKWARD, /**< d, x */
    TSR_POINTWISE_ELU,                 /**< parameter: alpha */
    TSR_POINTWISE_ELU_BACKWARD,        /**< d, x */
    TSR_POINTWISE_CORRECTION,          /**< 1 - the parameter to the power of x, a number of steps */
    TSR_POINTWISE_FLOOR_DIVIDE,        /**< rounded down; 0 where the divisor is 0 */
    TSR_POINTWISE_REMAINDER,           /**< of that; it has the divisor's sign */
    /* Ops whose results are bools, by the dtype of their operands. */
    TSR_POINTWISE_EQ,
    TSR_POINTWISE_NE,
    TSR_POINTWISE_LT,
    TSR_POINTWISE_LE,
    TSR_POINTWISE_GT,
    TSR_POINTWISE_GE,
    TSR_POINTWISE_ISNAN,
    TSR_POINTWISE_ISINF,
    TSR_POINTWISE_ISFINITE,
    TSR_POINTWISE_AND,
    TSR_POINTWISE_OR,
    TSR_POINTWISE_NOT,
    TSR_POINTWISE_END
} tsr_pointwise;

/** The first op whose results are bools; all behind it are, too. */
#define TSR_POINTWISE_FIRST_TEST TSR_POINTWISE_EQ

/** The number of sums of add_lanes. */
#define TSR_POINTWISE_LANES 16

/** The most parameters of a loop. */
#define TSR_POINTWISE_PARAMETERS 2

/** Computes n results; `out` may be one of `in`. `parameters` may be NULL for an op without. */
typedef void tsr_pointwise_loop(const void *const *in, void *out, int64_t n, const double *parameters);

/** Reads or writes n elements of a dtype, of which one is a plain array and the other `stride`
 * elements apart. */
typedef void tsr_pointwise_move(const void *from, void *to, int64_t n, int64_t stride);

typedef struct tsr_pointwise_kernels {
    /** By op and by dtype of the computation: f64, f32, i64, i32, bool; NULL: there is none. */
    tsr_pointwise_loop *loops[TSR_POINTWISE_END][TSR_DTYPE_END];
    /** Loops of f32 for the ops that models use most: as `loops`, but they fetch operands ahead,
     * and stream results; for whole lines of 64 bytes of the result. NULL: there is none. */
    tsr_pointwise_loop *lines[TSR_POINTWISE_END];
    /** By dtype in memory: to an array of the dtype of the computation. */
    tsr_pointwise_move *gather[TSR_DTYPE_END];
    /** By dtype in memory: from an array of the dtype of the computation, rounding to nearest
     * even. */
    tsr_pointwise_move *scatter[TSR_DTYPE_END];
    /** Copies bytes and, where it can, streams whole lines of the destination past the cache; after
     * the last of them `finish` orders them before later stores. */
    void (*stream)(const void *from, void *to, int64_t bytes);
    void (*finish)(void);
    /** By dtypes of the computation, from and to; floats become integers by dropping the
     * fraction. */
    tsr_pointwise_loop *convert[TSR_DTYPE_END][TSR_DTYPE_END];
    /** sums[i] += terms[i]; f64 and i64. */
    void (*add_rows[TSR_DTYPE_END])(const void *terms, void *sums, int64_t n);
    /** sums[i] = terms[i] times the factor, and sums[i] += that; f64 and f32. */
    void (*start_scaled[TSR_DTYPE_END])(const void *terms, double factor, void *sums, int64_t n);
    void (*add_scaled[TSR_DTYPE_END])(const void *terms, double factor, void *sums, int64_t n);
    /** Adds term i to sums[i mod 16], in ascending order; f64 and i64. */
    void (*add_lanes[TSR_DTYPE_END])(const void *terms, void *sums, int64_t n);
} tsr_pointwise_kernels;

extern const tsr_pointwise_kernels tsr_pointwise_kernels_portable, tsr_pointwise_kernels_avx2,
    tsr_pointwise_kernels_avx512;

#endif
