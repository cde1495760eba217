/** Values of an executable. */
#ifndef TSR_OPS_PROGRAMS_COMPILE_VALUES_H
#define TSR_OPS_PROGRAMS_COMPILE_VALUES_H

#include "ops/programs/executable.h"
#include "ops/programs/shapes.h"

/** Copies the values that the needed nodes have, and gives those that no step makes their places
 * and roles.
 * `needed` has a flag for each node, and `operand` its first operand. */
tsr_status tsr_compile_values(const tsr_program *program, const bool *needed, const int *operand,
                              const tsr_factors *factors, tsr_executable *x);

#endif
