/** The order of an executable's steps. */
#ifndef TSR_OPS_PROGRAMS_COMPILED_BATCHES_H
#define TSR_OPS_PROGRAMS_COMPILED_BATCHES_H

#include "ops/programs/executable.h"

/** Puts moves off until a step needs one of them, or there was work to hide them, and lets those
 * that wait share an exchange. Sums follow their terms (follow.h). */
tsr_status tsr_compile_batches(tsr_executable *x);

#endif
