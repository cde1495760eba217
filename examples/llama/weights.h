/** The weights of a Llama as dtensors: each rank holds its own slices, read from a checkpoint or
 * made at random. Matrices and biases may be narrow; products with f32 widen them exactly. */
#ifndef LLAMA_WEIGHTS_H
#define LLAMA_WEIGHTS_H

#include "layouts.h"

#include <tessera/safetensors.h>

/** Source of weights: `checkpoint`, or, if that is NULL, random numbers by `seed`. Matrices and
 * biases are rounded once to `dtype`. TSR_DTYPE_NONE: they are kept as stored, or in f32 if they
 * have several dtypes or are random. */
typedef struct llama_source {
    const tsr_safetensors *checkpoint;
    uint64_t seed;
    tsr_dtype dtype;
} llama_source;

/** The dtype in which a model with that source keeps matrices and biases. */
tsr_dtype llama_weights_dtype(const llama_config *config, const llama_source *source);

/** The name of a linear layer in checkpoints, such as "self_attn.q_proj". */
const char *llama_linear_name(llama_linear_kind kind);

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
    llama_linear output;    /**< its weight is the embedding if they are tied */
    llama_layer *layers;
    int64_t layer_count;
    int64_t bytes_read; /**< bytes of files that this rank read */
} llama_weights;

/**
 * Loads this rank's part. Does not communicate. TSR_ERROR_ARGUMENT: a tensor is missing, or its
 * shape does not fit the configuration. TSR_ERROR_UNSUPPORTED: its dtype is not f32, f16 or bf16.
 */
tsr_status llama_weights_load(const llama_layouts *layouts, const llama_source *source, llama_weights *out);
void llama_weights_finish(llama_weights *weights);

/** This rank's elements of an f32 dtensor; not for matrices and biases, which may be narrow. */
static inline float *llama_local(const tsr_dtensor *dtensor)
{
    return tsr_dtensor_to_local(dtensor).data;
}

#endif
