/** bench linear: its job, and the report of it. */
#ifndef TESSERA_TOOLS_BENCH_LINEAR_LINEAR_H
#define TESSERA_TOOLS_BENCH_LINEAR_LINEAR_H

#include "bench/check/linear_oracle.h"
#include "bench/run/run.h"

enum { FORWARD, BACKWARD, PASSES };

/** Upper bound of the tokens for which a layer is limited by reading its weights; then reading them
 * is measured too. */
#define LINEAR_FEW_TOKENS 16

/** What the ranks share; each rank writes only its own rows of the samples and of `rows`. */
typedef struct linear_job {
    place *place;
    const char *mesh_text;
    tsr_mesh *mesh;
    int ranks;
    int64_t tokens, hidden, intermediate;
    tsr_dtype dtype, weights; /**< of x, and of both weights; results are f32 if they differ */
    bench_settings settings;
    samples layers[PASSES], gemms[PASSES], reads; /**< reads: times of reading the weights, if linear_job_reads() */
    int64_t calls[PASSES], gemm_calls[PASSES];    /**< number of calls in a loop; a time is the mean of a loop */
    int64_t read_calls;
    linear_oracle oracle; /**< knows what the layers must write */
    struct linear_row {
        int64_t wrong[PASSES]; /**< number of wrong elements */
        int64_t weight_bytes;  /**< bytes of both weights on this rank */
    } * rows;                  /**< one for each rank; on the heap */
} linear_job;

/** True if reading the weights alone is measured: on the host, for few tokens. */
bool linear_job_reads(const linear_job *j);

/** Prints both passes. Returns the tool's exit status: EXIT_REFUSED for wrong results. */
int linear_report(bench_run *run, const linear_job *j, bool begins_table);

#endif
