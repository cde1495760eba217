/**
 * @file
 * Operations on elements of dtensors: arithmetic, activations, choices and casts. What all
 * operations have in common (layouts, dtypes, the forms of a function) is in tessera/ops.h.
 */
#ifndef TESSERA_POINTWISE_H
#define TESSERA_POINTWISE_H

#include <tessera/dtensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @{ */
/** Numbers: x + y, x - y, x * y; the larger and the smaller of x and y, where NaN passes and -0 is
 * below +0. The gradient of equal elements is halved. */
TSR_API tsr_status tsr_add(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out);
TSR_API tsr_status tsr_add_into(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor *out);
TSR_API tsr_status tsr_add_backward(const tsr_dtensor *x, const tsr_dtensor *y,
                                    const tsr_dtensor *dout, tsr_dtensor **dx, tsr_dtensor **dy);
TSR_API tsr_status tsr_sub(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out);
TSR_API tsr_status tsr_sub_into(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor *out);
TSR_API tsr_status tsr_sub_backward(const tsr_dtensor *x, const tsr_dtensor *y,
                                    const tsr_dtensor *dout, tsr_dtensor **dx, tsr_dtensor **dy);
TSR_API tsr_status tsr_mul(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out);
TSR_API tsr_status tsr_mul_into(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor *out);
TSR_API tsr_status tsr_mul_backward(const tsr_dtensor *x, const tsr_dtensor *y,
                                    const tsr_dtensor *dout, tsr_dtensor **dx, tsr_dtensor **dy);
TSR_API tsr_status tsr_maximum(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out);
TSR_API tsr_status tsr_maximum_into(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor *out);
TSR_API tsr_status tsr_maximum_backward(const tsr_dtensor *x, const tsr_dtensor *y,
                                        const tsr_dtensor *dout, tsr_dtensor **dx,
                                        tsr_dtensor **dy);
TSR_API tsr_status tsr_minimum(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out);
TSR_API tsr_status tsr_minimum_into(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor *out);
TSR_API tsr_status tsr_minimum_backward(const tsr_dtensor *x, const tsr_dtensor *y,
                                        const tsr_dtensor *dout, tsr_dtensor **dx,
                                        tsr_dtensor **dy);
/** @} */

/** @{ */
/** Floats: x / y. */
TSR_API tsr_status tsr_div(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out);
TSR_API tsr_status tsr_div_into(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor *out);
TSR_API tsr_status tsr_div_backward(const tsr_dtensor *x, const tsr_dtensor *y,
                                    const tsr_dtensor *dout, tsr_dtensor **dx, tsr_dtensor **dy);
/** @} */

