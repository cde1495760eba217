/**
 * @file
 * Linear layers on dtensors: y = x w^T + b, with w of shape (out_features, in_features).
 *
 * @par Parallel forms
 * Column-parallel: w Shard(0), b Shard(0), y sharded in its last dim. Row-parallel: w Shard(1), b
 * Replicate, x sharded in its last dim, y Partial until it is reduced. (PyTorch: ColwiseParallel
 * and RowwiseParallel; Megatron-LM: ColumnParallelLinear, RowParallelLinear.)
 *
 * @par Rule
 * The rule is the factor string "linear: b k, o k + o -> b o". For each mesh dim:
 * - A factor that is sharded alike in all operands that have it shards the result.
 * - A sharded k makes y Partial(sum).
 * - One of x and w may be Partial(sum) or Partial(avg) where the other is Replicate; y is then
 *   Partial with the same op.
 * - b is cut as y's last dim is, and Replicate elsewhere.
 * - Anything else is refused, with the layout that would work.
 */
#ifndef TESSERA_LINEAR_H
#define TESSERA_LINEAR_H

#include <tessera/dtensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Collective: x (.., in) times w (out, in) transposed, plus b (out), which may be NULL. The caller
 * owns `*y`.
 *
 * @par Layout of y
 * `y_placements` NULL gives the rule's own layout: Partial for row-parallel, where the bias is
 * added once, on coordinate 0 of each Partial(sum) dim. Otherwise it has as many entries as the
 * mesh has dims, and y is redistributed to them: Replicate is an all-reduce, Shard a
 * reduce-scatter. `y_placements` are given on all ranks or on none.
 *
 * @par Dtypes
 * y's dtype is that of x, w and b, or f32 if these are several of f32, f16 and bf16; f64 goes with
 * f64 alone. The host takes any mixture of these: narrow operands are widened exactly, an f32
 * operand is never rounded, sums are f32, and y is rounded once.
 *
 * @par Products
 * On the host, up to 7 rows of x are multiplied in one order of sums, whatever the processor, the
 * dtypes and the other rows: a row of y has the same bits alone and among others. More rows, and
 * f64, go to the first BLAS of the context (sys/blas.h), with one thread per call. Another device
 * takes what its table's gemm takes (sys/device.h; GPUs: f64, f32, f16 and bf16, x and w of one
 * dtype); else TSR_ERROR_UNSUPPORTED. Its work is enqueued on the device's default stream (NULL),
 * in whose order y is ready and temporary memory is allocated and freed. The host waits for the
 * device only for memory that belongs to no stream: y's, and what the first redistribution between
 * two layouts keeps.
 *
 * @par Communication
 * With `y_placements`, a rank that fails before y moves, for any reason, tells its peers: they get
 * TSR_ERROR_PEER with that rank and its sentence. If its x, w and b are all NULL it has no
 * communicator to tell them over. On the host, ranks also compare the BLAS libraries that they have
 * and take the best one that all have, so that replicas have equal bits; TSR_ERROR_UNSUPPORTED:
 * they have none in common. Without `y_placements` nothing is communicated, and each rank takes the
 * first BLAS of its context.
 *
 * TSR_ERROR_ARGUMENT: meshes, dtypes, devices or features that do not match, or layouts that the
 * rule does not take.
 */
TSR_API tsr_status tsr_linear(const tsr_dtensor *x, const tsr_dtensor *w, const tsr_dtensor *b,
                              const tsr_placement *y_placements, tsr_dtensor **y);

/**
 * Collective: gradients of tsr_linear(): dx = dy w; dw = dy^T x, summed over batch dims; db = the
 * sum of dy over batch dims. Any of dx, dw, db may be NULL: it is not computed. The caller owns the
 * results.
 *
 * `dy` is in y's gradient layout (tsr_layout_gradient()): Replicate where y was Partial, and no
 * Partial of its own. If that is not the gradient layout of the rule's own result, dy is first
 * redistributed to it. dy has y's dtype.
 *
 * Each gradient has the dtype of its operand, and is rounded once per product. db is the product of
 * a row of ones with dy: its order of sums is that of the device's gemm, which is the same whenever
 * shapes, strides and alignment are.
 *
 * Placements NULL: the operand's own gradient layout, reduced if the rule leaves Partial. Otherwise
 * they have one entry per mesh dim and give the gradient's layout; `P` leaves it unreduced.
 *
 * Devices, streams and the BLAS as for tsr_linear() with placements. A rank that fails tells its
 * peers, unless its x, w, b and dy are all NULL.
 */
