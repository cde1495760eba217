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
 * `needed` has a flag for each node, and `operand` its first operand. */
tsr_status tsr_compile_values(const tsr_program *program, const bool *needed, const int *operand,
                              const tsr_factors *factors, tsr_executable *x);

/** Lets moves that follow one another become one: for each node the operand that it takes in the end.
 * Nodes that are passed over are not needed any more. */
tsr_status tsr_compile_chains(const tsr_program *program, bool *needed, int *operand);

/** Makes the steps of the needed nodes, with their plans; `operand` has the first of each node. */
tsr_status tsr_compile_steps(const tsr_program *program, const bool *needed, const int *operand, tsr_executable *x);

/** Puts moves off until a step needs one of them, and lets those that wait share an exchange. */
tsr_status tsr_compile_batches(tsr_executable *x);

/** Assigns memory to all values and steps. */
tsr_status tsr_compile_memory(tsr_executable *x);

/** Raises rooms to what shorter lengths want; `comm` NULL: over the program's meshes. */
tsr_status tsr_compile_probe(tsr_executable *x, tsr_comm *comm);

/** Assigns memory again after plans of moves have changed. */
tsr_status tsr_compile_scratch(tsr_executable *x);

#endif
