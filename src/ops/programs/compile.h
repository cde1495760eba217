/** The parts of tsr_compile(). */
#ifndef TSR_OPS_PROGRAMS_COMPILE_H
#define TSR_OPS_PROGRAMS_COMPILE_H

#include "ops/programs/executable.h"

/** How sizes of a value depend on lengths: by multiples. */
typedef struct tsr_factors {
    int64_t of[TSR_MAX_DIMS][TSR_LENGTHS];
} tsr_factors;

/** Finds how the sizes of all values depend on lengths; `out` has zeros for each value. */
tsr_status tsr_compile_factors(const tsr_program *program, tsr_factors *out);

/** Copies the values that the needed nodes have, and gives those that no step makes their places.
 * `needed` has a flag for each node. */
tsr_status tsr_compile_values(const tsr_program *program, const bool *needed, const tsr_factors *factors,
                              tsr_executable *x);

/** Makes the steps of the needed nodes, with their plans. */
tsr_status tsr_compile_steps(const tsr_program *program, const bool *needed, tsr_executable *x);

/** Assigns memory to all values and steps. */
tsr_status tsr_compile_memory(tsr_executable *x);

/** Raises rooms to what shorter lengths want; `comm` NULL: over the program's meshes. */
tsr_status tsr_compile_probe(tsr_executable *x, tsr_comm *comm);

/** Assigns memory again after plans of moves have changed. */
tsr_status tsr_compile_scratch(tsr_executable *x);

#endif