TSR_API tsr_status tsr_linear_backward(const tsr_dtensor *x, const tsr_dtensor *w,
                                       const tsr_dtensor *b, const tsr_dtensor *dy,
                                       const tsr_placement *dx_placements,
                                       const tsr_placement *dw_placements,
                                       const tsr_placement *db_placements, tsr_dtensor **dx,
                                       tsr_dtensor **dw, tsr_dtensor **db);

/** Gradients to which a backward adds, so that it accumulates them; a sum of these bits. */
typedef enum tsr_gradient_bits { TSR_ADD_DX = 1, TSR_ADD_DW = 2, TSR_ADD_DB = 4 } tsr_gradient_bits;

/**
 * Collective: tsr_linear_backward() with gradients that go into dtensors that exist, in the layouts
 * that these have; any of `dx`, `dw` and `db` may be NULL: it is not computed. A gradient whose bit
 * is in `adds` (tsr_gradient_bits) is added to what its dtensor holds; the others overwrite it.
 *
 * A gradient whose layout is that of the product, for example Partial for a weight that is
 * replicated over data-parallel ranks, is added by the product itself: in the accumulator of sums,
 * and rounded once. Otherwise it is moved first, then added as by tsr_dtensor_accumulate(), which
 * takes no Partial of prod, min or max (TSR_ERROR_UNSUPPORTED). It has the dtype of its operand or,
 * for an operand of f16 or bf16, f32, if the device's products can give f32. No gradient overlaps
 * another tensor. After an error the gradients are undefined.
 * Otherwise as tsr_linear_backward().
 */
TSR_API tsr_status tsr_linear_backward_into(const tsr_dtensor *x, const tsr_dtensor *w,
                                            const tsr_dtensor *b, const tsr_dtensor *dy,
                                            unsigned adds, tsr_dtensor *dx, tsr_dtensor *dw,
                                            tsr_dtensor *db);

/**
 * A forward layer, planned once and executed many times. Immutable except for its prepared state;
 * one execution may be in flight. While any plan for the host exists, an OpenBLAS of the process
 * that it may multiply with is set to one thread per call; destroying the last plan restores the
 * former count.
 */
typedef struct tsr_linear_plan tsr_linear_plan;

/**
 * Collective (it prepares the redistribution): plans tsr_linear() for these layouts and tensors on
 * the host. `b` may be NULL; `y` is the layout wanted, NULL: the rule's own. Layouts are retained.
 * The caller owns `*out`. Ranks agree on a BLAS as in tsr_linear() with placements. A rank that
 * fails tells its peers: they get TSR_ERROR_PEER with that rank and its sentence. It cannot if none
 * of its layouts is over a communicator.
 */
TSR_API tsr_status tsr_linear_plan_create(const tsr_layout *x, const tsr_layout *w,
                                          const tsr_layout *b, const tsr_layout *y,
                                          tsr_linear_plan **out);

/** tsr_linear_plan_create() for tensors on `device`, this rank's, whose driver must outlive the
 * plan. The device is asked how much workspace its products want, and may be opened for that.
 * TSR_ERROR_UNSUPPORTED: it cannot multiply the layouts' dtype. */
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
 * Collective: one forward pass on local tensors on the plan's device. Strides are free, except that
 * no two elements of `y` may overlap. `b` is NULL exactly where the plan has no bias. y does not
 * overlap the other tensors. A rank outside the mesh may pass NULL for all tensors. `workspace` has
 * at least the plan's bytes and is on the tensors' device.
 *
 * Allocates nothing, and on a device with streams only enqueues on `stream`, as tsr_plan_execute()
 * does. Where y moves, a rank that fails tells its peers as tsr_plan_execute() does; it cannot if
 * `plan` is NULL.
 */
