/** What bench linear measures, and how it prints that. */
#ifndef TESSERA_TOOLS_BENCH_LINEAR_LINEAR_H
#define TESSERA_TOOLS_BENCH_LINEAR_LINEAR_H

#include "bench/check/linear_oracle.h"
#include "bench/run/run.h"

enum { FORWARD, BACKWARD, PASSES };

/** Up to so many tokens weights are read at the speed of memory, and reading them is measured, too. */
#define LINEAR_FEW_TOKENS 16

/** What the ranks share; each writes its own rows of the samples only. */
typedef struct linear_job {
    place *place;
    const char *mesh_text;
    tsr_mesh *mesh;
    int ranks;
    int64_t tokens, hidden, intermediate;
    tsr_dtype dtype, weights; /**< of x, and of both weights; y is f32 where they differ */
    bench_settings settings;
    samples layers[PASSES], gemms[PASSES], reads; /**< reads: of the weights, where linear_job_reads() */
    int64_t calls[PASSES], gemm_calls[PASSES];    /**< that each of their times is the mean of */
    int64_t read_calls;
    linear_oracle oracle; /**< what the layers must write */
    struct linear_row {
        int64_t wrong[PASSES];
        int64_t weight_bytes;
    } * rows;
} linear_job;

/** Whether it is measured how long the ranks take to read their weights and do nothing else. */
bool linear_job_reads(const linear_job *j);

/** Prints both passes. Returns the tool's exit status, which tells whether results are wrong. */
int linear_report(bench_run *run, const linear_job *j, bool begins_table);

#endif
