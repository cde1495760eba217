/**
 * @file
 * Softmax and norms of dtensors. What all operations have in common (layouts, dtypes, the three
 * forms of a function) is in tessera/ops.h.
 *
 * @par Exchanges
 * The dims along which elements are summed may be cut in any way, also so that a rank has none.
 * Then a call is collective along the mesh dims that cut them: each rank sends a few f64 for each
 * of its rows, once (a gradient once more for each norm or softmax in its formula), and all ranks
 * merge these in the order of coordinates, so that replicas have the same bits. Otherwise a call
 * meets no rank.
 *
 * @par Accuracy
 * Sums are those of f64 terms in f64. Results of f32 are computed from them in f32 (rms_norm: three
 * roundings), of f64 in f64; f16 and bf16 are rounded from f32. An element has the same bits with
 * any strides and on every processor; under another layout of the summed dims the last bits may
 * differ.
 */
#ifndef TESSERA_NORMS_H
#define TESSERA_NORMS_H

#include <tessera/dtensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @{ */
/** Floats: e^x divided by its sum along `dim` (-1: the last), and the logarithm of that. The result
 * has x's layout. A row without a largest number, all -inf or with inf or NaN, gives NaN. f32 and
 * narrower dtypes are computed in f32: a softmax is within 2^-24 (10 + |x - m|) of its value,
 * relatively, with m the row's largest element; e^(x - m) below 2^-126 is 0. Gradients: y (dout -
 * sum(dout y)); dout - e^y sum(dout). */
TSR_API tsr_status tsr_softmax(const tsr_dtensor *x, int dim, tsr_dtensor **out);
TSR_API tsr_status tsr_softmax_into(const tsr_dtensor *x, int dim, tsr_dtensor *out);
TSR_API tsr_status tsr_softmax_backward(const tsr_dtensor *x, int dim, const tsr_dtensor *dout,
                                        tsr_dtensor **dx);
TSR_API tsr_status tsr_log_softmax(const tsr_dtensor *x, int dim, tsr_dtensor **out);
TSR_API tsr_status tsr_log_softmax_into(const tsr_dtensor *x, int dim, tsr_dtensor *out);
TSR_API tsr_status tsr_log_softmax_backward(const tsr_dtensor *x, int dim, const tsr_dtensor *dout,
                                            tsr_dtensor **dx);
/** @} */

/** @{ */
/** Floats: the logarithm of the sum of e^x over the `count` dims in `dims` (all if count is 0),
 * which stay as dims of size 1 if `keep` is 1; -inf where there is no element. Along mesh dims that
 * cut these dims the result is Replicate. Its gradient is dout e^(x - out). */
TSR_API tsr_status tsr_logsumexp(const tsr_dtensor *x, int count, const int64_t *dims, int keep,
                                 tsr_dtensor **out);
TSR_API tsr_status tsr_logsumexp_into(const tsr_dtensor *x, int count, const int64_t *dims,
                                      int keep, tsr_dtensor *out);
TSR_API tsr_status tsr_logsumexp_backward(const tsr_dtensor *x, int count, const int64_t *dims,
                                          int keep, const tsr_dtensor *dout, tsr_dtensor **dx);
/** @} */

/** @{ */
/** Floats: the norm of x over dims as of tsr_logsumexp(), by `p`: 1 (sum of sizes), 2 (Euclid's) or
 * INFINITY (the largest size); 0 where there is no element. Gradients: dout sign(x); dout x / out,
 * 0 where out is 0; dout sign(x) shared evenly by the elements of the largest size. */
TSR_API tsr_status tsr_norm(const tsr_dtensor *x, double p, int count, const int64_t *dims,
                            int keep, tsr_dtensor **out);
TSR_API tsr_status tsr_norm_into(const tsr_dtensor *x, double p, int count, const int64_t *dims,
                                 int keep, tsr_dtensor *out);
TSR_API tsr_status tsr_norm_backward(const tsr_dtensor *x, double p, int count, const int64_t *dims,
                                     int keep, const tsr_dtensor *dout, tsr_dtensor **dx);
/** @} */

/** @{ */
/** Floats: x f weight along the last dim, of size h, with f = 1 / sqrt(mean(x^2) + epsilon) (Zhang
 * and Sennrich, 2019). `weight` has shape h, or is NULL. The op's attribute `dims` normalizes over
 * several last dims, of which weight has the shape. The result has x's layout, and weight is cut as
 * h is. Gradients: f (dout weight - x f^2 mean(dout weight x)); weight's is the sum of dout x f
 * over leading dims, Partial along mesh dims that cut these. Both are made in one pass. */
TSR_API tsr_status tsr_rms_norm(const tsr_dtensor *x, const tsr_dtensor *weight, double epsilon,
                                tsr_dtensor **out);
TSR_API tsr_status tsr_rms_norm_into(const tsr_dtensor *x, const tsr_dtensor *weight,
                                     double epsilon, tsr_dtensor *out);
TSR_API tsr_status tsr_rms_norm_backward(const tsr_dtensor *x, const tsr_dtensor *weight,
                                         double epsilon, const tsr_dtensor *dout, tsr_dtensor **dx,
                                         tsr_dtensor **dweight);
/** @} */

/** @{ */
/** Floats: n weight + bias along the last dim, with n = (x - mean(x)) / sqrt(variance(x) +
 * epsilon), where the variance is that of all elements, divided by their number (Ba, Kiros and
 * Hinton, 2016). `weight` and `bias`, each NULL or not, and the layouts are as of tsr_rms_norm().
 * Gradients, with f the factor of n: f (d - mean(d) - n mean(d n)), d = dout weight; sums of dout n
 * and of dout over leading dims. */
TSR_API tsr_status tsr_layer_norm(const tsr_dtensor *x, const tsr_dtensor *weight,
                                  const tsr_dtensor *bias, double epsilon, tsr_dtensor **out);
TSR_API tsr_status tsr_layer_norm_into(const tsr_dtensor *x, const tsr_dtensor *weight,
                                       const tsr_dtensor *bias, double epsilon, tsr_dtensor *out);
TSR_API tsr_status tsr_layer_norm_backward(const tsr_dtensor *x, const tsr_dtensor *weight,
                                           const tsr_dtensor *bias, double epsilon,
                                           const tsr_dtensor *dout, tsr_dtensor **dx,
                                           tsr_dtensor **dweight, tsr_dtensor **dbias);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
