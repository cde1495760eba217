/** A stage on this rank: its programs, compiled, with the rank's part of weights, sums of gradients
 * and the optimizer's states. Its mesh has a communicator of its own: what a stage computes meets
 * no rank outside of it. */
#ifndef PIPELINE_STAGE_H
#define PIPELINE_STAGE_H

#include "model.h"

#include <tessera/dtensor.h>

typedef enum stage_program { FORWARD, BACKWARD, UPDATE, STAGE_PROGRAMS } stage_program;

typedef struct stage {
    model model;
    tsr_mesh *mesh; /**< NULL: this rank is not in the stage, and nothing below is set */
    uint64_t seed;
    double rate;
    int weights;
    tsr_dtensor *of[MOST_WEIGHTS];      /**< the weights */
    tsr_dtensor *sums[2][MOST_WEIGHTS]; /**< of gradients: a backward reads the ones, and writes the others */
    int full;                           /**< which of them have the gradients of now */
    tsr_dtensor *x;                     /**< features of a micro-batch; NULL on stages between */
    tsr_executable *programs[STAGE_PROGRAMS];
    size_t state_count;
    tsr_dtensor **states; /**< of the optimizer */
    void *workspace;
    size_t workspace_bytes;
} stage;

/** Collective over `comm`: makes a stage on the ranks of the mesh that `mesh` describes.
 * `out->model`, but for its mesh, seed and rate are set, all else is zero. The caller calls
 * stage_destroy(), also after a failure. */
tsr_status stage_create(tsr_comm *comm, const char *mesh, stage *out);
void stage_destroy(stage *s);

/** Collective over the stage: from the activation of the stage before, which the first one does not
 * read, makes that for the stage behind it. `number` is that of the micro-batch, counted over all
 * steps, by which its features are drawn. */
tsr_status stage_forward(stage *s, int64_t number, tsr_tensor activation, tsr_tensor result);

/** Collective over the stage: adds the gradients of a micro-batch to the sums. `d_result` is the
 * gradient from the stage behind, which the last one does not read; `d_activation` that for the
 * stage before, which the first one does not write. The last stage adds to `*loss`. */
tsr_status stage_backward(stage *s, int64_t number, tsr_tensor activation, tsr_tensor d_result, tsr_tensor d_activation,
                          double *loss);

/** Collective over the stage: updates the weights by the sums, in step `step`, counted from 0, and
 * sets the sums to 0. */
tsr_status stage_update(stage *s, int64_t step);

#endif