TSR_API tsr_status tsr_linear_plan_execute(const tsr_linear_plan *plan, const tsr_tensor *x,
                                           const tsr_tensor *w, const tsr_tensor *b,
                                           const tsr_tensor *y, void *workspace, size_t bytes,
                                           tsr_stream stream);

/** The backward of a layer, planned once and executed many times, as a tsr_linear_plan is. */
typedef struct tsr_linear_backward_plan tsr_linear_backward_plan;

/**
 * Collective: plans tsr_linear_backward() for these layouts and tensors on `device` ({NULL, 0} is
 * the host). `b` may be NULL where `db` is. Layouts are retained; the driver must outlive the plan.
 * The caller owns `*out`.
 *
 * `dy` is the layout in which dy comes. NULL stands for the gradient layout of the y that the rule
 * leaves; the products need dy in this layout, so a dy in another layout is redistributed first.
 * `dx`, `dw` and `db` are the layouts that the gradients shall have, for example
 * tsr_layout_gradient() of the operand's layout; a gradient whose layout is NULL is not computed.
 * Their dtype is the operand's, or f32 for an operand of f16 or bf16.
 *
 * Errors as for tsr_linear_backward(). A rank that fails tells its peers, unless none of its
 * layouts is over a communicator.
 */
TSR_API tsr_status tsr_linear_backward_plan_create(const tsr_layout *x, const tsr_layout *w,
                                                   const tsr_layout *b, const tsr_layout *dy,
                                                   const tsr_layout *dx, const tsr_layout *dw,
                                                   const tsr_layout *db, tsr_device device,
                                                   tsr_linear_backward_plan **out);

TSR_API void tsr_linear_backward_plan_destroy(tsr_linear_backward_plan *plan); /**< NULL is fine */

/** The layout that dy is expected in; borrowed. */
TSR_API const tsr_layout *tsr_linear_backward_plan_source(const tsr_linear_backward_plan *plan);

/** Bytes of workspace that an execution needs on this rank, aligned to 64. */
TSR_API size_t tsr_linear_backward_plan_workspace_bytes(const tsr_linear_backward_plan *plan);

/** Collective: one backward pass, run as tsr_linear_plan_execute() runs a forward one. `x` is read
 * for dw and `w` for dx: either may be NULL where the plan lacks that gradient. `dx`, `dw` and `db`
 * are NULL exactly where the plan lacks them, and do not overlap any other tensor. */
TSR_API tsr_status tsr_linear_backward_plan_execute(const tsr_linear_backward_plan *plan,
                                                    const tsr_tensor *x, const tsr_tensor *w,
                                                    const tsr_tensor *dy, const tsr_tensor *dx,
                                                    const tsr_tensor *dw, const tsr_tensor *db,
                                                    void *workspace, size_t bytes,
                                                    tsr_stream stream);

/** Bytes of workspace that tsr_linear_backward_plan_accumulate() needs on this rank, aligned to 64,
 * at least tsr_linear_backward_plan_workspace_bytes(). */
TSR_API size_t tsr_linear_backward_plan_accumulate_bytes(const tsr_linear_backward_plan *plan);

/** Collective: tsr_linear_backward_plan_execute() that adds those gradients whose bits are in
 * `adds` (tsr_gradient_bits) to what `dx`, `dw` and `db` hold, as tsr_linear_backward_into() does;
 * the others it writes. All ranks give the same `adds`. `workspace` has at least
 * tsr_linear_backward_plan_accumulate_bytes(). */
TSR_API tsr_status tsr_linear_backward_plan_accumulate(const tsr_linear_backward_plan *plan,
                                                       unsigned adds, const tsr_tensor *x,
                                                       const tsr_tensor *w, const tsr_tensor *dy,
                                                       const tsr_tensor *dx, const tsr_tensor *dw,
                                                       const tsr_tensor *db, void *workspace,
                                                       size_t bytes, tsr_stream stream);

/** The rule as a function of layouts: the layout that the layer gives y for these operands. The
 * caller owns `*y`. Does not communicate. Errors as for tsr_linear(). */
TSR_API tsr_status tsr_linear_propagate(const tsr_layout *x, const tsr_layout *w,
                                        const tsr_layout *b, tsr_layout **y);

#ifdef __cplusplus
}
#endif

#endif
