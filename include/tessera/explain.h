/**
 * @file
 * What a plan says of itself: its steps, who sends what to whom, bytes against the least possible,
 * time by the model.
 *
 * All of it is read off an immutable plan: nothing here communicates, and any thread may call. What
 * is said of one rank is that of the plan's own (all zero for TSR_RANK_NONE); tsr_plan_survey_of()
 * says what holds over all ranks. Bytes that a rank keeps, copies within its own memory, count
 * neither as received nor as sent.
 */
#ifndef TESSERA_EXPLAIN_H
#define TESSERA_EXPLAIN_H

#include <tessera/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a step does, in the words of MPI. */
typedef enum tsr_step_op {
    TSR_STEP_COPY = 0,       /**< each rank copies what it keeps; nothing crosses */
    TSR_STEP_FILL,           /**< ranks that hold no value of a new Partial(sum) or (prod) write
                                  what adds nothing */
    TSR_STEP_EXCHANGE,       /**< each rank takes just the boxes that it lacks */
    TSR_STEP_ALL_GATHER,     /**< pieces or results go to all that hold them in the end */
    TSR_STEP_REDUCE_SCATTER, /**< terms are reduced, each part by one rank or by every owner */
    TSR_STEP_ALL_REDUCE,     /**< reduced, and given to all */
    TSR_STEP_BROADCAST       /**< one rank has all, and everybody gets it */
} tsr_step_op;

/** "copy", "fill", "exchange", "all_gather", "reduce_scatter", "all_reduce", "broadcast"; NULL for
 * anything else. */
TSR_API const char *tsr_step_op_name(tsr_step_op op);

/** No plan has more steps. */
#define TSR_PLAN_STEPS_MAX 4

/** One step, as far as the plan's rank takes part in it. */
typedef struct tsr_plan_step {
    tsr_step_op op;
    unsigned mesh_dims; /**< bit i: this rank and some peer differ in dim i of the source's mesh,
                             in any move of a batch; 0 for copy, fill and between two meshes */
    int64_t bytes_received, bytes_sent;
    int64_t messages_received, messages_sent; /**< peers that they come from, and go to */
} tsr_plan_step;

/** How many steps the plan has. They are the same on every rank, also on one that has nothing to do
 * in some; what a step is follows from the layouts, so that it may carry no bytes where these
 * happen to agree. */
TSR_API size_t tsr_plan_step_count(const tsr_plan *plan);

/** Step `index`. TSR_ERROR_ARGUMENT: there is no such step. */
TSR_API tsr_status tsr_plan_step_at(const tsr_plan *plan, size_t index, tsr_plan_step *out);

/** Step `index` in words, a sentence without figures that is the same on every rank, in the manner
 * of snprintf(); "" for no such step. */
TSR_API size_t tsr_plan_step_print(const tsr_plan *plan, size_t index, char *text, size_t capacity);

/** What one execution comes to for the plan's rank. */
typedef struct tsr_plan_figures {
    int64_t bytes_received, bytes_sent;
    int64_t bytes_kept;  /**< of its own source that its destination uses, as values or as terms */
    int64_t lower_bound; /**< bytes that it must receive; -1 where a Partial is reduced or made:
                              then only the total over ranks has one */
    double ratio;        /**< bytes_received / lower_bound; 1 where both are 0, -1 where there is
                              none */
    int64_t messages_received, messages_sent; /**< (step, peer) pairs */
    size_t workspace_bytes;                   /**< tsr_plan_workspace_bytes() */
    int64_t gather_and_slice; /**< bytes that it would receive if every source Partial were
                                   all-reduced around a ring, and the whole tensor gathered; 0
                                   outside the destination's mesh, at most INT64_MAX */
    double seconds;           /**< of its own receives, by the plan's cost profile
                                   (tessera/cost.h) */
} tsr_plan_figures;

/** Adds up the figures of the plan's rank; all zero for TSR_RANK_NONE, but the ratio.
 * TSR_ERROR_MEMORY is possible. */
TSR_API tsr_status tsr_plan_figures_of(const tsr_plan *plan, tsr_plan_figures *out);

