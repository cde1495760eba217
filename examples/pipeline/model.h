/** The model, of which each stage has some layers, as programs over whole tensors: a residual MLP,
 * x + down relu(up x) in each layer, and a head that tells the class of a row. */
#ifndef PIPELINE_MODEL_H
#define PIPELINE_MODEL_H

#include <tessera/executable.h>
#include <tessera/program.h>

#include <stdbool.h>

enum {
    WIDTH = 32,
    INNER = 64,
    CLASSES = 8,
    MOST_LAYERS = 64,
    MOST_WEIGHTS = 2 * MOST_LAYERS + 1,
    PLACEMENTS_BYTES = 64
};

/** What a stage has of the model. */
typedef struct model {
    const tsr_mesh *mesh; /**< of the stage; its dims are called dp and tp */
    int64_t first, count; /**< of its layers */
    bool begins, ends;    /**< the first stage has the input, the last one the head and the loss */
    int64_t rows;         /**< of a micro-batch */
    int64_t batch;        /**< rows of all micro-batches, over which the loss is the mean */
} model;

/** A weight of a stage. */
typedef struct weight {
    char name[32];
    int64_t shape[2];
    const char *tp; /**< its placement along tp */
    int number;     /**< in the whole model, by which its first values are drawn */
} weight;

/** The placements on a mesh: `dp` along the dim dp, `tp` along tp. */
void model_place(const tsr_mesh *mesh, const char *dp, const char *tp, char text[PLACEMENTS_BYTES]);

int model_weight_count(const model *m);
weight model_weight(const model *m, int index);

/** The layout of a weight; the caller destroys it. */
tsr_status model_weight_layout(const model *m, const weight *w, tsr_layout **out);

/** Records the stage's layers: input "x" of the first stage, (rows, WIDTH), or "activation" of
 * others; output "activation". Errors are the program's, here and below. */
void model_record_forward(const model *m, tsr_program *p);

/**
 * Records the forward again, so that nothing but its input need be kept, and the backward. Inputs:
 *
 * - "x" on the first stage and on the last, whose classes follow from it;
 * - "activation" unless the stage is the first;
 * - "gradient", by the stage's result, unless it is the last;
 * - "sum.W" for each weight W: terms of the gradients of earlier micro-batches.
 *
 * Outputs: "loss" of the last stage, "gradient" by the activation unless the stage is the first,
 * and "sum.W" with this micro-batch's terms added. Sums are Partial along dp: ranks add them up
 * once a step.
 */
void model_record_backward(const model *m, tsr_program *p);

/** Records AdamW by inputs "sum.W", "rate" and "step" (f64, no dims). Weights are states. */
void model_record_update(const model *m, tsr_program *p);

#endif
