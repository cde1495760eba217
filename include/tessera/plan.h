/**
 * @file
 * A redistribution from one layout to another, planned once and executed many times.
 *
 * Making a plan is host arithmetic: it neither communicates nor touches a device, and every rank
 * derives the same schedule by itself. Plans are immutable and so shared freely between threads.
 * MPI_Alltoallw with datatypes and cudecompTranspose are the nearest relatives.
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

/** How boxes travel. Direct: read straight from the peers' memory, on engines that can. Message:
 * packed, sent as one message per peer, and unpacked. */
typedef enum tsr_mode { TSR_MODE_DIRECT = 0, TSR_MODE_MESSAGE } tsr_mode;

/** For tsr_plan_options.rank: this process's rank in the communicator that the plan is over
 * (tsr_plan_create()). If all meshes are abstract, TSR_RANK_NONE. */
#define TSR_RANK_DEFAULT (-2)
/** For tsr_plan_options.rank: a plan of no rank. It tells what holds for all ranks
 * (tsr_plan_in_place()), has no bytes, and cannot be executed. */
#define TSR_RANK_NONE (-1)

/** What a plan minimises. Bytes: those that cross ranks, ties broken by time. Time: seconds by the
 * cost profile, even where that takes more bytes. */
typedef enum tsr_objective { TSR_OBJECTIVE_BYTES = 0, TSR_OBJECTIVE_TIME } tsr_objective;

/**
 * Rank order: floating sums, averages and products are taken in ascending rank order, so that
 * replicas and engines agree bit for bit. Any order: an engine's own reductions may be used for
 * floating values too, also for min and max, where engines may treat NaNs and the sign of zeros in
 * their own way. For integers and bool an engine's own reductions may always be used.
 */
typedef enum tsr_reduction_order {
    TSR_REDUCTION_RANK_ORDER = 0,
    TSR_REDUCTION_ANY_ORDER
} tsr_reduction_order;

/** Options of a plan. */
typedef struct tsr_plan_options {
    size_t size;   /**< sizeof(tsr_plan_options) */
    int64_t rank;  /**< the rank whose part the plan is */
    tsr_mode mode; /**< direct mode becomes message mode where the mesh's engine cannot read
                        peers' memory */
    tsr_objective objective;
    size_t max_workspace; /**< bytes that tsr_plan_execute() may ask for on any rank: moves that
                               need more go in rounds; 0: no limit */
    tsr_nodes nodes;      /**< which ranks share a node, for all ranks of the meshes. All zero:
                               as the first source's mesh knows, else its destination's; if
                               neither knows, one node holds all. A list is copied and sorted for
                               each plan: put a long one on the mesh (tsr_mesh_with_nodes()) */
    int no_split;         /**< 1: the communicator may not be split; then all its ranks execute,
                               also those outside the meshes */
    tsr_reduction_order reduction;
    const tsr_cost_profile *profile; /**< copied; NULL: the context's */
    tsr_profile *measured;           /**< used instead of `profile`: a profile with tables;
                                          retained; NULL: `profile` is used */
} tsr_plan_options;

/** The rank's own plan, in direct mode where the engine has it, for fewest bytes, without a limit
 * of workspace. */
#define TSR_PLAN_OPTIONS_INIT                                                                      \
    {                                                                                              \
        sizeof(tsr_plan_options), TSR_RANK_DEFAULT, TSR_MODE_DIRECT, TSR_OBJECTIVE_BYTES, 0,       \
            {0, 0, TSR_NULL}, 0, TSR_REDUCTION_RANK_ORDER, TSR_NULL, TSR_NULL                      \
    }

