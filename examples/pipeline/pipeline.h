/** Training in stages, on every rank. */
#ifndef PIPELINE_PIPELINE_H
#define PIPELINE_PIPELINE_H

#include "schedule.h"

#include <tessera/comm.h>

enum { MOST_STAGES = 8, MESH_BYTES = 128 };

typedef struct pipeline_options {
    schedule schedule;
    char meshes[MOST_STAGES][MESH_BYTES]; /**< of the stages, with their ranks: "tp=2@1" */
    int64_t layers;                       /**< of the whole model, at least one a stage */
    int64_t rows;                         /**< of a micro-batch */
    int64_t steps;
    double rate; /**< of learning */
    uint64_t seed;
    bool by_messages; /**< tensors travel in messages also where ranks read each other's memory */
    bool traces;      /**< each rank says what it does, on standard error */
} pipeline_options;

/** The program of every rank: a tsr_rank_main whose `arg` are pipeline_options. Rank 0 prints the
 * loss of each step. */
tsr_status pipeline_run(tsr_comm *comm, void *arg);

#endif
