/** Calls that are made of several ops, of which any may meet. The steps of such a call are written
 * once: on dtensors they run, and on layouts a rank that has failed finds by them the meetings of
 * its peers, which go on. */
#ifndef TSR_OPS_EAGER_STEPS_H
#define TSR_OPS_EAGER_STEPS_H

#include "ops/rows/formula.h"
#include "ops/rows/shadow.h"

/** What steps compute with. Each call of a function is a step. */
typedef struct tsr_step_values {
    tsr_formula_values values; /**< `apply` is as tsr_eager_run(); `user` is given to all */
    /** As tsr_eager_run_into(), for an op of one result. */
    tsr_status (*apply_into)(void *user, const char *caller, const tsr_op *op, size_t count,
                             const tsr_attribute *attributes, void *const *operands, void *result);
    /** As tsr_eager_backward(); `made` has a NULL for each operand. */
    tsr_status (*differentiate)(void *user, const char *caller, const tsr_op *op, size_t count,
                                const tsr_attribute *attributes, void *const *operands, void *gradient,
                                const bool *wanted, void **made);
} tsr_step_values;

/** A call: its tensors, and its steps. */
typedef struct tsr_steps {
    const char *caller; /**< begins sentences */
    int tensor_count;   /**< TSR_OP_SHADOW_LAYOUTS or fewer */
    const tsr_dtensor *const *tensors;
    int result_count;
    /** Makes the results from `tensors`, as values. Without an error all of `made` are set; after
     * an error some may be, and the caller releases them. The steps depend on layouts alone. */
    tsr_status (*run)(const struct tsr_steps *steps, const tsr_step_values *v, void *const *tensors, void **made);
    const void *given; /**< to `run` */
} tsr_steps;

/** Runs a call. A rank that fails goes on, as failed, to the meetings of the steps that are left.
 * The caller owns the results. */
tsr_status tsr_eager_run_steps(const tsr_steps *steps, tsr_dtensor **results);

#endif