/**
 * Plans `src` -> `dst`. Both have the same global shape and dtype; their meshes may differ. Both
 * are retained. The caller owns `*out` and frees it with tsr_plan_destroy(). `options` may be NULL.
 * Does not communicate.
 *
 * @par Communicator of the plan
 * The plan is over the communicator of the meshes. If they have several, which descend from one by
 * tsr_comm_split(), it is over their nearest common ancestor. All ranks of the ancestor then pass
 * the ancestor as `comm` to tsr_plan_prepare() and tsr_plan_execute(). The plan's layouts are like
 * `src` and `dst`, but number ranks as the ancestor does. Ranks of abstract meshes, and ranks in
 * `options`, must be numbered so already. Nodes are then those that the ancestor knows, unless
 * `options` gives others: tsr_mesh_with_nodes() of a mesh over another communicator does not count.
 *
 * @par Errors
 * TSR_ERROR_ARGUMENT: shapes or dtypes differ; the meshes' communicators do not descend from one;
 * listed nodes leave out a rank; this rank would receive or send more than 2^61 bytes; or its plan
 * takes more than tsr_context_options.plan_entries (the sentence says about how many).
 */
TSR_API tsr_status tsr_plan_create(const tsr_layout *src, const tsr_layout *dst,
                                   const tsr_plan_options *options, tsr_plan **out);

/**
 * Plans `count` moves that are made together, such as those of a model's parameters: src[i] ->
 * dst[i]. Between two ranks they share one message, and one pair of barriers serves all moves.
 * Shapes, dtypes and meshes may differ from move to move; the plan is over one communicator for
 * all. Functions that take a tensor of a plan then take an array of `count` tensors. The arrays are
 * read during the call; the layouts are retained. Otherwise as tsr_plan_create(); the bytes of all
 * moves together may be at most 2^62.
 */
TSR_API tsr_status tsr_plan_create_batch(size_t count, const tsr_layout *const *src,
                                         const tsr_layout *const *dst,
                                         const tsr_plan_options *options, tsr_plan **out);

/** Adds a reference and returns `plan`. Any thread. */
TSR_API tsr_plan *tsr_plan_retain(tsr_plan *plan);

/** Gives one reference back; NULL is fine. Any thread. */
TSR_API void tsr_plan_destroy(tsr_plan *plan);

/** The number of moves in the plan: 1, or the `count` of tsr_plan_create_batch(). */
TSR_API size_t tsr_plan_count(const tsr_plan *plan);

/** The layouts of move `item`; borrowed. TSR_ERROR_ARGUMENT: there is no such move. */
TSR_API tsr_status tsr_plan_layouts(const tsr_plan *plan, size_t item, const tsr_layout **src,
                                    const tsr_layout **dst);

/** The source layout of the first move; borrowed. */
TSR_API const tsr_layout *tsr_plan_source(const tsr_plan *plan);

/** The destination layout of the first move; borrowed. */
TSR_API const tsr_layout *tsr_plan_destination(const tsr_plan *plan);

/**
 * Bytes of workspace that tsr_plan_execute() needs on this rank, aligned to 64 as by
 * tsr_comm_alloc(). Memory that tsr_plan_prepare() allocates comes on top, belongs to the
 * communicator, and does not count for max_workspace: copies of tensors where ranks are processes,
 * and host memory for reductions that add up inside nodes first (tessera/mpi.h says how much).
 */
TSR_API size_t tsr_plan_workspace_bytes(const tsr_plan *plan);

/** Bytes that this rank receives from other ranks in one execution; bytes that are packed or staged
 * count once. */
TSR_API int64_t tsr_plan_bytes_received(const tsr_plan *plan);

/** Bytes that this rank sends to other ranks in one execution. */
TSR_API int64_t tsr_plan_bytes_sent(const tsr_plan *plan);

/** 1 if source and destination may be the same pointer, else 0. They may exactly if the meshes are
 * equal, every mesh dim of size > 1 has the same cuts, and any difference is between Replicate and
 * Partial; for a batch, in every move. */
TSR_API int tsr_plan_in_place(const tsr_plan *plan);

