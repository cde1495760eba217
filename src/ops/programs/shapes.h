/** How sizes depend on lengths. */
#ifndef TSR_OPS_PROGRAMS_SHAPES_H
#define TSR_OPS_PROGRAMS_SHAPES_H

#include "ops/programs/program.h"

/** How sizes of a value depend on lengths: by multiples. */
typedef struct tsr_factors {
    int64_t of[TSR_MAX_DIMS][TSR_LENGTHS];
} tsr_factors;

/** Finds how the sizes of all values depend on lengths; `out` has zeros for each value. */
tsr_status tsr_compile_factors(const tsr_program *program, tsr_factors *out);

#endif
