/** What models must give, by plain loops in f64. */
#ifndef TESSERA_TOOLS_BENCH_PROGRAM_REFERENCE_H
#define TESSERA_TOOLS_BENCH_PROGRAM_REFERENCE_H

#include "bench/program/models.h"

/** Writes the last token's row of a sequence, of `hidden` numbers. TSR_ERROR_MEMORY. */
tsr_status reference_mlp(const model_sizes *sizes, int64_t sequence, double *row);
tsr_status reference_block(const model_sizes *sizes, int64_t sequence, double *row);

#endif