/** @{ */
/** Numbers: -x, and the size of x. Integers wrap. */
TSR_API tsr_status tsr_neg(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_neg_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_neg_backward(const tsr_dtensor *x, const tsr_dtensor *dout,
                                    tsr_dtensor **dx);
TSR_API tsr_status tsr_abs(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_abs_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_abs_backward(const tsr_dtensor *x, const tsr_dtensor *dout,
                                    tsr_dtensor **dx);
/** @} */

/** @{ */
/** Floats, by element: e^x, the natural logarithm (tsr_ln(), the op log), the square root, 1 /
 * sqrt(x), the hyperbolic tangent, 1 / (1 + e^-x), x times that (SiLU, swish), and x or 0, the
 * larger (ReLU). */
TSR_API tsr_status tsr_exp(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_exp_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_exp_backward(const tsr_dtensor *x, const tsr_dtensor *dout,
                                    tsr_dtensor **dx);
TSR_API tsr_status tsr_ln(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_ln_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_ln_backward(const tsr_dtensor *x, const tsr_dtensor *dout, tsr_dtensor **dx);
TSR_API tsr_status tsr_sqrt(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_sqrt_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_sqrt_backward(const tsr_dtensor *x, const tsr_dtensor *dout,
                                     tsr_dtensor **dx);
TSR_API tsr_status tsr_rsqrt(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_rsqrt_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_rsqrt_backward(const tsr_dtensor *x, const tsr_dtensor *dout,
                                      tsr_dtensor **dx);
TSR_API tsr_status tsr_tanh(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_tanh_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_tanh_backward(const tsr_dtensor *x, const tsr_dtensor *dout,
                                     tsr_dtensor **dx);
TSR_API tsr_status tsr_sigmoid(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_sigmoid_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_sigmoid_backward(const tsr_dtensor *x, const tsr_dtensor *dout,
                                        tsr_dtensor **dx);
TSR_API tsr_status tsr_silu(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_silu_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_silu_backward(const tsr_dtensor *x, const tsr_dtensor *dout,
                                     tsr_dtensor **dx);
TSR_API tsr_status tsr_relu(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_relu_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_relu_backward(const tsr_dtensor *x, const tsr_dtensor *dout,
                                     tsr_dtensor **dx);
/** @} */

/** @{ */
/** Floats: the GELU of x, by the error function, or with `tanh` 1 by its usual approximation. */
TSR_API tsr_status tsr_gelu(const tsr_dtensor *x, int tanh, tsr_dtensor **out);
TSR_API tsr_status tsr_gelu_into(const tsr_dtensor *x, int tanh, tsr_dtensor *out);
TSR_API tsr_status tsr_gelu_backward(const tsr_dtensor *x, int tanh, const tsr_dtensor *dout,
                                     tsr_dtensor **dx);
/** @} */

/** @{ */
/** Floats: silu(gate) * up, of SwiGLU. */
TSR_API tsr_status tsr_silu_mul(const tsr_dtensor *gate, const tsr_dtensor *up, tsr_dtensor **out);
TSR_API tsr_status tsr_silu_mul_into(const tsr_dtensor *gate, const tsr_dtensor *up,
                                     tsr_dtensor *out);
TSR_API tsr_status tsr_silu_mul_backward(const tsr_dtensor *gate, const tsr_dtensor *up,
                                         const tsr_dtensor *dout, tsr_dtensor **dgate,
                                         tsr_dtensor **dup);
/** @} */

/** @{ */
/** Floats: x times `factor`. */
TSR_API tsr_status tsr_scale(const tsr_dtensor *x, double factor, tsr_dtensor **out);
TSR_API tsr_status tsr_scale_into(const tsr_dtensor *x, double factor, tsr_dtensor *out);
TSR_API tsr_status tsr_scale_backward(const tsr_dtensor *x, double factor, const tsr_dtensor *dout,
                                      tsr_dtensor **dx);
/** @} */

/** @{ */
/** x where `condition` (bool) is 1, y elsewhere; x and y have one dtype: a number or bool. */
TSR_API tsr_status tsr_where(const tsr_dtensor *condition, const tsr_dtensor *x,
                             const tsr_dtensor *y, tsr_dtensor **out);
TSR_API tsr_status tsr_where_into(const tsr_dtensor *condition, const tsr_dtensor *x,
                                  const tsr_dtensor *y, tsr_dtensor *out);
TSR_API tsr_status tsr_where_backward(const tsr_dtensor *condition, const tsr_dtensor *x,
                                      const tsr_dtensor *y, const tsr_dtensor *dout,
                                      tsr_dtensor **dx, tsr_dtensor **dy);
/** @} */

/** @{ */
/** x in another dtype: a number, f16, bf16 or bool, rounded once. Floats lose their fraction as
 * integers, and become the nearest integer that there is; NaN becomes 0. Only a cast that loses
 * nothing takes a Partial sum. */
TSR_API tsr_status tsr_cast(const tsr_dtensor *x, tsr_dtype dtype, tsr_dtensor **out);
TSR_API tsr_status tsr_cast_into(const tsr_dtensor *x, tsr_dtype dtype, tsr_dtensor *out);
TSR_API tsr_status tsr_cast_backward(const tsr_dtensor *x, tsr_dtype dtype, const tsr_dtensor *dout,
                                     tsr_dtensor **dx);
/** @} */

/** @{ */
/** Floats: x to the power of y, 1 where y is 0, NaN where x is below 0 and y is no integer. Within
 * |y ln x| 2^-51 of the result. The gradient of y is 0 where x is 0. */
TSR_API tsr_status tsr_pow(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out);
TSR_API tsr_status tsr_pow_into(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor *out);
TSR_API tsr_status tsr_pow_backward(const tsr_dtensor *x, const tsr_dtensor *y,
                                    const tsr_dtensor *dout, tsr_dtensor **dx, tsr_dtensor **dy);
/** @} */

/** @{ */
/** Numbers: x, but at least `min` and at most `max`; -INFINITY and INFINITY leave a bound out. NaN
 * passes. The gradient passes where x is within the bounds and not at one, as PyTorch has it. */
TSR_API tsr_status tsr_clamp(const tsr_dtensor *x, double min, double max, tsr_dtensor **out);
TSR_API tsr_status tsr_clamp_into(const tsr_dtensor *x, double min, double max, tsr_dtensor *out);
TSR_API tsr_status tsr_clamp_backward(const tsr_dtensor *x, double min, double max,
                                      const tsr_dtensor *dout, tsr_dtensor **dx);
/** @} */

/** @{ */
/** `value`, in x's dtype, where `mask` (bool) is 1, x elsewhere; x is a number or bool. The
 * gradient of x is 0 where the mask is 1. */
TSR_API tsr_status tsr_masked_fill(const tsr_dtensor *x, const tsr_dtensor *mask, double value,
                                   tsr_dtensor **out);
TSR_API tsr_status tsr_masked_fill_into(const tsr_dtensor *x, const tsr_dtensor *mask, double value,
                                        tsr_dtensor *out);
TSR_API tsr_status tsr_masked_fill_backward(const tsr_dtensor *x, const tsr_dtensor *mask,
                                            double value, const tsr_dtensor *dout,
                                            tsr_dtensor **dx);
/** @} */

/** @{ */
/** Floats: 1 / x. */
TSR_API tsr_status tsr_reciprocal(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_reciprocal_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_reciprocal_backward(const tsr_dtensor *x, const tsr_dtensor *dout,
                                           tsr_dtensor **dx);
/** @} */

/** @{ */
/** Numbers: x times x. Integers wrap. */
TSR_API tsr_status tsr_square(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_square_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_square_backward(const tsr_dtensor *x, const tsr_dtensor *dout,
                                       tsr_dtensor **dx);
/** @} */

/** @{ */
/** Floats: e^x - 1 and the logarithm of 1 + x, which are exact near 0, and the logarithm of 1 + e^x
 * (softplus). */
TSR_API tsr_status tsr_expm1(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_expm1_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_expm1_backward(const tsr_dtensor *x, const tsr_dtensor *dout,
                                      tsr_dtensor **dx);
TSR_API tsr_status tsr_log1p(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_log1p_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_log1p_backward(const tsr_dtensor *x, const tsr_dtensor *dout,
                                      tsr_dtensor **dx);
TSR_API tsr_status tsr_softplus(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_softplus_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_softplus_backward(const tsr_dtensor *x, const tsr_dtensor *dout,
                                         tsr_dtensor **dx);
/** @} */

/** @{ */
/** Floats: the sine and the cosine of x, in radians, and the error function. In f32 they are within
 * 0.51 units in the last place; in f64 within 4 units, or 2^-75 where sine or cosine is less than
 * 2^-23. */
TSR_API tsr_status tsr_sin(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_sin_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_sin_backward(const tsr_dtensor *x, const tsr_dtensor *dout,
                                    tsr_dtensor **dx);
TSR_API tsr_status tsr_cos(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_cos_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_cos_backward(const tsr_dtensor *x, const tsr_dtensor *dout,
                                    tsr_dtensor **dx);
TSR_API tsr_status tsr_erf(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_erf_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_erf_backward(const tsr_dtensor *x, const tsr_dtensor *dout,
                                    tsr_dtensor **dx);
/** @} */

/** @{ */
/** Floats: x above 0, `slope` times x elsewhere. */
TSR_API tsr_status tsr_leaky_relu(const tsr_dtensor *x, double slope, tsr_dtensor **out);
TSR_API tsr_status tsr_leaky_relu_into(const tsr_dtensor *x, double slope, tsr_dtensor *out);
TSR_API tsr_status tsr_leaky_relu_backward(const tsr_dtensor *x, double slope,
                                           const tsr_dtensor *dout, tsr_dtensor **dx);
/** @} */

/** @{ */
/** Floats: x above 0, `alpha` (e^x - 1) elsewhere. */
TSR_API tsr_status tsr_elu(const tsr_dtensor *x, double alpha, tsr_dtensor **out);
TSR_API tsr_status tsr_elu_into(const tsr_dtensor *x, double alpha, tsr_dtensor *out);
TSR_API tsr_status tsr_elu_backward(const tsr_dtensor *x, double alpha, const tsr_dtensor *dout,
                                    tsr_dtensor **dx);
/** @} */

/** @{ */
/** Numbers: 1, -1 or 0, as x is above, below or equal to 0; a zero keeps its sign, and NaN passes.
 * No gradient. */
TSR_API tsr_status tsr_sign(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_sign_into(const tsr_dtensor *x, tsr_dtensor *out);
/** @} */

/** @{ */
/** Floats: the next integer below, above, or the nearest one, halves to the even one. No gradient.
 */
TSR_API tsr_status tsr_floor(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_floor_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_ceil(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_ceil_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_round(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_round_into(const tsr_dtensor *x, tsr_dtensor *out);
/** @} */

/** @{ */
/** i64, i32: x / y rounded down, and what is left, which has y's sign, as Python's // and %. Both
 * are 0 where y is 0. The quotient of the least integer and -1 wraps. */
TSR_API tsr_status tsr_floor_divide(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out);
TSR_API tsr_status tsr_floor_divide_into(const tsr_dtensor *x, const tsr_dtensor *y,
                                         tsr_dtensor *out);
TSR_API tsr_status tsr_remainder(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out);
TSR_API tsr_status tsr_remainder_into(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor *out);
/** @} */

/** @{ */
/** Numbers or bools, to bool: 1 where x and y are equal, differ, or x is less, at most, greater or
 * at least y. NaN only differs. */
TSR_API tsr_status tsr_eq(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out);
TSR_API tsr_status tsr_eq_into(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor *out);
TSR_API tsr_status tsr_ne(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out);
TSR_API tsr_status tsr_ne_into(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor *out);
TSR_API tsr_status tsr_lt(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out);
TSR_API tsr_status tsr_lt_into(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor *out);
TSR_API tsr_status tsr_le(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out);
TSR_API tsr_status tsr_le_into(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor *out);
TSR_API tsr_status tsr_gt(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out);
TSR_API tsr_status tsr_gt_into(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor *out);
TSR_API tsr_status tsr_ge(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out);
TSR_API tsr_status tsr_ge_into(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor *out);
/** @} */

/** @{ */
/** Floats, to bool: 1 where x is NaN, infinite, or neither. */
TSR_API tsr_status tsr_isnan(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_isnan_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_isinf(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_isinf_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_isfinite(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_isfinite_into(const tsr_dtensor *x, tsr_dtensor *out);
/** @} */

/** @{ */
/** Bools: both, at least one, the other. */
TSR_API tsr_status tsr_logical_and(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out);
TSR_API tsr_status tsr_logical_and_into(const tsr_dtensor *x, const tsr_dtensor *y,
                                        tsr_dtensor *out);
TSR_API tsr_status tsr_logical_or(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out);
TSR_API tsr_status tsr_logical_or_into(const tsr_dtensor *x, const tsr_dtensor *y,
                                       tsr_dtensor *out);
TSR_API tsr_status tsr_logical_not(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_logical_not_into(const tsr_dtensor *x, tsr_dtensor *out);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
