/**
 * @file
 * A redistribution from one layout to another, planned once and executed many times.
 *
 * Building a plan is host arithmetic: it neither communicates nor touches a device, and every rank
 * derives the same schedule by itself. MPI_Alltoallw with datatypes and cudecompTranspose are the
 * nearest relatives. Immutable, so shared freely between threads.
 */
#ifndef TESSERA_PLAN_H
#define TESSERA_PLAN_H

#include <tessera/cost.h>
#include <tessera/layout.h>
#include <tessera/profile.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A planned redistribution. */
typedef struct tsr_plan tsr_plan;

/** How boxes travel. Direct: read straight out of the peers' memory (engines that can). Message:
 * packed, one message per peer, unpacked. */
typedef enum tsr_mode { TSR_MODE_DIRECT = 0, TSR_MODE_MESSAGE } tsr_mode;

/** For tsr_plan_options.rank: the rank of the communicator that the plan is over
 * (tsr_plan_create()); figures only if all meshes are abstract. */
#define TSR_RANK_DEFAULT (-2)
/** For tsr_plan_options.rank: nobody's plan; it says what holds for all ranks
 * (tsr_plan_in_place()), has no bytes, and cannot be executed. */
#define TSR_RANK_NONE (-1)

/** What is made least. Bytes: those that cross ranks, ties broken by time. Time: seconds by the
 * cost profile, also where that takes more bytes. */
typedef enum tsr_objective { TSR_OBJECTIVE_BYTES = 0, TSR_OBJECTIVE_TIME } tsr_objective;

/**
 * Rank order: floating sums, averages and products are taken in ascending rank order, so that
 * replicas and engines agree bit for bit. Any order: an engine's own reductions may be used for
 * floating values too, also for min and max, where engines may treat NaNs and the sign of zeros in
 * their own way (for integers and bool they always may).
 */
typedef enum tsr_reduction_order {
    TSR_REDUCTION_RANK_ORDER = 0,
    TSR_REDUCTION_ANY_ORDER
} tsr_reduction_order;

/** Options of a plan. */
typedef struct tsr_plan_options {
    size_t size;   /**< sizeof(tsr_plan_options) */
    int64_t rank;  /**< whose part the plan is */
    tsr_mode mode; /**< what its mesh's engine cannot read directly is planned as messages in any
                        case */
    tsr_objective objective;
    size_t max_workspace; /**< bytes that tsr_plan_execute() may ask for on any rank: moves that
                               need more go in rounds; 0: no cap */
    tsr_nodes nodes;      /**< who shares a node, of all ranks of the meshes; all zero: what the
                               first source's mesh knows, else its destination's; if neither
                               does, one node holds all. A list is copied and sorted for each
                               plan: a long one belongs on the mesh (tsr_mesh_with_nodes()) */
    int no_split;         /**< 1: the communicator may not be split; then all its ranks execute,
                               also those outside the meshes */
    tsr_reduction_order reduction;
    const tsr_cost_profile *profile; /**< copied; NULL: the context's */
    tsr_profile *measured;           /**< in the place of `profile`, with tables; retained; NULL:
                                          by `profile` */
} tsr_plan_options;

/** The rank's own plan, in direct mode where the engine has it, for bytes, without a cap. */
#define TSR_PLAN_OPTIONS_INIT                                                                      \
    {                                                                                              \
        sizeof(tsr_plan_options), TSR_RANK_DEFAULT, TSR_MODE_DIRECT, TSR_OBJECTIVE_BYTES, 0,       \
            {0, 0, 0}, 0, TSR_REDUCTION_RANK_ORDER, 0, 0                                           \
    }

/**
 * Plans `src` -> `dst`; both describe the same global shape and dtype, their meshes may differ.
 * Both are retained. The caller owns `*out` and frees it with tsr_plan_destroy(). `options` may be
 * NULL. Does not communicate.
 *
 * The plan is over the communicator of the meshes. Where these have several, which descend from one
 * by tsr_comm_split(), it is over the nearest from which all descend: the plan's layouts are then
 * like `src` and `dst`, but number ranks as that communicator does, which all of its ranks pass to
 * tsr_plan_prepare() and tsr_plan_execute(). Ranks of abstract meshes, and those that `options`
 * names, are numbered so already. Nodes are then those that this communicator knows, unless
 * `options` names others: what tsr_mesh_with_nodes() said of a mesh over another one does not
 * count.
 *
 * TSR_ERROR_ARGUMENT: shapes or dtypes differ, the meshes' communicators do not descend from one,
 * listed nodes leave out a rank, this rank would receive or send more than 2^61 bytes, or its plan
 * takes more than tsr_context_options.plan_entries (the sentence says about how many).
 */
TSR_API tsr_status tsr_plan_create(const tsr_layout *src, const tsr_layout *dst,
                                   const tsr_plan_options *options, tsr_plan **out);

/**
 * Plans `count` moves that are made together, as a model's parameters are: src[i] -> dst[i].
 * Between two ranks they share one message, and one pair of meetings serves all. Shapes and dtypes
 * may differ from move to move, and so may meshes; the plan is over one communicator for all. What
 * takes a tensor of a plan takes an array of `count` then. The arrays are read during the call, the
 * layouts retained. Otherwise as tsr_plan_create(); the bytes of all moves together may be at most
 * 2^62.
 */
TSR_API tsr_status tsr_plan_create_batch(size_t count, const tsr_layout *const *src,
                                         const tsr_layout *const *dst,
                                         const tsr_plan_options *options, tsr_plan **out);

/** One reference more, and one back (NULL is fine). Any thread. */
TSR_API tsr_plan *tsr_plan_retain(tsr_plan *plan);

