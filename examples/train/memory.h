/** The memory that the programs of a training take. */
#ifndef TRAIN_MEMORY_H
#define TRAIN_MEMORY_H

#include <tessera/executable.h>

/** Bytes that a rank takes, at the step of a run that takes the most (tsr_executable_memory). */
typedef struct train_memory {
    int64_t weights, optimizer; /**< shards that the rank keeps */
    int64_t gradients, gathered, activations;
    int64_t workspaces; /**< of kernels and moves, and gaps */
    int64_t batch;      /**< tokens, targets and loss */
    int64_t validation; /**< what it takes beside the step */
    int64_t programs;   /**< lists of steps */
    int64_t total;
} train_memory;

/** Finds what the programs of a training take on this rank; `validation` NULL: there is none. The
 * validation has the weights of the step. */
tsr_status train_memory_find(const tsr_executable *step, const tsr_executable *validation, train_memory *out);

#endif
