/** One forward pass on this rank: the layout that the rule gives y, and the memory and products
 * that make y in that layout. Calls make one and drop it, plans keep one. */
#ifndef TSR_OPS_FORWARD_H
#define TSR_OPS_FORWARD_H

#include "ops/local_form.h"
#include "ops/matmul.h"

typedef struct tsr_forward {
    tsr_device device;
    tsr_choice choice;
    tsr_local_form own; /**< y in the rule's layout */
    bool inside;        /**< this rank is in the mesh */
    bool adds_bias;     /**< and it adds the bias, which there is */
    tsr_matmul_needs needs;
} tsr_forward;

/** Finds the rule's layout, `pass->own.layout`; errors begin with `caller`. `pass` comes as all 0;
 * tsr_forward_release() goes with it, also after a failure. */
tsr_status tsr_forward_begin(const char *caller, const tsr_layout *x, const tsr_layout *w, const tsr_layout *b,
                             tsr_forward *pass);

/** Finds the choice of this rank alone, checks that the device has the products, and finds what
 * this rank computes. TSR_ERROR_UNSUPPORTED, in a sentence that begins with `caller`. */
tsr_status tsr_forward_place(const char *caller, const tsr_layout *x, const tsr_layout *w, const tsr_layout *b,
                             tsr_device device, tsr_forward *pass);

/** Measures what the products need for operands of these shapes and strides, or of any strides. No
 * data are read. `b` is not looked at if there is no bias. */
tsr_status tsr_forward_measure(tsr_forward *pass, const tsr_tensor *x, const tsr_tensor *w, const tsr_tensor *b,
                               bool any_strides);

/** Writes this rank's part of y = x w^T + b, in the rule's layout, to `own`: x is (.., k), w
 * (n, k), b (n), y (.., n). `memory` has tsr_layer_needs_bytes() of the pass' needs. The rank is in
 * the mesh; on the host the caller holds the choice. */
tsr_status tsr_forward_compute(const tsr_forward *pass, const tsr_tensor *x, const tsr_tensor *w, const tsr_tensor *b,
                               const tsr_tensor *own, void *memory, tsr_stream stream);

/** True at coordinate 0 of each mesh dim on which the result is Partial(sum). On a Partial(avg) dim
 * all ranks add the bias, because the mean of equal biases is the bias. */
bool tsr_forward_adds_bias(const tsr_layout *own, const int64_t *coordinate);

/** y = x w^T + b for local tensors, or measures that; `b` may be NULL. */
tsr_status tsr_forward_multiply(const tsr_matmul_site *site, const tsr_tensor *x, const tsr_tensor *w,
                                const tsr_tensor *b, const tsr_tensor *y);

void tsr_forward_release(tsr_forward *pass);

#endif
