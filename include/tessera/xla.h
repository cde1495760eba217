/**
 * @file
 * Custom calls for XLA, in libtessera-xla: redistributions, collectives and parallel linear layers
 * as typed FFI handlers. XLA compiles them into a program as `stablehlo.custom_call`
 * (`api_version = 4`), and JAX calls them by `jax.ffi.ffi_call`. docs/xla.md shows both.
 *
 * @par Ranks
 * A handler is called once for each device of a launch, inside `jax.shard_map` or
 * `sdy.manual_computation`: operands and results are the device's own parts. The call of a device
 * is one rank, whichever thread makes it. All devices of `mesh` make the call; they meet by run,
 * call and mesh, never by the order in which calls come, so independent calls of one program may
 * start in another order on each device.
 *
 * @par Attributes that every handler takes
 * | name | type | meaning |
 * | --- | --- | --- |
 * | `mesh` | string | the mesh: "tp=4", "dp=2,tp=2" (tsr_mesh_parse()); its ranks are 0, 1, .. |
 * | `devices` | i64 array | the device ordinal of each rank, in row-major order of the mesh; none:
 * rank r is device r |
 * | `timeout_ms` | i64 | how long a device waits for the others; 0: for ever; none: 60000 |
 * | `channel` | i64 | none: the library makes communicators of threads, whose devices are all in
 * this process. A number: the communicator with that number of those that the host lends
 * (tsr_xla_lent), which also has the timeout |
 *
 * Arrays may be of i32 too, and so may numbers. An attribute that the handler does not know is
 * refused.
 *
 * @par Operands
 * Dense and row-major, as XLA gives them; the FFI does not tell of other `operand_layouts` that a
 * call asks for. XLA has one shape for all devices: where a layout gives a rank less than others,
 * its part is the leading box of the operand or result, and the rest of the result is set to zero.
 * Dtypes are all that Tessera has (dtype.h); PRED is bool.
 *
 * @par Errors
 * A device that fails returns its sentence, and the others return one that names it. A device that
 * does not come within the timeout is named by the others. A program can be launched again after
 * an error. A device that fails before its peers can be told aborts the communicator, also one that
 * the host has lent.
 *
 * @par Stages
 * Handlers serve the stages INSTANTIATE and EXECUTE, and are registered for both: attributes are
 * checked and kept when an executable is made, plans at the first launch.
 */
#ifndef TESSERA_XLA_H
#define TESSERA_XLA_H

#include <tessera/comm.h>

