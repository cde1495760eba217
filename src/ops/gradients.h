/** One backward pass on this rank: the layouts and products that make the three gradients of a
 * linear layer, until they move to the layouts that are wanted. Calls make one and drop it, plans
 * keep one. */
#ifndef TSR_OPS_GRADIENTS_H
#define TSR_OPS_GRADIENTS_H

#include "ops/local_form.h"
#include "ops/matmul.h"

/** Gradients, and in this order their operands x, w and b. */
enum { TSR_DX, TSR_DW, TSR_DB, TSR_GRADIENTS };

/** The local tensors that gradients are made from: dy is (.., o), x (.., k), w (o, k). dx reads dy
 * and w, dw reads dy and x, db reads dy. */
typedef struct tsr_gradient_sources {
    tsr_tensor dy, x, w;
} tsr_gradient_sources;

typedef struct tsr_backward {
    tsr_device device;
    tsr_choice choice;
    bool inside;                       /**< this rank is in the mesh */
    tsr_local_form dy;                 /**< dy in the layout in which the products take it */
    tsr_local_form own[TSR_GRADIENTS]; /**< each gradient in its rule's layout; not asked for: without a layout */
    tsr_matmul_needs needs[2];         /**< of products that write, and of products that add */
} tsr_backward;

/** "dx", "dw" or "db", for errors. */
const char *tsr_gradient_name(int which);

/** Finds the layout in which the products take dy, y's gradient layout, and the choice of this rank
 * alone. `operands` are the layouts of x, w and b, which may be NULL. `dy` is the layout in which
 * dy comes, or NULL. `pass` comes as all 0; tsr_backward_release() goes with it, also after a
 * failure. TSR_ERROR_ARGUMENT, in a sentence that begins with `caller`: the rule does not take the
 * operands; dy has not y's mesh, dtype and shape, or is Partial on a mesh dim. */
tsr_status tsr_backward_begin(const char *caller, const tsr_layout *const *operands, const tsr_layout *dy,
                              tsr_device device, tsr_backward *pass);

/** Adds gradient `which`: finds its rule's layout. `wanted` is the layout that the caller wants, or
 * NULL: any. The gradient has the dtype of its operand, or f32 if that is wanted of an f16 or bf16
 * operand. In sentences that begin with `caller`: TSR_ERROR_ARGUMENT: `wanted` is on another mesh
 * than x; TSR_ERROR_UNSUPPORTED: the device cannot make this gradient. */
tsr_status tsr_backward_add(const char *caller, int which, const tsr_layout *const *operands, const tsr_layout *wanted,
                            tsr_backward *pass);

/** Measures what the product of gradient `which` needs, which writes or, with `adds`, adds, for
 * tensors of these shapes and strides, or of any strides. `to` NULL: the gradient is contiguous. No
 * data are read. */
tsr_status tsr_backward_measure(tsr_backward *pass, int which, const tsr_gradient_sources *from, const tsr_tensor *to,
                                bool adds, bool any_strides);

/** Bytes of memory for those products that were measured and write and, with `adds`, for those that
 * add. */
size_t tsr_backward_needs_bytes(const tsr_backward *pass, bool adds);

/** Writes this rank's part of gradient `which`, in its rule's layout: dx = dy w; dw = dy^T x and
 * db = 1^T dy, both summed over the batch dims of dy. With `adds` it is added to what `to` holds.
 * `memory` has tsr_backward_needs_bytes(). The rank is in the mesh; on the host the caller holds
 * the choice. */
tsr_status tsr_backward_compute(const tsr_backward *pass, int which, const tsr_gradient_sources *from,
                                const tsr_tensor *to, bool adds, void *memory, tsr_stream stream);

void tsr_backward_release(tsr_backward *pass);

/** Makes gradient `which` of local tensors, or measures that; `from` needs only the tensors that
 * this gradient reads. */
tsr_status tsr_gradient_compute(int which, const tsr_matmul_site *site, const tsr_gradient_sources *from,
                                const tsr_tensor *to, bool adds);

/** TSR_ERROR_UNSUPPORTED, in a sentence that begins with `caller`: gradient `which` has the layout
 * `to`, whose Partial is prod, min or max, so that what has moved there cannot be added term by
 * term. */
tsr_status tsr_gradient_check_terms(const char *caller, int which, const tsr_layout *to);

/** Adds a tensor to a gradient of the same shape, dtype and device, which does not overlap it. */
tsr_status tsr_gradient_add(const tsr_tensor *more, const tsr_tensor *to, tsr_stream stream);

#endif
