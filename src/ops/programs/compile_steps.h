/** Steps of an executable. */
#ifndef TSR_OPS_PROGRAMS_COMPILE_STEPS_H
#define TSR_OPS_PROGRAMS_COMPILE_STEPS_H

#include "ops/programs/executable.h"

/** Makes the steps of the needed nodes, with their plans; `operand` has the first of each node. */
tsr_status tsr_compile_steps(const tsr_program *program, const bool *needed, const int *operand, tsr_executable *x);

#endif
