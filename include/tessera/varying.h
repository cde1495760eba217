/**
 * @file
 * Sums that a model writes, and values whose gradient has a term on each rank. The f and g of
 * Megatron; all_reduce and mark_varying of JAX, spmd_types' R and I. What forms, layouts and errors
 * of ops have in common is told in ops.h.
 *
 * A gradient of a Replicate tensor is Replicate where every rank has done the same work
 * (*invariant*), or Partial where each rank has a term of it (*varying*): tsr_X_backward() takes
 * either as `dout`.
 */
#ifndef TESSERA_VARYING_H
#define TESSERA_VARYING_H

#include <tessera/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @{ */
/** Collective: x, Replicate along the mesh dims on which it is Partial; other placements stay. Any
 * dtype. `partial` says which gradient a program gives `out`: 0, Replicate, which becomes x's as it
 * is; 1, Partial, whose terms the backward adds, collectively. tsr_all_reduce_backward() takes
 * both. */
TSR_API tsr_status tsr_all_reduce(const tsr_dtensor *x, int partial, tsr_dtensor **out);
TSR_API tsr_status tsr_all_reduce_into(const tsr_dtensor *x, int partial, tsr_dtensor *out);
TSR_API tsr_status tsr_all_reduce_backward(const tsr_dtensor *x, int partial,
                                           const tsr_dtensor *dout, tsr_dtensor **dx);
/** @} */

/** @{ */
/** x, as a value whose gradient is Partial where x is Replicate. Forward it copies, and meets
 * nobody; backward is collective: the terms of `dout` are added. */
TSR_API tsr_status tsr_vary(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_vary_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_vary_backward(const tsr_dtensor *x, const tsr_dtensor *dout,
                                     tsr_dtensor **dx);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