#ifdef __cplusplus
extern "C" {
#endif

struct XLA_FFI_Api;
struct XLA_FFI_CallFrame;
struct XLA_FFI_Error;

/**
 * Moves tensors from one layout to another: P to R is an all-reduce, S(0) to S(1) an all-to-all.
 *
 * - `from`, `to`: strings, the placements of operand and result on `mesh`: "S(0),R".
 * - `shape`: i64 array, the global shape. None: each dim has the operand's length times the number
 *   of parts that `from` cuts it into, which is right where all parts have equal lengths.
 * - or, in place of these and `mesh`: `plan`, a string or an array of u8 with the bytes of
 *   tsr_plan_save(). A plan of several moves takes as many operands and gives as many results.
 */
TSR_API struct XLA_FFI_Error *tsr_xla_redistribute(struct XLA_FFI_CallFrame *frame);

/**
 * Reduces the operand over the ranks along mesh dims, in ascending order of ranks with one
 * rounding; all get the result, which has the operand's shape.
 *
 * - `dims`: string, the mesh dims: "tp", or "dp,tp" in mesh order; none or "": all.
 * - `op`: string, "sum" (or none), "avg", "min", "max" or "prod".
 */
TSR_API struct XLA_FFI_Error *tsr_xla_all_reduce(struct XLA_FFI_CallFrame *frame);

/** Puts the operands of the ranks along `dims` one after the other in dim `axis` (i64; none: 0).
 * With n such ranks the result is n times as long in that dim. */
TSR_API struct XLA_FFI_Error *tsr_xla_all_gather(struct XLA_FFI_CallFrame *frame);

/** Reduces as tsr_xla_all_reduce() does (`dims`, `op`); of the result rank i along `dims` gets part
 * i in dim `axis` (i64; none: 0), which the number of ranks divides. */
TSR_API struct XLA_FFI_Error *tsr_xla_reduce_scatter(struct XLA_FFI_CallFrame *frame);

/** Cuts the operand in dim `split_axis` into one part for each rank along `dims`, and puts the
 * parts that come in one after the other in dim `concat_axis`, as jax.lax.all_to_all() with
 * tiled=True. Both are i64; none: 0. The number of ranks divides the length of `split_axis`. */
TSR_API struct XLA_FFI_Error *tsr_xla_all_to_all(struct XLA_FFI_CallFrame *frame);

/**
 * A column-parallel linear layer (linear.h): y = x w^T + b. Operands x (.., in), w (out, in) cut in
 * `out`, and b (out) cut as well, which may be left out. Result y, cut in its last dim: nothing
 * moves unless `y` says otherwise.
 *
 * - `dims`: string, the mesh dims that cut the weight; none: the last mesh dim. Along the other
 *   mesh dims the weight is replicated.
 * - `x`, `y`: strings, the placements of x and y. None: along `dims` x is R and y S(last), along
 *   the others both are S(0).
 * - `x_shape`, `w_shape`: i64 arrays, the global shapes; none: as `shape` in
 *   tsr_xla_redistribute().
 */
TSR_API struct XLA_FFI_Error *tsr_xla_linear_column(struct XLA_FFI_CallFrame *frame);

/**
 * The gradients of tsr_xla_linear_column(). Operands x, w, dy; results dx, dw and, if there are
 * three, db, the gradient of b. Attributes are those of the forward call, and:
 *
 * - `dx`, `dw`, `db`: strings, the placements that the gradients shall have; none: those of x, w
 *   and b, reduced. "P" leaves a gradient unreduced.
 *
 * dy is laid out as y's gradient (tsr_layout_gradient()): as y, but R where y is P.
 */
TSR_API struct XLA_FFI_Error *tsr_xla_linear_column_backward(struct XLA_FFI_CallFrame *frame);

/** A row-parallel linear layer, as tsr_xla_linear_column() with these differences: w (out, in) is
 * cut in `in`, b is replicated, x without `x` is S(last) along `dims`, and y without `y` is R along
 * `dims`, by an all-reduce. `y` "S(0)" is a reduce-scatter, "P" leaves the terms. */
TSR_API struct XLA_FFI_Error *tsr_xla_linear_row(struct XLA_FFI_CallFrame *frame);

/** The gradients of tsr_xla_linear_row(), as tsr_xla_linear_column_backward(). */
TSR_API struct XLA_FFI_Error *tsr_xla_linear_row_backward(struct XLA_FFI_CallFrame *frame);

/**
 * Registers all handlers above, each under its own name, for hosts that reach XLA's registry only
 * through PJRT: a handler that is registered by PJRT's FFI extension under any name. While it is
 * registered, XLA asks for its metadata, and it registers the others for the platform "Host".
 * Called in a program it returns an error. JAX registers the handlers themselves.
 */
TSR_API struct XLA_FFI_Error *tsr_xla_register(struct XLA_FFI_CallFrame *frame);

/**
 * The handlers for GPUs: those of the same names without `gpu`, under whose names they are
 * registered for the platform "CUDA". Operands, results and attributes are the same, and:
 *
 * - `devices`: the ids of devices as XLA's collectives number them, replica * partitions +
 *   partition, in rank order; none: rank r is id r. Where the program has more devices than the
 *   mesh has ranks, the ids of all its meshes one after another.
 * - `channel`: XLA's communication id; none: 0. Calls with the same one share a communicator with
 *   each other, and with XLA's own collectives of the same id.
 * - `plan`: of a plan with `options.mode` TSR_MODE_MESSAGE (plan.h).
 *
 * XLA (jaxlib 0.12 and newer) lends the communicator, which is NCCL's and is not split, by its
 * FFI's extension for collectives. The handlers serve the stages INSTANTIATE, PREPARE, INITIALIZE
 * and EXECUTE, and are registered for all of them. libtessera-cuda is opened at PREPARE. A call
 * only enqueues on XLA's stream, but for its first launch, which plans. A device that does not come
 * is waited for by the GPU: `timeout_ms` holds for the first launch alone, and errors name no rank.
 */
TSR_API struct XLA_FFI_Error *tsr_xla_gpu_redistribute(struct XLA_FFI_CallFrame *frame);

/** See tsr_xla_gpu_redistribute(). */
TSR_API struct XLA_FFI_Error *tsr_xla_gpu_all_reduce(struct XLA_FFI_CallFrame *frame);

/** See tsr_xla_gpu_redistribute(). */
TSR_API struct XLA_FFI_Error *tsr_xla_gpu_all_gather(struct XLA_FFI_CallFrame *frame);

/** See tsr_xla_gpu_redistribute(). */
TSR_API struct XLA_FFI_Error *tsr_xla_gpu_reduce_scatter(struct XLA_FFI_CallFrame *frame);

/** See tsr_xla_gpu_redistribute(). */
TSR_API struct XLA_FFI_Error *tsr_xla_gpu_all_to_all(struct XLA_FFI_CallFrame *frame);

/** See tsr_xla_gpu_redistribute(). */
TSR_API struct XLA_FFI_Error *tsr_xla_gpu_linear_column(struct XLA_FFI_CallFrame *frame);

/** See tsr_xla_gpu_redistribute(). */
TSR_API struct XLA_FFI_Error *tsr_xla_gpu_linear_column_backward(struct XLA_FFI_CallFrame *frame);

/** See tsr_xla_gpu_redistribute(). */
TSR_API struct XLA_FFI_Error *tsr_xla_gpu_linear_row(struct XLA_FFI_CallFrame *frame);

/** See tsr_xla_gpu_redistribute(). */
TSR_API struct XLA_FFI_Error *tsr_xla_gpu_linear_row_backward(struct XLA_FFI_CallFrame *frame);

/**
 * Registers the handlers for GPUs, as tsr_xla_register() does those for CPUs. JAX registers the
 * handlers themselves.
 */
TSR_API struct XLA_FFI_Error *tsr_xla_gpu_register(struct XLA_FFI_CallFrame *frame);

/** Communicators that a host lends to the calls of its launches: user data of an execution, under
 * the type id of tsr_xla_lent_type(). All of it is borrowed until the launch has ended. Launches of
 * one program that lend do not overlap on a device, which XLA's CPU client sees to. Every launch of
 * a program whose calls have a `channel` lends them: XLA with an FFI before 0.3 reads through NULL
 * where a launch has no user data at all. */
typedef struct tsr_xla_lent {
    size_t size;            /**< sizeof(tsr_xla_lent) */
    int64_t ranks;          /**< ranks of each communicator: as many as the calls' mesh has */
    int64_t channels;       /**< the number of communicators. Calls that may run at the same time
                                 are given different ones, by their attribute `channel` */
    tsr_comm *const *comms; /**< comms[channel * ranks + rank]; NULL for ranks that are not in this
                                 process */
} tsr_xla_lent;

/**
 * The type id under which XLA keeps a tsr_xla_lent in an execution's context. `api` is the API of
 * the XLA that runs the calls; NULL: that of the only XLA of this process whose handlers have been
 * registered. Any thread. TSR_ERROR_STATE: `api` is NULL, and no XLA or several have registered.
 */
TSR_API tsr_status tsr_xla_lent_type(const struct XLA_FFI_Api *api, int64_t *type_id);

#ifdef __cplusplus
}
#endif

#endif
