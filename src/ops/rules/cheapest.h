/** The cheapest layouts of operands that fit a rule. Pure: all ranks come to the same answer. */
#ifndef TSR_OPS_RULES_CHEAPEST_H
#define TSR_OPS_RULES_CHEAPEST_H

#include "ops/rules/place.h"

#include <tessera/context.h>

/** What is asked. */
typedef struct tsr_op_question {
    const tsr_op_form *form;
    const tsr_op_placing *placing;
    const tsr_layout *const *operands;
    const tsr_dtype *dtypes;               /**< of results; used with `wanted` */
    const int64_t (*shapes)[TSR_MAX_DIMS]; /**< of results; used with `wanted` */
    const tsr_placement *const *wanted;    /**< NULL, or for each result NULL or placements to which it is moved then */
    tsr_policy policy;                     /**< TSR_POLICY_PARTIALS: only Partial to Replicate or Shard */
    int64_t bytes;                         /**< the most that a rank may receive for operands; 0: no limit */
} tsr_op_question;

/**
 * Finds layouts for the operands that fit: those to which redistributions take the fewest bytes
 * over all ranks, wanted results included; of these the least time by the context's cost profile;
 * then those that change the fewest operands. Each mesh dim cuts one factor or compound, alike in
 * all operands, passes on what is Partial, leaves all as they are, or is Replicate. Few
 * combinations are all tried; of many, mesh dims are changed one after the other while that helps.
 * On large meshes some ranks stand for all. The caller owns each of `out`. `*found` false: the
 * policy or the limit allows none.
 */
tsr_status tsr_op_find_cheapest(const tsr_op_question *question, tsr_layout *out[TSR_OP_OPERANDS], bool *found);

#endif
