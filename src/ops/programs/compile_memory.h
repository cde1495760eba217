/** Memory of an executable. */
#ifndef TSR_OPS_PROGRAMS_COMPILE_MEMORY_H
#define TSR_OPS_PROGRAMS_COMPILE_MEMORY_H

#include "ops/programs/executable.h"

/** Assigns memory to all values and steps, again where they had some. */
tsr_status tsr_compile_memory(tsr_executable *x);

/** Assigns memory again after plans of moves have changed. */
tsr_status tsr_compile_scratch(tsr_executable *x);

#endif
