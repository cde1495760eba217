/**
 * @file
 * Softmax of dtensors. What all operations have in common (layouts, dtypes, the three forms of a
 * function) is in tessera/ops.h.
 */
#ifndef TESSERA_NORMS_H
#define TESSERA_NORMS_H

#include <tessera/dtensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @{ */
/** Floats: e^x divided by its sum along `dim` (-1: the last), and the logarithm of that. The dim
 * must be whole on each rank. Computed in f64, and rounded once. */
TSR_API tsr_status tsr_softmax(const tsr_dtensor *x, int dim, tsr_dtensor **out);
TSR_API tsr_status tsr_softmax_into(const tsr_dtensor *x, int dim, tsr_dtensor *out);
TSR_API tsr_status tsr_softmax_backward(const tsr_dtensor *x, int dim, const tsr_dtensor *dout,
                                        tsr_dtensor **dx);
TSR_API tsr_status tsr_log_softmax(const tsr_dtensor *x, int dim, tsr_dtensor **out);
TSR_API tsr_status tsr_log_softmax_into(const tsr_dtensor *x, int dim, tsr_dtensor *out);
TSR_API tsr_status tsr_log_softmax_backward(const tsr_dtensor *x, int dim, const tsr_dtensor *dout,
                                            tsr_dtensor **dx);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
