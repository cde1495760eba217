/** Scratch that shorter lengths want. */
#ifndef TSR_OPS_PROGRAMS_PROBE_H
#define TSR_OPS_PROGRAMS_PROBE_H

#include "ops/programs/executable.h"

/** Raises rooms to what shorter lengths want; `comm` NULL: over the program's meshes. */
tsr_status tsr_compile_probe(tsr_executable *x, tsr_comm *comm);

/** Links steps to memory that stands in for a run's, so that their layouts and shapes are those of
 * the lengths of now. No run is linked afterwards. */
tsr_status tsr_compile_stand_in(tsr_executable *x);

#endif
