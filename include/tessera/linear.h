/**
 * @file
 * Linear layers on dtensors: y = x w^T + b, with w of shape (out_features, in_features).
 *
 * Column-parallel: w Shard(0), b Shard(0), y sharded in its last dim. Row-parallel: w Shard(1), b
 * Replicate, x sharded in its last dim, y Partial until it is reduced. The rule is the factor
 * string "linear: b k, o k + o -> b o": per mesh dim, a factor sharded alike in all operands that
 * have it shards the result; sharded k yields Partial(sum); one of x and w may be Partial(sum) or
 * Partial(avg) where the other is Replicate, and y is then, too; b is cut as y's last dim is, and
 * Replicate elsewhere; anything else is refused with the layout that would work. (PyTorch:
 * ColwiseParallel and RowwiseParallel; Megatron-LM: ColumnParallelLinear, RowParallelLinear.)
 */
#ifndef TESSERA_LINEAR_H
#define TESSERA_LINEAR_H

#include <tessera/dtensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Collective: x (.., in) times w (out, in) transposed, plus b (out) or NULL. `y_placements` NULL
 * gives the rule's own layout (Partial for row-parallel, the bias added on coordinate 0 of each
 * Partial(sum) dim, once); otherwise it has as many entries as the mesh has dims, and y is
 * redistributed to them: Replicate is an all-reduce, Shard a reduce-scatter.
 *
 * y's dtype is that of x, w and b, or f32 where these are several of f32, f16 and bf16; f64 goes
 * with f64 alone. On the host all of these, in any mixture: narrow operands are widened exactly, an
 * f32 operand is never rounded, sums are f32, and y is rounded once. Up to 7 rows of x are
 * multiplied in one order of sums, the same whatever the processor, the dtypes and the other rows:
 * a row of y has the same bits alone and among others. More rows, and f64, the first BLAS of the
 * context multiplies (sys/blas.h), with one thread a call. On another device what its table's gemm
 * takes (sys/device.h; GPUs: f64, f32, f16 and bf16, x and w of one dtype), else
 * TSR_ERROR_UNSUPPORTED. There work is enqueued on the device's default stream (NULL), in whose
 * order y is ready, and what the call needs for itself comes and goes in that order. The host waits
 * for the device only where memory belongs to no stream: y's, and what the first redistribution
 * between two layouts keeps. TSR_ERROR_ARGUMENT: meshes, dtypes, devices or features that do not
 * match, or layouts that the rule does not take.
 *
 * `y_placements` are given on all ranks or on none. With them a rank that fails before y moves,
 * whatever the fault, tells its peers: TSR_ERROR_PEER with that rank and its sentence. Where x, w
 * and b are all NULL it has no communicator to tell it over. On the host ranks then compare what
 * they multiply by, and take the best BLAS that all have, so that replicas have equal bits;
 * TSR_ERROR_UNSUPPORTED: they have none in common. Without them nothing is communicated, and each
 * rank takes the first of its context.
 */
TSR_API tsr_status tsr_linear(const tsr_dtensor *x, const tsr_dtensor *w, const tsr_dtensor *b,
                              const tsr_placement *y_placements, tsr_dtensor **y);

/**
 * Collective: gradients of tsr_linear(). `dy` is in y's gradient layout (tsr_layout_gradient()):
 * Replicate where y was Partial, without Partial of its own; where that is not the gradient layout
 * of the rule's own result, it is redistributed to it first. dx = dy w, dw = dy^T x summed over
 * batch dims, db = the sum of dy over batch dims, as a product of a row of ones with dy: in the
 * order of the device's gemm, which is the same whenever shapes, strides and alignment are. Any of
 * dx, dw, db may be NULL: it is not computed. A gradient has the dtype of its operand, and dy has
 * y's; sums are rounded once for each product. Placements NULL: the operand's own gradient layout,
 * reduced if the rule leaves Partial; otherwise those, one per mesh dim, so `P` leaves it
 * unreduced. Devices, streams and the BLAS as for tsr_linear() with placements. A rank that fails
 * tells its peers, unless x, w, b and dy are all NULL there.
 */
TSR_API tsr_status tsr_linear_backward(const tsr_dtensor *x, const tsr_dtensor *w,
                                       const tsr_dtensor *b, const tsr_dtensor *dy,
                                       const tsr_placement *dx_placements,
                                       const tsr_placement *dw_placements,
                                       const tsr_placement *db_placements, tsr_dtensor **dx,
                                       tsr_dtensor **dw, tsr_dtensor **db);

/** A forward layer, planned once and executed many times. Immutable but for its prepared state; one
 * execution in flight. As long as any plan for the host lives, an OpenBLAS of the process that it
 * may multiply by is set to one thread a call; the last one restores the count that was. */
typedef struct tsr_linear_plan tsr_linear_plan;

