/** Moves that become one. */
#ifndef TSR_OPS_PROGRAMS_MERGE_H
#define TSR_OPS_PROGRAMS_MERGE_H

#include "ops/programs/executable.h"

/** Lets moves that follow one another become one: for each node the operand that it takes in the
 * end. Nodes that are passed over are not needed any more. */
tsr_status tsr_compile_chains(const tsr_program *program, bool *needed, int *operand);

/** Lets a step's call, which points into the step, follow where it has moved. */
void tsr_step_point(tsr_step *step);

#endif
