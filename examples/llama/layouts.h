/**
 * How a Llama's weights lie on the ranks. Tensor parallelism needs nothing else from a model: the
 * layouts of the activations follow from the rules of the layers (tsr_linear_propagate()).
 *
 *     embedding, output   (vocab, hidden)         vocabulary-parallel: S(0)
 *     q                   (heads*dim, hidden)     column-parallel, whole groups:
 * S(0;unit=group*dim) k, v                (kv_heads*dim, hidden)  column-parallel, whole heads:
 * S(0;unit=dim) o                   (hidden, heads*dim)     row-parallel, cut as q:
 * S(1;unit=group*dim) gate, up            (intermediate, hidden)  column-parallel: S(0) down
 * (hidden, intermediate)  row-parallel: S(1) norms               (hidden)                R
 *
 * If the number of ranks is a multiple of the key/value heads, and greater, attention sees the
 * ranks as a grid, kv x group. The heads of k and v are cut along kv and copied along group, and
 * the queries of each key/value head are spread over its group, so that all ranks work.
 */
#ifndef LLAMA_LAYOUTS_H
#define LLAMA_LAYOUTS_H

#include "attention.h"
#include "config.h"

#include <tessera/tessera.h>

typedef enum llama_linear_kind {
    LLAMA_QUERY,
    LLAMA_KEY,
    LLAMA_VALUE,
    LLAMA_ATTENTION_OUTPUT,
    LLAMA_GATE,
    LLAMA_UP,
    LLAMA_DOWN,
    LLAMA_LINEAR_KINDS
} llama_linear_kind;

typedef struct llama_layouts {
    const llama_config *config; /**< borrowed */
    tsr_mesh *ranks;            /**< 1-d, all ranks: "tp" */
    tsr_mesh *attention;        /**< all ranks, in the shape that attention needs */
    int spread;                 /**< 1: `attention` is a grid, kv x group */
    tsr_dtype dtype;            /**< of all matrices and biases; norms and activations are f32 */
} llama_layouts;

/** Meshes over all ranks of `comm`, for matrices of `dtype`. `config` is borrowed. */
tsr_status llama_layouts_init(llama_layouts *layouts, const llama_config *config, tsr_dtype dtype, tsr_comm *comm);
void llama_layouts_finish(llama_layouts *layouts);

/** Layouts of a linear layer's weight (out, in) and bias (out); the caller owns both. */
tsr_status llama_layouts_linear(const llama_layouts *layouts, llama_linear_kind kind, tsr_layout **weight,
                                tsr_layout **bias);

/** The layout of the embedding and of the output weight; the caller owns it. */
tsr_status llama_layouts_vocabulary(const llama_layouts *layouts, tsr_layout **out);

/** The layout of a tensor that every rank of `mesh` holds whole: norms and the hidden state (rows,
 * hidden). */
tsr_status llama_layouts_replicated(const tsr_mesh *mesh, int ndim, const int64_t *shape, tsr_layout **out);

/** The layout of the embedding's result: terms of the hidden state (rows, hidden) that are still to
 * be summed over all ranks. */
tsr_status llama_layouts_partial_hidden(const llama_layouts *layouts, int64_t rows, tsr_layout **out);

/** A cache (kv_heads, a, b), cut by heads as k and v are. */
tsr_status llama_layouts_cache(const llama_layouts *layouts, int64_t a, int64_t b, tsr_layout **out);

/** This rank's heads. */
tsr_status llama_layouts_heads(const llama_layouts *layouts, llama_heads *out);

#endif
