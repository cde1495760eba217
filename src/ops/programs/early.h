/** Moves that are open while other steps run. */
#ifndef TSR_OPS_PROGRAMS_EARLY_H
#define TSR_OPS_PROGRAMS_EARLY_H

#include "ops/programs/executable.h"

/** True if the communicator of the program's meshes overlaps; false where all are abstract. */
bool tsr_executable_overlaps(const tsr_executable *x);

/** Finds whether a run may end with a move that is open, which ranks find alike: before ranks put
 * steps into orders of their own. A pointwise step that such an order puts behind the last meeting
 * does not count: on the host its kernel cannot fail. */
tsr_status tsr_compile_ending(tsr_executable *x);

/** Finds from where to where each move may be open: with `overlaps` from the step after the one
 * that makes the last of its operands, else during its own step alone. Before memory is
 * assigned. */
tsr_status tsr_compile_early(tsr_executable *x, bool overlaps);

#endif
