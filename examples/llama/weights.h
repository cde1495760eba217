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
    bool is_q8; /**< matrices of linear layers are kept in 8 bits with scales */
} llama_source;

/** The dtype in which a model with that source keeps matrices and biases; with 8 bits, that of the
 * embedding and the output. */
tsr_dtype llama_weights_dtype(const llama_source *source);

/** Sums over weights of 8 bits: of squares of what they lost, and of squares of what they were. */
typedef struct llama_error {
    double lost, whole;
} llama_error;

/** What loading counts on this rank. */
typedef struct llama_loaded {
    int64_t bytes_read;
    llama_error error;
} llama_loaded;

/**
 * Makes a tensor in its layout; weights of i8 come with `*scales`. The caller owns both. Does not
 * communicate. TSR_ERROR_ARGUMENT: a tensor is missing, its shape is not the layout's, or its parts
 * are not multiples of 32 columns, which 8 bits want. TSR_ERROR_UNSUPPORTED: its dtype is not f32,
 * f16 or bf16.
 */
tsr_status llama_weights_load(const llama_source *source, const char *name, const tsr_layout *layout,
                              llama_loaded *loaded, tsr_dtensor **out, tsr_dtensor **scales);

/** The name of the scales of the weight `name`, whose ".weight" becomes ".scales". */
void llama_weights_scales(const char *name, char *out, size_t capacity);

/** True if the name is that of scales. */
bool llama_weights_are_scales(const char *name);

#endif
