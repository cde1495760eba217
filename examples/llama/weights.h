/** The weights of a Llama as dtensors: each rank holds its own slices, read from a checkpoint or made at random. Matrices and biases may be
 * narrow; products with f32 widen them exactly. */
#ifndef LLAMA_WEIGHTS_H
#define LLAMA_WEIGHTS_H

#include "checkpoint.h"
#include "layouts.h"

/** Where weights come from: `checkpoint`, or, where that is NULL, random numbers by `seed`. `dtype`: what matrices and biases are kept in,
 * rounded once; none: as they are stored, or f32 where they are of several dtypes or random. */
typedef struct llama_source {
    const llama_checkpoint *checkpoint;
    uint64_t seed;
    tsr_dtype dtype;
} llama_source;

/** What matrices and biases of a model with that source are kept in. */
tsr_dtype llama_weights_dtype(const llama_config *config, const llama_source *source);

typedef struct llama_linear {
    tsr_dtensor *weight; /**< (out, in) */
    tsr_dtensor *bias;   /**< (out), or NULL */
} llama_linear;

typedef struct llama_layer {
    tsr_dtensor *attention_norm, *mlp_norm; /**< (hidden) */
    llama_linear linear[LLAMA_LINEAR_KINDS];
} llama_layer;

typedef struct llama_weights {
    tsr_dtensor *embedding; /**< (vocab, hidden) */
    tsr_dtensor *norm;      /**< (hidden) */
    llama_linear output;    /**< its weight is the embedding where they are tied */
    llama_layer *layers;
    int64_t layer_count;
    int64_t bytes_read; /**< from files, by this rank */
} llama_weights;

/** Loads this rank's part. Does not communicate. TSR_ERROR_ARGUMENT: a tensor is missing or not of the shape that the configuration asks
 * for; TSR_ERROR_UNSUPPORTED: it is of a type other than f32, f16 and bf16. */
tsr_status llama_weights_load(const llama_layouts *layouts, const llama_source *source, llama_weights *out);
void llama_weights_finish(llama_weights *weights);

/** This rank's elements of a dtensor of f32: not of a matrix or bias. */
static inline float *llama_local(const tsr_dtensor *dtensor)
{
    return tsr_dtensor_to_local(dtensor).data;
}

#endif
