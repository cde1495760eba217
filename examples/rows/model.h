/** The dense layers: two of means over neighbours, as a program for training and one for tests. */
#ifndef ROWS_MODEL_H
#define ROWS_MODEL_H

#include "batch.h"

#include <tessera/dtensor.h>
#include <tessera/executable.h>

enum { WIDTH = 32, HIDDEN = 32, MODEL_WEIGHTS = 2 };

typedef struct model {
    tsr_comm *comm;
    tsr_dtensor *weights[MODEL_WEIGHTS]; /**< R: (HIDDEN, 2 WIDTH) and (classes, 2 HIDDEN) */
    tsr_dtensor *sums[MODEL_WEIGHTS];    /**< of squared gradients, for Adagrad */
    tsr_executable *train, *test;
    void *workspace;
    size_t workspace_bytes;
} model;

/** What a rank gives a run, and gets: local tensors of its blocks. */
typedef struct model_run {
    tsr_tensor rows;    /**< (blocks, BLOCK_NODES MEMBERS, MEMBERS, WIDTH), of batch_tree() */
    tsr_tensor targets; /**< (blocks, BLOCK_NODES) i64; -1: there is no node */
    tsr_tensor losses;  /**< of each node; 0 where there is none */
    tsr_tensor right;   /**< one i64: how many nodes of all ranks were classified right */
    tsr_tensor d_rows;  /**< the gradient by rows; for model_train() alone */
} model_run;

/** Collective. The caller calls model_destroy(), also after a failure. `out` is all zero before. */
tsr_status model_create(const tsr_mesh *mesh, int64_t classes, uint64_t seed, double rate, model *out);

void model_destroy(model *m);

/** Collective: the gradients of a batch, by which the weights are changed. */
tsr_status model_train(model *m, const model_run *run);

/** Collective: classifies a batch. */
tsr_status model_test(model *m, const model_run *run);

#endif
