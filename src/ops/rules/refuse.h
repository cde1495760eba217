/** Words refusals of placements, with layouts that would work. */
#ifndef TSR_OPS_RULES_REFUSE_H
#define TSR_OPS_RULES_REFUSE_H

#include "ops/rules/fitted.h"

/** TSR_ERROR_ARGUMENT, in a sentence that begins with the caller: why the operands do not fit, and
 * other placements of one operand, or if that cannot help of all, that fit. */
tsr_status tsr_op_refuse(const tsr_op_form *form, const tsr_op_names *names, const tsr_layout *const *operands,
                         const tsr_op_placing *placing, const tsr_op_misfit *misfit);

#endif
