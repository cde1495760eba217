/** Epochs of training on every rank: rows of the table by id, the layers, and what is told. */
#ifndef ROWS_TRAINING_H
#define ROWS_TRAINING_H

#include "graph.h"

#include <tessera/comm.h>

typedef struct training_options {
    graph graph;
    int64_t epochs;
    uint64_t seed;           /**< of weights, order and neighbours */
    double rate;             /**< of learning */
    const char *save, *load; /**< paths of checkpoints; NULL: none */
} training_options;

/** The program of every rank: a tsr_rank_main whose `arg` are training_options. Rank 0 prints. */
tsr_status training_run(tsr_comm *comm, void *arg);

#endif
