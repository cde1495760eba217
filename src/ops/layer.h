/** Code that forward and backward of linear layers share: checks, and memory for one
 * call. Checks return TSR_ERROR_ARGUMENT, in sentences that begin with `caller`. */
#ifndef TSR_OPS_LAYER_H
#define TSR_OPS_LAYER_H

#include "ops/matmul.h"

#include <tessera/linear.h>

/** Checks that all operands are on one device; NULL operands are skipped. */
tsr_status tsr_layer_check_devices(const char *caller, const tsr_tensor *const *operands, const char *const *names,
                                   int count);

/** The choice of this rank alone; on a device other than the host it is empty. */
tsr_status tsr_layer_choose(tsr_context *context, tsr_device device, tsr_choice *out);

/** Bytes of memory that tsr_layer_site() divides into packing and gemm workspace. */
size_t tsr_layer_needs_bytes(const tsr_matmul_needs *needs);

/** The site of products that have these needs, and tsr_layer_needs_bytes() of `memory`; on the host
 * `choice` computes them. */
tsr_matmul_site tsr_layer_site(tsr_device device, const tsr_choice *choice, const tsr_matmul_needs *needs, void *memory,
                               tsr_stream stream);

/** Allocates memory on `device` for one call, in the order of the device's default stream if it has
 * one; `*out` is NULL for 0 bytes. */
tsr_status tsr_layer_workspace_create(tsr_context *context, tsr_device device, size_t bytes, void **out);

/** Releases memory of tsr_layer_workspace_create(), with the same arguments; NULL is fine. */
void tsr_layer_workspace_destroy(tsr_context *context, tsr_device device, void *workspace, size_t bytes);

#endif
