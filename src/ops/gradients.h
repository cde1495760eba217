/** The three gradients of a linear layer: their rules, and how each is computed from local tensors. */
#ifndef TSR_OPS_GRADIENTS_H
#define TSR_OPS_GRADIENTS_H

#include "ops/matmul.h"
#include <tessera/linear.h>

enum { TSR_DX, TSR_DW, TSR_DB, TSR_GRADIENTS };

/** The local tensors that gradients are made from: dy is (.., o), x (.., k), w (o, k). dx does not read x, dw not w, db neither. */
typedef struct tsr_gradient_sources {
    tsr_tensor dy, x, w;
} tsr_gradient_sources;

/** TSR_ERROR_ARGUMENT, in the words of `caller`: dy is not of y's mesh, dtype and shape, or has Partial dims. */
tsr_status tsr_gradient_check_dy(const char *caller, const tsr_layout *y, const tsr_layout *dy);

/** A gradient's layout as its rule leaves it, where dy is in `dy` and the operand of `dtype`, which its gradient has too. */
tsr_status tsr_gradient_propagate(int which, const tsr_layout *dy, const tsr_layout *x, const tsr_layout *w, tsr_dtype dtype,
                                  tsr_layout **out);

/** TSR_ERROR_UNSUPPORTED, in the words of `caller`: `device` has no product that makes this gradient, of `dtype`, of operands of theirs. */
tsr_status tsr_gradient_check_device(const char *caller, int which, tsr_device device, tsr_dtype dy, tsr_dtype x, tsr_dtype w,
                                     tsr_dtype dtype);

/** Writes this rank's part of a gradient: dx = dy w; dw = dy^T x, db = 1^T dy, both summed over the batch dims of dy. On the host the
 * caller holds the site's choice. */
tsr_status tsr_gradient_compute(int which, const tsr_matmul_site *site, const tsr_gradient_sources *from, const tsr_tensor *to);

#endif
