/**
 * What a plan of experts keeps: where experts are, and where the tokens of the last dispatch went.
 *
 * Experts have *numbers*: those of the first row part of the layout, in their local order, then
 * those of the second, .. (rows/row_table.h says what parts, replicas and positions are).
 */
#ifndef TSR_TENSOR_EXPERTS_EXPERT_PLAN_H
#define TSR_TENSOR_EXPERTS_EXPERT_PLAN_H

#include "tensor/experts/expert_kernels.h"
#include "tensor/rows/row_rooms.h"
#include "tensor/rows/row_table.h"

#include <tessera/experts.h>

/** Where the row of a slot is. */
typedef struct tsr_expert_place {
    int64_t row;  /**< in the owners' rows, or by messages in what they are sent; -1: there is none */
    int32_t part; /**< the row part that has the expert */
} tsr_expert_place;

/** Rows that the tokens' side writes or reads: those of one rank. */
typedef struct tsr_expert_side {
    char *data;
    size_t stride; /**< bytes from row to row */
} tsr_expert_side;

struct tsr_experts_plan {
    tsr_context *context;   /**< one reference */
    tsr_layout *layout;     /**< one reference */
    tsr_comm *comm;         /**< of the layout's mesh */
    const tsr_group *group; /**< the mesh's ranks; NULL, and all below but the sizes unset, outside the mesh */
    tsr_row_table *table;
    const tsr_expert_kernels *kernels;
    const tsr_expert_loops *loops; /**< of the dtype */
    int64_t tokens, slots, width;
    tsr_dtype dtype;
    size_t row_bytes;
    int64_t expert_capacity; /**< INT64_MAX: none */
    tsr_experts_overflow overflow;
    uint64_t hash; /**< of all that ranks must give alike */
    bool messages; /**< rows travel as messages */

    /* Where experts are. */
    int64_t count;        /**< of all experts */
    int64_t own_count;    /**< of this rank's */
    int64_t *numbers;     /**< of each expert */
    int32_t *parts;       /**< the row part of each number */
    int64_t *part_starts; /**< the first number of each part, and behind the last one `count` */
    int *order;           /**< positions of ranks, in the order in which their rows lie */

    /* What a dispatch needs for a while. */
    int64_t *counts;                /**< this rank's slots by number; peers may read them */
    int64_t *counts_memory;         /**< where `counts` are unless they are in shared memory */
    const int64_t **all_counts;     /**< those of each position */
    int64_t *rooms;                 /**< rows that each position has room for */
    int64_t *totals;                /**< slots of all ranks by number */
    int64_t *next, *kept, *offsets; /**< by number; see expert_routes.c; `next` is scratch of all calls */
    const void **terms;             /**< slots * column parts rows */
    double *weights;                /**< of the slots of a token */
    tsr_expert_side *sides;         /**< one a position */

    /* The last dispatch. */
    bool routed;
    int64_t token_count; /**< tokens of this rank */
    int64_t received;    /**< rows at this rank */
    int64_t needed, dropped;
    tsr_expert_place *places; /**< token * slots + slot */
    int64_t *sizes;           /**< rows of each own expert */
    int64_t *arrivals;        /**< of them, those that each position has sent: position * own_count + expert */
    int64_t *sent;            /**< rows that this rank has sent to each row part */
    tsr_row_rooms call_rooms; /**< memory of calls */
};

/** Makes the part of a plan that follows from its layout; the sizes are checked and set. Does not
 * communicate. */
tsr_status tsr_expert_plan_fill(tsr_experts_plan *plan);

/** Position of the rank that has a row part, a column part and this rank's replica. */
static inline int tsr_expert_position(const tsr_experts_plan *plan, int64_t part, int64_t column)
{
    return tsr_row_position(plan->table, part, column, plan->table->replicas.own);
}

/** True if tokens of the rank at `position` go to this rank's replica. */
static inline bool tsr_expert_is_peer(const tsr_experts_plan *plan, int position)
{
    return plan->table->ranks[position].replica == plan->table->replicas.own;
}

/** What sentences call the rank at a position. */
static inline int tsr_expert_rank(const tsr_experts_plan *plan, int position)
{
    return plan->group->ranks ? plan->group->ranks[position] : position;
}

#endif