/**
 * Collective (it prepares the redistribution): plans tsr_linear() for these layouts and tensors on
 * the host; `b` may be NULL, `y` is the layout wanted or NULL for the rule's own. Layouts are
 * retained. Ranks agree on a BLAS as in tsr_linear() with placements. A rank that fails tells its
 * peers: TSR_ERROR_PEER with that rank and its sentence; it cannot where no layout is over a
 * communicator.
 */
TSR_API tsr_status tsr_linear_plan_create(const tsr_layout *x, const tsr_layout *w,
                                          const tsr_layout *b, const tsr_layout *y,
                                          tsr_linear_plan **out);

/** Likewise for tensors on `device`, this rank's, whose driver must outlive the plan. It is asked
 * how much workspace its products want, and may be opened for that. TSR_ERROR_UNSUPPORTED: it
 * cannot multiply the layouts' dtype. */
TSR_API tsr_status tsr_linear_plan_create_on(const tsr_layout *x, const tsr_layout *w,
                                             const tsr_layout *b, const tsr_layout *y,
                                             tsr_device device, tsr_linear_plan **out);
TSR_API void tsr_linear_plan_destroy(tsr_linear_plan *plan); /**< NULL is fine */

/** The layout of the result; borrowed. */
TSR_API const tsr_layout *tsr_linear_plan_result(const tsr_linear_plan *plan);

/** Bytes of workspace that an execution needs on this rank, aligned to 64: for y before it moves,
 * for the move, and for the products. */
TSR_API size_t tsr_linear_plan_workspace_bytes(const tsr_linear_plan *plan);

/**
 * Collective: one forward pass on local tensors on the plan's device, whose strides are free; no
 * two elements of `y` overlap. Allocates nothing, and on a device with streams only enqueues on
 * `stream`, as tsr_plan_execute() does; `workspace` has at least the plan's bytes and is on the
 * tensors' device. `b` is NULL exactly where the plan has none; y does not overlap the others. A
 * rank outside the mesh may pass NULL for all tensors. A rank that fails tells its peers as
 * tsr_plan_execute() does, where y moves on; with `plan` NULL it cannot.
 */
TSR_API tsr_status tsr_linear_plan_execute(const tsr_linear_plan *plan, const tsr_tensor *x,
                                           const tsr_tensor *w, const tsr_tensor *b,
                                           const tsr_tensor *y, void *workspace, size_t bytes,
                                           tsr_stream stream);

/** The backward of a layer, planned likewise. */
typedef struct tsr_linear_backward_plan tsr_linear_backward_plan;

/**
 * Collective: plans tsr_linear_backward() for these layouts and tensors on `device` ({NULL, 0} is
 * the host). `b` may be NULL where `db` is. `dy` NULL: the gradient layout of the y that the rule
 * leaves, with which nothing has to move before the products; in other layouts it is redistributed
 * to it. `dx`, `dw` and `db` are the layouts wanted, of which tsr_layout_gradient() of the
 * operand's is one; NULL: not computed. Layouts are retained, the driver must outlive the plan.
 * Errors as tsr_linear_backward(); a rank that fails tells its peers, unless no layout there is
 * over a communicator.
 */
TSR_API tsr_status tsr_linear_backward_plan_create(const tsr_layout *x, const tsr_layout *w,
                                                   const tsr_layout *b, const tsr_layout *dy,
                                                   const tsr_layout *dx, const tsr_layout *dw,
                                                   const tsr_layout *db, tsr_device device,
                                                   tsr_linear_backward_plan **out);
TSR_API void tsr_linear_backward_plan_destroy(tsr_linear_backward_plan *plan); /**< NULL is fine */

/** The layout that dy is expected in; borrowed. */
TSR_API const tsr_layout *tsr_linear_backward_plan_source(const tsr_linear_backward_plan *plan);

/** As tsr_linear_plan_workspace_bytes(). */
TSR_API size_t tsr_linear_backward_plan_workspace_bytes(const tsr_linear_backward_plan *plan);

/** Collective: one backward pass, as tsr_linear_plan_execute() runs a forward one. `x` is read for
 * dw and `w` for dx: either may be NULL where the plan has not that gradient. `dx`, `dw` and `db`
 * are NULL exactly where the plan has none, and overlap nothing. */
TSR_API tsr_status tsr_linear_backward_plan_execute(const tsr_linear_backward_plan *plan,
                                                    const tsr_tensor *x, const tsr_tensor *w,
                                                    const tsr_tensor *dy, const tsr_tensor *dx,
                                                    const tsr_tensor *dw, const tsr_tensor *db,
                                                    void *workspace, size_t bytes,
                                                    tsr_stream stream);

/** The rule as data: the layout that the op gives y for these operands. Pure. Errors as
 * tsr_linear(). */
TSR_API tsr_status tsr_linear_propagate(const tsr_layout *x, const tsr_layout *w,
                                        const tsr_layout *b, tsr_layout **y);

#ifdef __cplusplus
}
#endif

#endif
