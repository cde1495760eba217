/** Scratch that shorter lengths want. */
#ifndef TSR_OPS_PROGRAMS_PROBE_H
#define TSR_OPS_PROGRAMS_PROBE_H

#include "ops/programs/executable.h"

/** Raises rooms to what shorter lengths want; `comm` NULL: over the program's meshes. */
tsr_status tsr_compile_probe(tsr_executable *x, tsr_comm *comm);

#endif
