/** The three gradients of a linear layer: their layouts, and their computation from local
 * tensors. */
#ifndef TSR_OPS_GRADIENTS_H
#define TSR_OPS_GRADIENTS_H

#include "ops/matmul.h"

#include <tessera/linear.h>

enum { TSR_DX, TSR_DW, TSR_DB, TSR_GRADIENTS };

/** The local tensors that gradients are made from: dy is (.., o), x (.., k), w (o, k). dx reads dy
 * and w, dw reads dy and x, db reads dy. */
typedef struct tsr_gradient_sources {
    tsr_tensor dy, x, w;
} tsr_gradient_sources;

/** TSR_ERROR_ARGUMENT, in a sentence that begins with `caller`: dy has not y's mesh, dtype and
 * shape, or is Partial on a mesh dim. The sentence has both values. */
tsr_status tsr_gradient_check_dy(const char *caller, const tsr_layout *y, const tsr_layout *dy);

/** The layout in which gradient `which` comes out of its product, for operands with these layouts;
 * `dtype` is the gradient's. The caller owns `*out`. Errors begin with `caller`. */
tsr_status tsr_gradient_propagate(const char *caller, int which, const tsr_layout *dy, const tsr_layout *x,
                                  const tsr_layout *w, tsr_dtype dtype, tsr_layout **out);

/** TSR_ERROR_UNSUPPORTED, in a sentence that begins with `caller`: `device` cannot make gradient
 * `which`, of `dtype`, from operands of dtypes `dy`, `x` and `w`. */
tsr_status tsr_gradient_check_device(const char *caller, int which, tsr_device device, tsr_dtype dy, tsr_dtype x,
                                     tsr_dtype w, tsr_dtype dtype);

/** The dtype of a gradient that the caller wants in layout `wanted`, or NULL, of an operand of
 * dtype `of`: f32 if that is wanted of an f16 or bf16 operand, else `of`. */
tsr_dtype tsr_gradient_dtype(tsr_dtype of, const tsr_layout *wanted);

/** Writes this rank's part of gradient `which`: dx = dy w; dw = dy^T x and db = 1^T dy, both summed
 * over the batch dims of dy. With `adds` it is added to what `to` holds. On the host the caller
 * holds the site's choice. */
tsr_status tsr_gradient_compute(int which, const tsr_matmul_site *site, const tsr_gradient_sources *from,
                                const tsr_tensor *to, bool adds);

/** Adds a tensor to a gradient of the same shape, dtype and device, which does not overlap it. */
tsr_status tsr_gradient_add(const tsr_tensor *more, const tsr_tensor *to, tsr_stream stream);

#endif
