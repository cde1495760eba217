/**
 * @file
 * What a plan does: its steps, the bytes that each rank sends to each other rank, how far these are
 * from the least possible, and the time that the cost model predicts.
 *
 * Every figure is read off an immutable plan: nothing here communicates, and any thread may call.
 * Figures of one rank are those of the plan's own rank (all zero for TSR_RANK_NONE);
 * tsr_plan_survey_of() gives figures over all ranks. Bytes that a rank copies within its own memory
 * count neither as received nor as sent.
 */
#ifndef TESSERA_EXPLAIN_H
#define TESSERA_EXPLAIN_H

#include <tessera/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a step does, in MPI's terms. */
typedef enum tsr_step_op {
    TSR_STEP_COPY = 0,       /**< each rank copies the elements that it keeps; nothing crosses
                                  ranks */
    TSR_STEP_FILL,           /**< ranks that hold no value of a new Partial(sum) or (prod) write
                                  the op's neutral value */
    TSR_STEP_EXCHANGE,       /**< each rank receives exactly the boxes that it lacks */
    TSR_STEP_ALL_GATHER,     /**< pieces or results go to all ranks that hold them in the end */
    TSR_STEP_REDUCE_SCATTER, /**< terms are reduced, each part by one rank or by every owner */
    TSR_STEP_ALL_REDUCE,     /**< terms are reduced, and every rank gets the result */
    TSR_STEP_BROADCAST       /**< one rank has everything, and all ranks get it */
} tsr_step_op;

/** "copy", "fill", "exchange", "all_gather", "reduce_scatter", "all_reduce", "broadcast"; NULL for
 * anything else. Static. */
TSR_API const char *tsr_step_op_name(tsr_step_op op);

/** The largest number of steps in any plan. */
#define TSR_PLAN_STEPS_MAX 4

/** One step, as far as the plan's rank takes part in it. */
typedef struct tsr_plan_step {
    tsr_step_op op;
    unsigned mesh_dims; /**< bit i: this rank and some peer differ in dim i of the source's mesh,
                             in any move of a batch; 0 for copy, for fill, and between two meshes */
    int64_t bytes_received, bytes_sent;
    int64_t messages_received, messages_sent; /**< numbers of peers that the bytes come from, and
                                                   go to */
} tsr_plan_step;

/** The number of steps of the plan. It is the same on every rank, even where a rank has nothing to
 * do in some step. Steps follow from the layouts alone, so that a step may carry no bytes. */
TSR_API size_t tsr_plan_step_count(const tsr_plan *plan);

/** Describes step `index`. TSR_ERROR_ARGUMENT: there is no such step. */
TSR_API tsr_status tsr_plan_step_at(const tsr_plan *plan, size_t index, tsr_plan_step *out);

/** Prints step `index` as a sentence without figures, the same on every rank; "" if there is no
 * such step. Like snprintf(), it returns the length of the whole text. */
TSR_API size_t tsr_plan_step_print(const tsr_plan *plan, size_t index, char *text, size_t capacity);

/** Totals of one execution for the plan's rank. */
typedef struct tsr_plan_figures {
    int64_t bytes_received, bytes_sent;
    int64_t bytes_kept;  /**< of its own source that its destination uses, as values or as terms */
    int64_t lower_bound; /**< the least bytes that it must receive; -1 where a Partial is reduced
                              or made: then only the total over all ranks has a bound */
    double ratio;        /**< bytes_received / lower_bound; 1 where both are 0, -1 where there is
                              no bound */
    int64_t messages_received, messages_sent; /**< numbers of (step, peer) pairs */
    size_t workspace_bytes;                   /**< tsr_plan_workspace_bytes() */
    int64_t gather_and_slice; /**< bytes that it would receive if every source Partial were
                                   all-reduced around a ring and the whole tensor gathered; 0
                                   outside the destination's mesh, at most INT64_MAX */
    double seconds;           /**< time of its own receives, by the plan's cost profile
                                   (tessera/cost.h) */
} tsr_plan_figures;

/** Adds up the figures of the plan's rank; for TSR_RANK_NONE all are zero except the ratio. May
 * return TSR_ERROR_MEMORY. */
TSR_API tsr_status tsr_plan_figures_of(const tsr_plan *plan, tsr_plan_figures *out);

