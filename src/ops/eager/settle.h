/** Moves operands that do not fit a rule, as the context's policy allows. */
#ifndef TSR_OPS_EAGER_SETTLE_H
#define TSR_OPS_EAGER_SETTLE_H

#include "ops/eager/cache.h"

/** The operands of a call in layouts that fit; each is a reference of its own. */
typedef struct tsr_eager_settled {
    tsr_dtensor *operands[TSR_OP_MOST_OPERANDS]; /**< NULL: left out */
} tsr_eager_settled;

/** Collective where operands move: redistributes those that `answer` says, in one exchange, once
 * all ranks have room for them. With the policy TSR_POLICY_WARN the log tells of each. After an
 * error nothing is held, and all ranks have one. */
tsr_status tsr_eager_settle(const tsr_op_case *c, const tsr_eager_answer *answer, const tsr_dtensor *const *operands,
                            tsr_eager_settled *out);

void tsr_eager_settled_clear(tsr_eager_settled *settled);

/**
 * Collective where operands were moved: brings the gradients of settled operands, in *gradients[i]
 * (NULL: not wanted), to the gradient layouts of the operands as they were. `local` is the status
 * of making the gradients, of which all ranks hear where one moves; returns it where none does.
 */
tsr_status tsr_eager_unsettle(const tsr_op_case *c, const tsr_dtensor *const *operands,
                              const tsr_eager_settled *settled, tsr_dtensor **const *gradients, tsr_status local);

#endif
