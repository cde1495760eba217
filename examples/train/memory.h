/** The memory that the programs of a training take. */
#ifndef TRAIN_MEMORY_H
#define TRAIN_MEMORY_H

#include "programs.h"

/** Bytes that a rank takes, at the step of a run that takes the most (tsr_executable_memory), of
 * the program that takes the most: one runs at a time, in one workspace. */
typedef struct train_memory {
    int64_t weights, optimizer; /**< shards that the rank keeps */
    int64_t gradients;          /**< and sums of those of a step's earlier parts */
    int64_t gathered, activations;
    int64_t workspaces; /**< of kernels and moves, and gaps */
    int64_t batch;      /**< tokens and targets of all programs, and loss */
    int64_t programs;   /**< lists of steps */
    int64_t total;
} train_memory;

/** Finds what the programs of a training, of which those that it lacks are NULL, take on `rank`. */
tsr_status train_memory_find(tsr_executable *const programs[TRAIN_KINDS], int64_t rank, train_memory *out);

#endif
