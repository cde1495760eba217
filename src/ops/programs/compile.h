/** The parts of tsr_compile(). */
#ifndef TSR_OPS_PROGRAMS_COMPILE_H
#define TSR_OPS_PROGRAMS_COMPILE_H

#include "ops/programs/executable.h"

/** Copies the values that the needed nodes have, and gives those that no step makes their places.
 * `needed` has a flag for each node. */
tsr_status tsr_compile_values(const tsr_program *program, const bool *needed, tsr_executable *x);

/** Makes the steps of the needed nodes, with their plans. */
tsr_status tsr_compile_steps(const tsr_program *program, const bool *needed, tsr_executable *x);

/** Plans a move on the meshes of its layouts. */
tsr_status tsr_compile_move(const tsr_executable *x, const tsr_layout *from, const tsr_layout *to, tsr_plan **out);

/** Assigns memory to all values and steps. */
tsr_status tsr_compile_memory(tsr_executable *x);

/** Assigns memory again after plans of moves have changed. */
tsr_status tsr_compile_scratch(tsr_executable *x);

#endif