TSR_API void tsr_plan_destroy(tsr_plan *plan); /**< gives one reference back */

/** How many moves the plan makes: 1, or what tsr_plan_create_batch() was given. */
TSR_API size_t tsr_plan_count(const tsr_plan *plan);

/** The layouts of move `item`; borrowed. TSR_ERROR_ARGUMENT: there is no such move. */
TSR_API tsr_status tsr_plan_layouts(const tsr_plan *plan, size_t item, const tsr_layout **src,
                                    const tsr_layout **dst);

TSR_API const tsr_layout *tsr_plan_source(const tsr_plan *plan); /**< of the first move; borrowed */
TSR_API const tsr_layout *tsr_plan_destination(const tsr_plan *plan); /**< likewise */

/**
 * Bytes of workspace that tsr_plan_execute() needs on this rank, aligned to 64 as tsr_comm_alloc()
 * gives them. What tsr_plan_prepare() allocates comes on top, is the communicator's, and does not
 * count for max_workspace: copies of tensors where ranks are processes, and host memory for
 * reductions that add up inside nodes first (tessera/mpi.h says how much).
 */
TSR_API size_t tsr_plan_workspace_bytes(const tsr_plan *plan);

/** Bytes that this rank receives from, and sends to, other ranks in one execution, packing and
 * staging not counted twice. */
TSR_API int64_t tsr_plan_bytes_received(const tsr_plan *plan);

TSR_API int64_t tsr_plan_bytes_sent(const tsr_plan *plan); /**< to other ranks */

/**
 * 1 exactly where source and destination may be one pointer: equal meshes, the same cuts on every
 * mesh dim of size > 1, a difference at most in Replicate and Partial; for a batch, in every move.
 */
TSR_API int tsr_plan_in_place(const tsr_plan *plan);

/**
 * Collective over `comm`: makes the groups of ranks that the plan needs, keeps them in `comm`
 * (keyed by their ranks, shared by all plans and slices), and compares the plan across ranks. Ranks
 * whose plans belong to other slices of the same communicator take part with theirs. To be called
 * once per plan and communicator; a second call does no harm. TSR_ERROR_STATE: the plan is another
 * rank's, or over a communicator that calls ranks of its meshes otherwise than `comm`, with which
 * it descends from one. A rank that fails, with `plan` NULL too, tells its peers: TSR_ERROR_PEER.
 */
TSR_API tsr_status tsr_plan_prepare(const tsr_plan *plan, tsr_comm *comm);

/**
 * Collective over the plan's ranks: moves `src` (this rank's local tensor under the source layout)
 * into `dst` (under the destination layout). Strides are free. `workspace` has `bytes` >=
 * tsr_plan_workspace_bytes() (NULL where that is 0) and is on the tensors' device. Allocates
 * nothing, plans nothing, and on a device with streams waits for no stream: it enqueues, in the
 * order that tessera.h says. Only the first execution on a device makes the events for that, which
 * `comm` keeps. A rank outside the source (destination) mesh may pass NULL for `src` (`dst`); ranks
 * outside both return at once. After return, in stream order, `src` may be overwritten.
 * TSR_ERROR_STATE: the plan was not prepared on `comm`, is another rank's, or over other ranks.
 * TSR_ERROR_ARGUMENT: a tensor's shape, dtype or device does not fit, the strides of `dst` make its
 * elements overlap (tsr_tensor_overlaps()), src and dst overlap where tsr_plan_in_place() is 0, the
 * host is given a stream, or ranks that read each other's memory bring different kinds of device or
 * differ in what captures their streams. TSR_ERROR_UNSUPPORTED: this rank's device does not reach a
 * peer's.
 *
 * By messages, ranks first compare what they call and tell each other whether all can. They do not
 * where an engine of messages has TSR_COMM_UNCHECKED (sys/comm.h), nor with tensors on a device
 * with streams, so that the call only enqueues. Then what differs between ranks is the caller's
 * fault, tensors without gaps must be so on all ranks or on none, and a rank that brings no tensor
 * goes by `stream`, which it gives as the others do, or by what it did last. A rank that fails by
 * itself while others wait for its bytes gets its own status at once and aborts `comm`, which its
 * later calls say; its peers end with the engine's timeout.
 */
TSR_API tsr_status tsr_plan_execute(const tsr_plan *plan, tsr_comm *comm, const tsr_tensor *src,
                                    const tsr_tensor *dst, void *workspace, size_t bytes,
                                    tsr_stream stream);

/**
 * tsr_plan_execute() in two halves, so that a rank can do something else while the others come and,
 * where the engine can, while bytes travel. Between them `src` is not written, `dst` and
 * `workspace` are not touched, by no stream, and `comm` serves no other call. Start waits for
 * nobody in direct mode; by messages ranks agree first, where they do at all, and the first round
 * is packed and sent, or the engine's own collective is called, which may wait for peers. One
 * execution is started at a time; the tensors' descriptors are copied. What fails on one rank is
 * told to all by whichever half finds it, or aborts, as long as others wait for its bytes: after an
 * error of start there is nothing to finish. TSR_ERROR_STATE: not prepared, already started, or
 * (finish) not started.
 */
TSR_API tsr_status tsr_plan_start(const tsr_plan *plan, tsr_comm *comm, const tsr_tensor *src,
                                  const tsr_tensor *dst, void *workspace, size_t bytes,
                                  tsr_stream stream);

/** The second half of tsr_plan_start(). */
TSR_API tsr_status tsr_plan_finish(const tsr_plan *plan, tsr_comm *comm);

#ifdef __cplusplus
}
#endif

#endif
