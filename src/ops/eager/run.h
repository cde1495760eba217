/** One call of a row on dtensors. */
#ifndef TSR_OPS_EAGER_RUN_H
#define TSR_OPS_EAGER_RUN_H

#include "ops/rows/row.h"

/** Runs an op; arguments as for tsr_op_call(). `caller` begins sentences. */
tsr_status tsr_eager_run(const char *caller, const tsr_op *op, size_t count, const tsr_attribute *attributes,
                         const tsr_dtensor *const *operands, tsr_dtensor **results);

/** Runs an op into dtensors that exist; arguments as for tsr_op_call_into(). */
tsr_status tsr_eager_run_into(const char *caller, const tsr_op *op, size_t count, const tsr_attribute *attributes,
                              const tsr_dtensor *const *operands, tsr_dtensor *const *results);

/** Refuses operands that do not fit the rule, so that a policy would move them; arguments as for
 * tsr_eager_run(). Ranks do not meet. */
tsr_status tsr_eager_check_fit(const char *caller, const tsr_op *op, size_t count, const tsr_attribute *attributes,
                               const tsr_dtensor *const *operands);

#endif
