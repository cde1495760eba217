/** What a plan holds: one rank's transfers, as boxes in local positions of its own and its peers' shards. */
#ifndef TSR_REDISTRIBUTE_PLAN_H
#define TSR_REDISTRIBUTE_PLAN_H

#include <tessera/plan.h>

#include "redistribute/problem.h"

/** A run of boxes that travels between this rank and `peer` (a rank of the communicator; this rank itself for a local copy). */
typedef struct tsr_transfer {
    int64_t peer;
    size_t first_box, box_count;
    int64_t elements;
} tsr_transfer;

typedef struct tsr_transfers {
    tsr_transfer *at;
    size_t count, capacity;
    int64_t elements; /**< to or from other ranks */
} tsr_transfers;

/** A part of the destination that this rank reduces: `terms` contributors from `first_term` on in the plan's `contributors`, in the order
 * of the reduction. */
typedef struct tsr_reduction {
    size_t first_box, box_count;
    int64_t elements;
    size_t first_term;
} tsr_reduction;

struct tsr_plan {
    int references; /**< atomic */
    tsr_context *context;
    tsr_layout *src, *dst;
    tsr_problem problem;
    tsr_mode mode;
    int64_t rank;
    bool in_src, in_dst;
    int64_t src_coordinate[TSR_MAX_DIMS], dst_coordinate[TSR_MAX_DIMS];
    int src_ndim, dst_ndim; /**< of the local tensors */
    int64_t src_shape[TSR_MAX_DIMS], dst_shape[TSR_MAX_DIMS];
    bool eager; /**< small, and peers write nothing here: on the host, sources are copied to where peers read them, and one meeting is
                   enough */
    bool fills; /**< the whole local destination is filled with the identity of problem.fill */
    uint64_t hash;

    /** Boxes: 3 * ndim numbers each: shape, position in the source shard, position in the destination shard. */
    int64_t *boxes;
    size_t box_count, box_capacity;

    tsr_transfers moves;   /**< what is copied into this rank's destination, peers in rotated order */
    tsr_transfers sends;   /**< what of this rank's source goes to other ranks: moved, or to be reduced there */
    tsr_transfers results; /**< what other ranks reduce for this rank's destination */
    tsr_reduction *reductions;
    size_t reduction_count, reduction_capacity;
    int64_t *contributors; /**< ranks: problem.terms for each reduction */
    size_t contributor_count, contributor_capacity;
    int64_t term_elements;   /**< that other ranks contribute to the reductions */
    int64_t result_elements; /**< of the reductions that are given to other owners */
    int64_t *owners;         /**< ranks whose destination holds what this rank reduces, this one among them; NULL if it reduces nothing */
    size_t owner_count;

    size_t workspace_bytes; /**< of tsr_plan_execute() */
    size_t scratch_bytes;   /**< of the group: host memory for one execution */
    uint64_t group_key;     /**< atomic; 0 until the first prepare: then that of the plan's rank set */
};

static inline const int64_t *tsr_plan_box(const tsr_plan *plan, size_t box)
{
    return plan->boxes + box * 3 * (size_t)plan->src->ndim;
}

/** "redistribute f32 64x64 S(0) on mesh 2 -> S(1) on mesh 2, direct": what ranks compare. */
void tsr_plan_describe_call(const void *plan, char *text, size_t capacity);

#endif
