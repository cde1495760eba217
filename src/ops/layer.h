/** What the forward and the backward of linear layers share: local products, checks, and memory for one call. */
#ifndef TSR_OPS_LAYER_H
#define TSR_OPS_LAYER_H

#include "ops/matmul.h"
#include <tessera/linear.h>

/** y = x w^T + b on local tensors: x is (.., k), w (n, k), b (n) or NULL, y (.., n). The caller holds the BLAS guard. */
tsr_status tsr_layer_forward(const tsr_matmul_site *site, const tsr_tensor *x, const tsr_tensor *w, const tsr_tensor *b,
                             const tsr_tensor *y);

/** True if this rank adds the bias: it is in the mesh, at coordinate 0 of each dim where the result `own` is Partial(sum). On a
 * Partial(avg) dim everybody adds it, for the mean of equal biases is one of them. */
tsr_status tsr_layer_adds_bias(const tsr_layout *own, bool *adds);

/** Operands (NULL ones are skipped, the first is there) are on one device, which can multiply their dtype. */
tsr_status tsr_layer_check_devices(const char *caller, const tsr_tensor *const *operands, const char *const *names, int count);

/** Memory on `device` for one call: NULL for 0 bytes. */
tsr_status tsr_layer_workspace_create(tsr_context *context, tsr_device device, size_t bytes, void **out);
void tsr_layer_workspace_destroy(tsr_context *context, tsr_device device, void *workspace, size_t bytes);

#endif
