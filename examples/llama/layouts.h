/**
 * How a Llama's weights lie on the ranks. Tensor parallelism needs nothing else from a model:
 * the layouts of activations follow from the rules of ops.
 *
 * | weight            | shape                   | placement                                    |
 * | ----------------- | ----------------------- | -------------------------------------------- |
 * | embedding, output | (vocab, hidden)         | vocabulary-parallel: S(0)                    |
 * | q                 | (heads*dim, hidden)     | by whole groups: S(0;unit=group*dim)         |
 * | k, v              | (kv_heads*dim, hidden)  | column-parallel, whole heads: S(0;unit=dim)  |
 * | o                 | (hidden, heads*dim)     | row-parallel, cut as q: S(1;unit=group*dim)  |
 * | gate, up          | (intermediate, hidden)  | column-parallel: S(0)                        |
 * | down              | (hidden, intermediate)  | row-parallel: S(1)                           |
 * | router            | (experts, hidden)       | R                                            |
 * | experts' gate, up | (experts, 2 x inner, hidden) | whole experts: S(0;balanced)            |
 * | experts' down     | (experts, hidden, inner) | as gate and up: S(0;balanced)               |
 * | norms             | (hidden), (dim)         | R                                            |
 *
 * If the number of ranks is a multiple of the key/value heads, and greater, and several queries
 * share a key/value head, attention sees the ranks as a grid, kv x group. The heads of k and v
 * are cut along kv and copied along group, and the queries of each key/value head are spread
 * over its group, so that all ranks work.
 *
 * If the number of ranks is a multiple of the experts, and greater, experts see the ranks as a
 * grid, expert x part, and the ranks of an expert have some of its inner features each:
 * S(0),S(1;interleave=2) for gate and up, and S(0),S(2) for down.
 *
 * Weights of 8 bits have a scale for each 32 inputs, so that row-parallel cuts, and those of
 * gate and up, fall between 32 elements.
 */
#ifndef LLAMA_LAYOUTS_H
#define LLAMA_LAYOUTS_H

#include "config.h"

#include <tessera/parallel_rules.h>
#include <tessera/tessera.h>

#include <stdbool.h>

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
    tsr_mesh *experts;          /**< all ranks, in the shape that experts need: 1-d, or expert x part */
    tsr_dtype dtype;            /**< of all matrices and biases; norms and activations are f32 */
    tsr_parallel_plan *plan;    /**< owned; NULL: weights are cut as the table says */
    bool is_q8;                 /**< matrices of linear layers have 8 bits, and biases are f32 */
} llama_layouts;

/** Meshes over all ranks of `comm`, for matrices of `dtype`. `config` is borrowed. */
tsr_status llama_layouts_init(llama_layouts *layouts, const llama_config *config, tsr_dtype dtype, bool is_q8,
                              tsr_comm *comm);

/** Lets rules say how weights are cut, on the mesh of attention. Layouts of this file then give
 * shapes and dtypes alone. */
tsr_status llama_layouts_follow(llama_layouts *layouts, const tsr_parallel_rules *rules);
void llama_layouts_finish(llama_layouts *layouts);

/** The name of a linear layer in checkpoints, such as "self_attn.q_proj". */
const char *llama_linear_name(llama_linear_kind kind);

/** Layouts of a linear layer's tensors. */
typedef struct llama_linear_layouts {
    tsr_layout *weight; /**< (out, in) */
    tsr_layout *scales; /**< (out, in / 32); NULL: the weight has none */
    tsr_layout *bias;   /**< (out); NULL: there is none */
} llama_linear_layouts;

/** Makes a linear layer's layouts; the caller owns them. */
tsr_status llama_layouts_linear(const llama_layouts *layouts, llama_linear_kind kind, llama_linear_layouts *out);

/** Layouts of the tensors of a layer's experts. */
typedef struct llama_expert_layouts {
    tsr_layout *router;  /**< (experts, hidden) */
    tsr_layout *gate_up; /**< (experts, 2 x inner, hidden): for each expert gate, then up */
    tsr_layout *down;    /**< (experts, hidden, inner) */
} llama_expert_layouts;

/** Makes the layouts of experts; the caller owns them. */
tsr_status llama_layouts_experts(const llama_layouts *layouts, llama_expert_layouts *out);

/** The layout of the embedding and of the output weight; the caller owns it. */
tsr_status llama_layouts_vocabulary(const llama_layouts *layouts, tsr_layout **out);

/** The layout of a tensor of f32 that every rank of `mesh` holds whole. */
tsr_status llama_layouts_replicated(const tsr_mesh *mesh, int ndim, const int64_t *shape, tsr_layout **out);

#endif
