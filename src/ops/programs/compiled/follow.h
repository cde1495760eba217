/** Steps that are made sooner than they were recorded. */
#ifndef TSR_OPS_PROGRAMS_COMPILED_FOLLOW_H
#define TSR_OPS_PROGRAMS_COMPILED_FOLLOW_H

#include "ops/programs/executable.h"

/** True of a move that ranks make together and that adds terms up. All ranks find it alike. */
bool tsr_step_sums(const tsr_executable *x, const tsr_step *step);

/**
 * Finds the steps that follow the one that makes what they read, wherever they were recorded: sums,
 * and stores that add to their state, each with the pointwise steps before it that serve it alone.
 * `follower` gets for each step the first that follows it, and for each of these the next one, or
 * -1; `follows` says which steps do. Both have a place for each step.
 */
tsr_status tsr_compile_followers(const tsr_executable *x, int *follower, bool *follows);

#endif
