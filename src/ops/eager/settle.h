/** Moves operands that do not fit a rule, as the context's policy allows. */
#ifndef TSR_OPS_EAGER_SETTLE_H
#define TSR_OPS_EAGER_SETTLE_H

#include "ops/eager/cache.h"

/** The operands of a call in layouts that fit; each is a reference of its own. */
typedef struct tsr_eager_settled {
    tsr_dtensor *operands[TSR_OP_MOST_OPERANDS]; /**< NULL: left out */
} tsr_eager_settled;

/** Collective where operands move: redistributes those that `answer` says. With the policy
 * TSR_POLICY_WARN the log tells of each. Nothing is held after an error. */
tsr_status tsr_eager_settle(const tsr_op_case *c, const tsr_eager_answer *answer, const tsr_dtensor *const *operands,
                            tsr_eager_settled *out);

void tsr_eager_settled_clear(tsr_eager_settled *settled);

/** Collective where the operand was moved: brings the gradient of a settled operand, in
 * `*gradient`, to the gradient layout of the operand as it was. */
tsr_status tsr_eager_unsettle(const tsr_dtensor *operand, const tsr_dtensor *settled, tsr_dtensor **gradient);

#endif
