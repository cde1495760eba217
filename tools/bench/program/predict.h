/** What the cost model says of a program before it runs: it is compiled for ranks of an abstract
 * mesh. */
#ifndef TESSERA_TOOLS_BENCH_PROGRAM_PREDICT_H
#define TESSERA_TOOLS_BENCH_PROGRAM_PREDICT_H

#include "bench/program/side.h"

typedef struct program_prediction {
    double seconds; /**< of a run, by the cost model */
    double compile_seconds;
    int64_t peak_bytes, workspace_bytes, received, steps;
} program_prediction;

/** A context whose programs are timed by `profile`, and not by TSR_COST; NULL: as TSR_COST says.
 * The profile outlives it. */
tsr_status program_context(tsr_profile *profile, tsr_context **out);

/** Records and compiles a program for one rank of the abstract mesh, in the mesh's context. */
tsr_status program_predict(const program_case *c, const tsr_mesh *mesh, int64_t rank, program_prediction *out);

/** The most of all ranks of a mesh like an abstract one, in program_context() of the profile. */
tsr_status program_predict_all(const program_case *c, const tsr_mesh *like, tsr_profile *profile,
                               program_prediction *out);

#endif
