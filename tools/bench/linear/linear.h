/** bench linear: its job, and the report of it. */
#ifndef TESSERA_TOOLS_BENCH_LINEAR_LINEAR_H
#define TESSERA_TOOLS_BENCH_LINEAR_LINEAR_H

#include "bench/check/linear_oracle.h"
#include "bench/run/run.h"

enum { FORWARD, BACKWARD, PASSES };

/** Upper bound of the tokens for which a layer is limited by reading its weights; then reading them
 * is measured too. */
#define LINEAR_FEW_TOKENS 16

/** What the ranks share. One rank of each process writes the results. */
typedef struct linear_job {
    place *place;
    const char *mesh_text;
    tsr_mesh *mesh;
    int ranks;
    int64_t tokens, hidden, intermediate;
    tsr_dtype dtype, weights; /**< of x, and of both weights; results are f32 if they differ */
    bench_settings settings;
    tsr_bench_result layers[PASSES], gemms[PASSES];
    tsr_bench_result reads; /**< of reading the weights, if linear_job_reads() */
    linear_oracle oracle;   /**< knows what the layers must write */
    int64_t weight_bytes;   /**< bytes of the weights of all ranks, which a forward pass reads once */
} linear_job;

/** True if reading the weights alone is measured: on the host, for few tokens. */
bool linear_job_reads(const linear_job *j);

/** Prints both passes. Returns the tool's exit status: EXIT_REFUSED for wrong results. */
int linear_report(bench_run *run, const linear_job *j, bool begins_table);

#endif
