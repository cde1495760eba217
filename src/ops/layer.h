/** Code that forward and backward of linear layers share: local products, checks, and memory for
 * one call. Checks return TSR_ERROR_ARGUMENT unless they say otherwise, in sentences that begin
 * with `caller`. */
#ifndef TSR_OPS_LAYER_H
#define TSR_OPS_LAYER_H

#include "ops/matmul.h"

#include <tessera/linear.h>

/** tsr_linear_propagate() for `caller`; x and w are not NULL. */
tsr_status tsr_layer_propagate(const char *caller, const tsr_layout *x, const tsr_layout *w, const tsr_layout *b,
                               tsr_layout **y);

/** y = x w^T + b on local tensors: x is (.., k), w (n, k), b (n) or NULL, y (.., n). On the host
 * the caller holds the site's choice. */
tsr_status tsr_layer_forward(const tsr_matmul_site *site, const tsr_tensor *x, const tsr_tensor *w, const tsr_tensor *b,
                             const tsr_tensor *y);

/** `*adds` is true if this rank adds the bias: it is in the mesh, and at coordinate 0 of each mesh
 * dim on which the result `own` is Partial(sum). On a Partial(avg) dim all ranks add it, because
 * the mean of equal biases is the bias. */
tsr_status tsr_layer_adds_bias(const tsr_layout *own, bool *adds);

/** Checks that all operands are on one device; NULL operands are skipped. */
tsr_status tsr_layer_check_devices(const char *caller, const tsr_tensor *const *operands, const char *const *names,
                                   int count);

/** TSR_ERROR_UNSUPPORTED: the device has no product of these dtypes; `b` may be NULL. */
tsr_status tsr_layer_check_products(const char *caller, tsr_device device, const tsr_layout *x, const tsr_layout *w,
                                    const tsr_layout *b, const tsr_layout *y);

/** The site of a call's products, which on the host are computed by `choice`; tsr_layer_place()
 * gives it memory. */
tsr_matmul_site tsr_layer_site(tsr_device device, const tsr_choice *choice, tsr_stream stream);

/** Checks that the mesh of `x` has a communicator. */
tsr_status tsr_layer_check_runs(const char *caller, const tsr_layout *x);

/** Makes a plan from one layout to another, which the caller destroys; NULL if the layouts are
 * equal. */
tsr_status tsr_layer_plan_move(const char *caller, const tsr_layout *from, const tsr_layout *to, tsr_plan **out);

/** Checks that the stream is NULL on the host. */
tsr_status tsr_layer_check_stream(const char *caller, tsr_device device, tsr_stream stream);

/** Checks that a workspace of `bytes` bytes has the `wanted` bytes. */
tsr_status tsr_layer_check_workspace(const char *caller, const void *workspace, size_t bytes, size_t wanted);

/** Bytes of memory that tsr_layer_place() divides into packing and gemm workspace. */
size_t tsr_layer_needs_bytes(const tsr_matmul_needs *needs);

/** Gives a site `memory`, of tsr_layer_needs_bytes() bytes, as packing and workspace. */
void tsr_layer_place(tsr_matmul_site *site, const tsr_matmul_needs *needs, void *memory);

/** Allocates memory on `device` for one call, in the order of the device's default stream if it has
 * one; `*out` is NULL for 0 bytes. */
tsr_status tsr_layer_workspace_create(tsr_context *context, tsr_device device, size_t bytes, void **out);

/** Releases memory of tsr_layer_workspace_create(), with the same arguments; NULL is fine. */
void tsr_layer_workspace_destroy(tsr_context *context, tsr_device device, void *workspace, size_t bytes);

/** A dtensor over `memory`, which is borrowed and has the layout's tsr_layout_local_bytes(). The
 * caller destroys it. */
tsr_status tsr_layer_borrow(const tsr_layout *layout, tsr_device device, void *memory, tsr_dtensor **out);

/** Takes part, as a rank that failed with `status`, in the redistribution `move` of tensors on
 * `device`, in which peers would wait for this rank. Returns `status` with its sentence. */
tsr_status tsr_layer_take_part(const tsr_plan *move, tsr_comm *comm, tsr_device device, tsr_status status,
                               tsr_stream stream);

/** The choice of this rank alone; on a device other than the host it is empty. */
tsr_status tsr_layer_choose(tsr_context *context, tsr_device device, tsr_choice *out);

#endif
