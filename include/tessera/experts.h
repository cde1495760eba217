/**
 * @file
 * Experts: each rank's tokens go to the ranks that have the experts which they chose, and results
 * come back, weighted and summed. The expert parallelism of Megatron, DeepSpeed and tutel: dispatch
 * and combine, forward and backward, with numbers of tokens that are known at run time only.
 *
 * @par Experts
 * A layout of a tensor of (experts, ..), such as that of the experts' weights, says which rank has
 * which experts. Every layout but Partial is fine, of any number of ranks and experts:
 * - mesh dims that cut dim 0, in any split, deal out experts; ranks may have none;
 * - mesh dims that cut other dims cut each expert into parts: a token goes to all parts of its
 *   expert, and results are sums of what the parts give, in the order of their coordinates;
 * - along all other mesh dims experts are replicated: a rank's tokens go to the replica with its
 *   own coordinate there.
 *
 * Calls are collective over the ranks of the mesh, replicas too; over a slice (tsr_mesh_slice()) of
 * the mesh dims that have the experts, replicas do not wait for each other.
 *
 * @par Tokens and rows
 * Each rank brings tokens of its own: x (t, width), in any number up to the plan's. `ids` (t,
 * slots), i32 or i64 with any strides, are the experts of each token; an id of -1 leaves its slot
 * empty. A token may name an expert twice. The rank of an expert gets a row for each slot that
 * names it. Rows lie one expert after the other, in the order of the rank's experts; within an
 * expert in the order of the sending rank, then token, then slot. So they are the same on every
 * engine and run. All tensors are local tensors on the host. Those of tokens and rows are of the
 * plan's dtype, with contiguous rows, between which there may be gaps.
 *
 * @par Plans
 * A plan keeps where the tokens of its last dispatch went, which the three other calls follow; it
 * is of use for one batch at a time. After a dispatch that failed it has none. Calls of a plan
 * allocate nothing once they have met their largest numbers of rows.
 *
 * @par Ranks
 * The first call over a mesh object is collective over its communicator (mesh_comm.h has that
 * rule). On ranks outside the mesh calls do nothing and return TSR_OK. Calls return when everything
 * is done. Plans are not thread-safe: a plan belongs to its communicator's handle.
 *
 * @par Errors
 * Everything is checked before anything is written. If one rank's arguments are wrong, it gets
 * TSR_ERROR_ARGUMENT, its peers TSR_ERROR_PEER with that rank and its sentence; the communicator
 * stays usable. A wrong id is named by rank, token, slot and value. TSR_ERROR_STATE: the plan has
 * no dispatch to follow. TSR_ERROR_UNSUPPORTED: a tensor is on a device or has gaps within its
 * rows. TSR_ERROR_MEMORY: there is no memory for messages. A rank whose plan is NULL returns alone.
 */
#ifndef TESSERA_EXPERTS_H
#define TESSERA_EXPERTS_H

#include <tessera/layout.h>
#include <tessera/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What becomes of tokens for which there is no room. */
typedef enum tsr_experts_overflow {
    TSR_EXPERTS_FAIL = 0, /**< the dispatch fails on all ranks, and says what is needed */
    TSR_EXPERTS_DROP,     /**< the last rows, in their order, are left out */
    TSR_EXPERTS_OVERFLOW_END
} tsr_experts_overflow;

/** The same on all ranks. */
typedef struct tsr_experts_options {
    size_t size;             /**< sizeof(tsr_experts_options) */
    int64_t expert_capacity; /**< the most rows of an expert; 0: as many as there is room for */
    tsr_experts_overflow overflow; /**< what becomes of tokens beyond the room or the capacity */
} tsr_experts_options;

/** Experts take what there is room for; too little room is an error. */
#define TSR_EXPERTS_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(tsr_experts_options), 0, TSR_EXPERTS_FAIL                                           \
    }

/** Where experts are, and where the tokens of the last dispatch went. */
typedef struct tsr_experts_plan tsr_experts_plan;

/**
 * Collective: a plan for tokens of `width` elements of `dtype`, a floating type, that choose
 * `slots` experts each; at most `tokens` of this rank in a call, which may differ between ranks.
 * `experts` is retained; only its mesh, its dim 0 and the mesh dims that cut other dims count.
 * NULL options mean the defaults. The caller owns `*out`.
 *
 * TSR_ERROR_ARGUMENT: `experts` is of a scalar or on an abstract mesh; `width` or `slots` is below
 * 1, `tokens` or a capacity negative. TSR_ERROR_UNSUPPORTED: `experts` is Partial; the dtype is not
 * a real floating type. A rank whose `experts` is NULL returns alone.
 */