/** A box that crosses ranks: elements [begin, end) of the global tensor along each dim. */
typedef struct tsr_plan_transfer {
    size_t step;
    int64_t peer; /**< the rank that the box comes from, or goes to */
    size_t item;  /**< the move of a batch; 0 for a single move */
    int ndim;     /**< dims of the tensor */
    int64_t begin[TSR_MAX_DIMS], end[TSR_MAX_DIMS];
    int64_t bytes;
} tsr_plan_transfer;

/** Called with each transfer; `transfer` is valid during the call. Any status but TSR_OK ends the
 * visit, which returns that status. */
typedef tsr_status tsr_plan_visitor(const tsr_plan_transfer *transfer, void *user);

/**
 * Visits every box that this rank receives from other ranks. There is one transfer for each product
 * of maximal intervals, sorted by step, peer, item and box (begin, then end, outermost dim first).
 * Terms of reductions and results that are passed on are included, so that the bytes add up to the
 * rank's bytes received. Every receive is a send of the peer.
 */
TSR_API tsr_status tsr_plan_visit_receives(const tsr_plan *plan, tsr_plan_visitor *visitor,
                                           void *user);

/** Visits every box that this rank sends to other ranks, as tsr_plan_visit_receives() does for
 * receives. */
TSR_API tsr_status tsr_plan_visit_sends(const tsr_plan *plan, tsr_plan_visitor *visitor,
                                        void *user);

/** The maximum and the total of one figure over ranks. */
typedef struct tsr_plan_sum {
    int64_t max, total;
} tsr_plan_sum;

/** One step over all ranks. */
typedef struct tsr_plan_survey_step {
    tsr_step_op op;
    unsigned mesh_dims; /**< as in tsr_plan_step, for any two ranks */
    tsr_plan_sum bytes_received;
} tsr_plan_survey_step;

/** Figures over all ranks of the plan's meshes. */
typedef struct tsr_plan_survey {
    int64_t ranks;
    tsr_plan_sum bytes_received, bytes_sent, bytes_kept;
    tsr_plan_sum lower_bound;                 /**< of bytes received; max is -1 where a Partial
                                                   is reduced or made */
    double ratio;                             /**< of the totals, as in tsr_plan_figures */
    int64_t messages_received, messages_sent; /**< the largest number of any rank */
    size_t workspace_bytes;                   /**< the largest workspace of any rank */
    tsr_plan_sum gather_and_slice;            /**< over the ranks of the destination's mesh; at
                                                   most INT64_MAX */
    int64_t busiest_rank;                     /**< the rank that receives most, the lowest of
                                                   several; -1 where nothing crosses ranks */
    double seconds;                           /**< time of the busiest rank and node, by the
                                                   plan's cost profile (tessera/cost.h) */
    size_t step_count;
    tsr_plan_survey_step steps[TSR_PLAN_STEPS_MAX];
} tsr_plan_survey;

/**
 * Plans the moves of `plan`, with its options, for every rank of its meshes, one after the other,
 * and adds up the figures. `plan` may be any rank's. Takes the time of one plan per rank, and the
 * memory of one plan and up to 32 bytes per rank. TSR_ERROR_ARGUMENT: a total exceeds 2^63 - 1
 * bytes, some rank cannot be planned for (tsr_plan_create()), or all plans together, each counted
 * as at least 32, take more than 16 times tsr_context_options.plan_entries.
 */
TSR_API tsr_status tsr_plan_survey_of(const tsr_plan *plan, tsr_plan_survey *out);

/**
 * tsr_plan_survey_of() for some ranks alone, where all would take too long. Sums and maxima are
 * over the `count` ranks in `ranks`; each counts once, and ranks outside the meshes count as
 * nothing. The busiest node is found by what these ranks receive, so give all ranks of a node.
 * Where a Partial is reduced or made, a bound exists only over all ranks: lower_bound.total and
 * ratio are -1. TSR_ERROR_ARGUMENT: a rank is negative, or as for tsr_plan_survey_of().
 */
TSR_API tsr_status tsr_plan_survey_some(const tsr_plan *plan, const int64_t *ranks, size_t count,
                                        tsr_plan_survey *out);

/** The whole plan in words, several lines: the move, its steps, and that rank's figures if the plan
 * has a rank. Writes at most `capacity` bytes, the last NUL (`text` may be NULL where `capacity` is
 * 0). `*length` gets the length of the whole text. */
TSR_API tsr_status tsr_plan_describe(const tsr_plan *plan, char *text, size_t capacity,
                                     size_t *length);

#ifdef __cplusplus
}
#endif

#endif
