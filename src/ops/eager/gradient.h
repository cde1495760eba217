/** Gradients of a row on dtensors: reads the formulas of row.h and runs them. */
#ifndef TSR_OPS_EAGER_GRADIENT_H
#define TSR_OPS_EAGER_GRADIENT_H

#include "ops/rows/formula.h"

/** Values of formulas that are dtensors. `*begun` counts the rows that have begun. */
tsr_formula_values tsr_eager_values(int *begun);

/** Makes the gradients of an op's operands; arguments as for tsr_op_backward(). `caller` begins
 * sentences. */
tsr_status tsr_eager_backward(const char *caller, const tsr_op *op, size_t count, const tsr_attribute *attributes,
                              const tsr_dtensor *const *operands, const tsr_dtensor *gradient,
                              tsr_dtensor **const *wanted);

#endif