TSR_API tsr_status tsr_experts_plan_create(const tsr_layout *experts, int64_t tokens, int64_t slots,
                                           int64_t width, tsr_dtype dtype,
                                           const tsr_experts_options *options,
                                           tsr_experts_plan **out);

/** Frees a plan; NULL is fine. Does not communicate. */
TSR_API void tsr_experts_plan_destroy(tsr_experts_plan *plan);

/** The number of this rank's experts: the elements of `sizes`. Any thread. */
TSR_API int64_t tsr_experts_plan_count(const tsr_experts_plan *plan);

/** The rows that the last dispatch had for this rank, those too that were dropped; also after it
 * failed for lack of room. 0: there was none. */
TSR_API int64_t tsr_experts_plan_needed(const tsr_experts_plan *plan);

/** How many slots of this rank's tokens the last dispatch dropped; empty slots do not count. */
TSR_API int64_t tsr_experts_plan_dropped(const tsr_experts_plan *plan);

/**
 * Collective: sends tokens x (t, width) to the experts of `ids` (t, slots). `rows` (room, width)
 * gets the rows for this rank's experts, and sizes (experts of the rank), i64, how many each has.
 * Rows behind them are left alone, so dim 0 of `rows` is the room that the caller has. Moves every
 * bit. Parts of an expert have the same rows.
 *
 * Rows that do not fit, or that are beyond an expert's capacity: by TSR_EXPERTS_FAIL all ranks get
 * TSR_ERROR_MEMORY, with a sentence that says how many rows are needed where; nothing is written,
 * and all may call again with more room. By TSR_EXPERTS_DROP the last rows of an expert beyond its
 * capacity are left out, then the last rows of the rank beyond its room, which are those of its
 * last experts; their slots count as empty.
 *
 * `rows` and `sizes` are written on success only, and overlap no other operand. Between processes
 * of MPI on one node, `rows` in memory of tsr_comm_alloc() saves a copy in each call.
 */
TSR_API tsr_status tsr_experts_dispatch(tsr_experts_plan *plan, const tsr_tensor *x,
                                        const tsr_tensor *ids, const tsr_tensor *rows,
                                        const tsr_tensor *sizes);

/**
 * Collective: out (t, width) becomes, for each token of the last dispatch, the sum over its slots
 * of the weight times what the slot's expert has in `rows` (room, width), at the place of the row
 * that dispatch sent there. `weights` (t, slots) are of f32 or the plan's dtype, with any strides;
 * NULL: all are 1. Empty slots add nothing, and their weights are not read.
 *
 * Sums are taken in the order of slots, so results have the same bits on any number of ranks;
 * where experts are in parts, those of a slot are added first, in the order of their coordinates.
 * f16, bf16 and f8 are summed in f32, and the result rounded once.
 *
 * TSR_ERROR_ARGUMENT: `rows` has fewer rows than came to this rank. `out` overlaps no operand.
 */
TSR_API tsr_status tsr_experts_combine(tsr_experts_plan *plan, const tsr_tensor *rows,
                                       const tsr_tensor *weights, const tsr_tensor *out);

/**
 * Collective: gradients of a combine, from `dout` (t, width). drows (room, width) gets, for each
 * row that came to this rank, its weight times the token's `dout`; rows behind them are left alone.
 * dweights (t, slots), of f32 or the plan's dtype, gets the products of `dout` and the slots'
 * rows, summed along the width in f32, or f64 for f64; 0 for empty slots. `rows` and `weights` are
 * those of the combine. Without gradients of weights, `dweights` and `rows` are NULL on all ranks.
 * `drows` and `dweights` overlap no operand.
 */
TSR_API tsr_status tsr_experts_combine_backward(tsr_experts_plan *plan, const tsr_tensor *dout,
                                                const tsr_tensor *weights, const tsr_tensor *rows,
                                                const tsr_tensor *drows,
                                                const tsr_tensor *dweights);

/** Collective: the gradient of a dispatch. dx (t, width) becomes the sum, over each token's slots,
 * of their rows of `drows` (room, width): tsr_experts_combine() with weights of 1. */
TSR_API tsr_status tsr_experts_dispatch_backward(tsr_experts_plan *plan, const tsr_tensor *drows,
                                                 const tsr_tensor *dx);

#ifdef __cplusplus
}
#endif

#endif
