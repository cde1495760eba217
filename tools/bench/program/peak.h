/** The memory that a run of a program takes, counted. */
#ifndef TESSERA_TOOLS_BENCH_PROGRAM_PEAK_H
#define TESSERA_TOOLS_BENCH_PROGRAM_PEAK_H

#include "bench/program/side.h"

/** Runs a program on as many rank threads as an abstract mesh has ranks, in a context whose
 * allocator counts by rank. `*out` is the most bytes that one rank held at a time, from recording
 * to the end of a second run: its shards of parameters, inputs and outputs, the workspace, and all
 * that the library itself allocates. What a BLAS allocates is not in it. */
tsr_status program_count_peak(const program_case *c, const tsr_mesh *like, int64_t *out);

#endif
