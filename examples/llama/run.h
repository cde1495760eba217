/** One request on n ranks, which are threads, or processes of which this is one. */
#ifndef LLAMA_RUN_H
#define LLAMA_RUN_H

#include "generate.h"
#include "model.h"
#include "processes.h"

#include <tessera/parallel_rules.h>

/** Input of every rank; all pointers are borrowed. */
typedef struct llama_job {
    const llama_config *config;
    llama_source source;
    const tsr_parallel_rules *plan; /**< NULL: weights are cut as layouts.h says */
    llama_request request;
    int ranks;
    const llama_processes *processes; /**< NULL: ranks are threads of this process */
} llama_job;

typedef struct llama_outcome {
    llama_generation generation;      /**< rank 0's; empty in the processes of other ranks */
    double load_seconds;              /**< until the slowest rank had loaded */
    int64_t *bytes_read;              /**< bytes of files that each rank read */
    int64_t bytes_received_per_token; /**< by all ranks together, per decoding step */
    double weight_error;              /**< of weights of 8 bits: the root of the sum of squares of what they
                                           lost over that of what they were; else 0 */
} llama_outcome;

/** Runs the job and returns when all ranks have returned; `*out` is rank 0's. Free it with
 * llama_outcome_finish(). */
tsr_status llama_run(const llama_job *job, llama_outcome *out);
void llama_outcome_finish(llama_outcome *outcome);

#endif
