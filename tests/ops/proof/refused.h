/** Shows that what a rule refuses is wrong or impossible. */
#ifndef TESTS_OPS_PROOF_REFUSED_H
#define TESTS_OPS_PROOF_REFUSED_H

#include "proof.h"

/** What running an op on each rank's shards, as if each were whole, came to. */
typedef enum refusal {
    REFUSAL_UNJUDGED,   /**< shapes are too small to tell */
    REFUSAL_WRONG,      /**< no placement of the results gives what one rank computes */
    REFUSAL_IMPOSSIBLE, /**< an op refuses its shards, or no placement has results of their shapes */
    REFUSAL_STRICT,     /**< some placement is right in all draws of values */
} refusal;

/** Collective, on meshes of one dim: judges the placements drawn, which the rule refuses. `what` gets
 * the placement that is right. The operands stay. */
tsr_status judge_refusal(proof *p, refusal *out, char what[64]);

#endif