/**
 * Collective over `comm`: makes the groups of ranks that the plan needs and compares the plan
 * across ranks. `comm` keeps the groups, by their ranks, for all plans and slices. Ranks that plan
 * for another slice of the same communicator take part with their own plan. Call it once per plan
 * and communicator; a second call does no harm.
 *
 * TSR_ERROR_STATE: the plan is another rank's, or is over a communicator that numbers the ranks of
 * its meshes otherwise than `comm`, with which it has an ancestor in common. A rank that fails,
 * also with `plan` NULL, tells its peers: TSR_ERROR_PEER.
 */
TSR_API tsr_status tsr_plan_prepare(const tsr_plan *plan, tsr_comm *comm);

/**
 * Collective over the plan's ranks: moves `src`, this rank's local tensor under the source layout,
 * into `dst`, this rank's local tensor under the destination layout. Strides are free. `workspace`
 * has `bytes` >= tsr_plan_workspace_bytes() and is on the tensors' device (NULL where none is
 * needed). A rank outside the source (destination) mesh may pass NULL for `src` (`dst`); ranks
 * outside both return at once. After return, in stream order, `src` may be overwritten.
 *
 * It allocates and plans nothing. On a device with streams it waits for no stream: it enqueues, in
 * the order that tessera.h describes. Only the first execution on a device makes the events for
 * this, which `comm` keeps.
 *
 * @par Errors
 * TSR_ERROR_STATE: the plan was not prepared on `comm`, is another rank's, or is over other ranks.
 * TSR_ERROR_ARGUMENT: a tensor's shape, dtype or device does not fit; the strides of `dst` make its
 * elements overlap (tsr_tensor_overlaps()); src and dst overlap although tsr_plan_in_place() is 0;
 * the host is given a stream; or ranks that read each other's memory bring different kinds of
 * device or differ in what captures their streams. TSR_ERROR_UNSUPPORTED: this rank's device does
 * not reach a peer's.
 *
 * @par Plans by messages
 * Ranks first compare their calls and tell each other whether all can execute. They do not where an
 * engine of messages has TSR_COMM_UNCHECKED (sys/comm.h), nor with tensors on a device with
 * streams, so that the call only enqueues. Without the comparison:
 * - Arguments that differ between ranks are the caller's fault.
 * - Tensors must be contiguous on all ranks or on none.
 * - A rank that brings no tensor goes by `stream`, which it gives as the others do, or else by its
 *   last execution.
 * - A rank that fails by itself while others wait for its bytes gets its own status at once and
 *   aborts `comm`; its later calls say so. Its peers end with the engine's timeout.
 */
TSR_API tsr_status tsr_plan_execute(const tsr_plan *plan, tsr_comm *comm, const tsr_tensor *src,
                                    const tsr_tensor *dst, void *workspace, size_t bytes,
                                    tsr_stream stream);

/**
 * The first half of tsr_plan_execute(); tsr_plan_finish() is the second. In between, a rank can do
 * other work while peers arrive and, where the engine can, while bytes travel. Until finish
 * returns, `src` must not be written, no stream may touch `dst` and `workspace`, and `comm` serves
 * no other call. One execution is started at a time. The tensors' descriptors are copied.
 *
 * In direct mode start waits for no rank. By messages, ranks first compare their calls, where they
 * do so at all; then the first round is packed and sent, or the engine's own collective is called,
 * which may wait for peers.
 *
 * A failure on one rank is told to all by the half that finds it, or aborts, while others wait for
 * its bytes. After an error of start there is nothing to finish. TSR_ERROR_STATE: the plan was not
 * prepared, or is already started.
 */
TSR_API tsr_status tsr_plan_start(const tsr_plan *plan, tsr_comm *comm, const tsr_tensor *src,
                                  const tsr_tensor *dst, void *workspace, size_t bytes,
                                  tsr_stream stream);

/** The second half of tsr_plan_start(). TSR_ERROR_STATE: the plan was not started. */
TSR_API tsr_status tsr_plan_finish(const tsr_plan *plan, tsr_comm *comm);

#ifdef __cplusplus
}
#endif

#endif
