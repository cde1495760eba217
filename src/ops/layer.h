/** What the forward and the backward of linear layers share: local products, checks, and memory for one call. */
#ifndef TSR_OPS_LAYER_H
#define TSR_OPS_LAYER_H

#include "ops/matmul.h"
#include <tessera/linear.h>

/** y = x w^T + b on local tensors: x is (.., k), w (n, k), b (n) or NULL, y (.., n). On the host the caller holds the site's choice. */
tsr_status tsr_layer_forward(const tsr_matmul_site *site, const tsr_tensor *x, const tsr_tensor *w, const tsr_tensor *b,
                             const tsr_tensor *y);

/** True if this rank adds the bias: it is in the mesh, at coordinate 0 of each dim where the result `own` is Partial(sum). On a
 * Partial(avg) dim everybody adds it, for the mean of equal biases is one of them. */
tsr_status tsr_layer_adds_bias(const tsr_layout *own, bool *adds);

/** Operands (NULL ones are skipped) are on one device. */
tsr_status tsr_layer_check_devices(const char *caller, const tsr_tensor *const *operands, const char *const *names, int count);

/** TSR_ERROR_UNSUPPORTED: the device has no product of these dtypes; `b` may be NULL. */
tsr_status tsr_layer_check_products(const char *caller, tsr_device device, const tsr_layout *x, const tsr_layout *w, const tsr_layout *b,
                                    const tsr_layout *y);

/** Where products of a call are computed, on the host by `choice`; what they need comes by tsr_layer_place(). */
tsr_matmul_site tsr_layer_site(tsr_device device, const tsr_choice *choice, tsr_stream stream);

/** The mesh of x has ranks that can run a layer. */
tsr_status tsr_layer_check_runs(const char *caller, const tsr_layout *x);

/** A plan from one layout to the other; NULL where they are the same. The sentence of a failure names `caller`. */
tsr_status tsr_layer_plan_move(const char *caller, const tsr_layout *from, const tsr_layout *to, tsr_plan **out);

/** TSR_ERROR_ARGUMENT: a stream other than NULL on the host. */
tsr_status tsr_layer_check_stream(const char *caller, tsr_device device, tsr_stream stream);

tsr_status tsr_layer_check_workspace(const char *caller, const void *workspace, size_t bytes, size_t wanted);

/** The bytes of both, as tsr_layer_place() divides them. */
size_t tsr_layer_needs_bytes(const tsr_matmul_needs *needs);

/** Gives a site memory of tsr_layer_needs_bytes(). */
void tsr_layer_place(tsr_matmul_site *site, const tsr_matmul_needs *needs, void *memory);

/** Memory on `device` for one call, in the order of the device's default stream where it has one: NULL for 0 bytes. */
tsr_status tsr_layer_workspace_create(tsr_context *context, tsr_device device, size_t bytes, void **out);
void tsr_layer_workspace_destroy(tsr_context *context, tsr_device device, void *workspace, size_t bytes);

/** A dtensor over `memory`, which has tsr_layout_local_bytes() of the layout. */
tsr_status tsr_layer_borrow(const tsr_layout *layout, tsr_device device, void *memory, tsr_dtensor **out);

/** Peers wait in the redistribution `move` of tensors on `device`: without them this rank takes part in it as failed, and returns `status`
 * with its sentence. */
tsr_status tsr_layer_take_part(const tsr_plan *move, tsr_comm *comm, tsr_device device, tsr_status status, tsr_stream stream);

/** By what this rank multiplies on `device`, as far as it alone can tell: nothing where that is not the host. */
tsr_status tsr_layer_choose(tsr_context *context, tsr_device device, tsr_choice *out);

#endif
