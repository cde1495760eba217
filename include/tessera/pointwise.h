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

#ifdef __cplusplus
}
#endif

#endif