/** A box that crosses ranks: elements [begin, end) of the global tensor along each dim. */
typedef struct tsr_plan_transfer {
    size_t step;
    int64_t peer; /**< the rank that it comes from, or goes to */
    size_t item;  /**< of a batch: which move; else 0 */
    int ndim;     /**< of the tensor */
    int64_t begin[TSR_MAX_DIMS], end[TSR_MAX_DIMS];
    int64_t bytes;
} tsr_plan_transfer;

/** Called with each transfer; `transfer` lasts for the call. Anything but TSR_OK ends the visit,
 * which returns it. */
typedef tsr_status tsr_plan_visitor(const tsr_plan_transfer *transfer, void *user);

/**
 * All that this rank receives from, or sends to, other ranks: one transfer for each product of
 * maximal intervals, sorted by step, peer, item and box (begin, then end, outermost dim first). The
 * terms of reductions and the results that are handed on are among them, so that the bytes add up
 * to the rank's bytes received, or sent. What one side receives the other sends.
 */
TSR_API tsr_status tsr_plan_visit_receives(const tsr_plan *plan, tsr_plan_visitor *visitor,
                                           void *user);
TSR_API tsr_status tsr_plan_visit_sends(const tsr_plan *plan, tsr_plan_visitor *visitor,
                                        void *user); /**< to other ranks */

/** Over ranks. */
typedef struct tsr_plan_sum {
    int64_t max, total;
} tsr_plan_sum;

/** One step over all ranks. */
typedef struct tsr_plan_survey_step {
    tsr_step_op op;
    unsigned mesh_dims; /**< as in tsr_plan_step, of any two ranks */
    tsr_plan_sum bytes_received;
} tsr_plan_survey_step;

/** What holds over all ranks of the plan's meshes. */
typedef struct tsr_plan_survey {
    int64_t ranks;
    tsr_plan_sum bytes_received, bytes_sent, bytes_kept;
    tsr_plan_sum lower_bound;                 /**< of bytes received; max is -1 where a Partial
                                                   is reduced or made */
    double ratio;                             /**< of the totals, as in tsr_plan_figures */
    int64_t messages_received, messages_sent; /**< of the rank that has most */
    size_t workspace_bytes;                   /**< likewise */
    tsr_plan_sum gather_and_slice;            /**< over the ranks of the destination's mesh; at
                                                   most INT64_MAX */
    int64_t busiest_rank;                     /**< the lowest of those that receive most; -1
                                                   where nothing crosses */
    double seconds;                           /**< of the busiest rank and node, by the plan's
                                                   cost profile (tessera/cost.h) */
    size_t step_count;
    tsr_plan_survey_step steps[TSR_PLAN_STEPS_MAX];
} tsr_plan_survey;

/**
 * Plans the moves of `plan`, whoever's it is, with its options for every rank of its meshes, one
 * after the other, and adds up. Time is that of so many plans, memory that of one plan and up to 32
 * bytes a rank. TSR_ERROR_ARGUMENT: a total is more than 2^63 - 1 bytes, some rank has no plan
 * (tsr_plan_create()), or all plans together take more than 16 times
 * tsr_context_options.plan_entries, a rank at least 32.
 */
TSR_API tsr_status tsr_plan_survey_of(const tsr_plan *plan, tsr_plan_survey *out);

/**
 * The same of some ranks alone, where all would take too long: sums and maxima are over those
 * `count` ranks (each counts once, and those outside the meshes have nothing), the busiest node is
 * the busiest of theirs, by what they receive, so that nodes should be whole. Where a Partial is
 * reduced or made only all ranks have a bound: lower_bound.total and ratio are -1 then.
 * TSR_ERROR_ARGUMENT: a rank is negative, or as above.
 */
TSR_API tsr_status tsr_plan_survey_some(const tsr_plan *plan, const int64_t *ranks, size_t count,
                                        tsr_plan_survey *out);

/** The whole plan in words, several lines: the move, its steps, and where it is a rank's, that
 * rank's figures. Writes at most `capacity` bytes, the last NUL (`text` may be NULL where that is
 * 0); `*length` is that of the whole text. */
TSR_API tsr_status tsr_plan_describe(const tsr_plan *plan, char *text, size_t capacity,
                                     size_t *length);

#ifdef __cplusplus
}
#endif

#endif
