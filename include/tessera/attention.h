/**
 * @file
 * Attention and rotary positions of dtensors. What all operations have in common (layouts, dtypes,
 * the three forms of a function) is in tessera/ops.h.
 *
 * @par Accuracy
 * f64 is computed in f64; f32, f16 and bf16 in f32, and rounded once. With the unit roundoff u
 * (2^-53, 2^-24), scores have an error of at most (dim + 4) u s, where s bounds the sums of |q k
 * scale| over dim. A result of attention then has an error of at most (2 (dim + 4) s + 300 + keys /
 * 32 + 2 ranks) u times the largest |v|, and usually a small part of that.
 *
 * @par Values
 * On one rank, terms are added in an order that shapes alone decide; where keys are cut, ranks are
 * merged in the order of their coordinates, so all replicas have the same bits. Sets of
 * instructions (tsr_context_kernels()) and cuts give results with other last bits.
 */
#ifndef TESSERA_ATTENTION_H
#define TESSERA_ATTENTION_H

#include <tessera/dtensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Options of tsr_attention() and its relatives. */
typedef struct tsr_attention_options {
    size_t size;    /**< sizeof(tsr_attention_options) */
    int causal;     /**< 1: a query attends no later keys; 0: all */
    double scale;   /**< of scores; 0: 1 / sqrt(dim) */
    int64_t window; /**< keys that a query reaches, its own included: the keys less than `window`
                         tokens away; 0: all */
} tsr_attention_options;

/** Every query attends all keys. */
#define TSR_ATTENTION_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(tsr_attention_options), 0, 0, 0                                                     \
    }

/** @{ */
/**
 * Floats: softmax of scale * q k^T over the keys, times v; PyTorch's scaled_dot_product_attention
 * with grouped heads. q is (.., heads, queries, dim), k (.., heads, keys, dim), v (.., heads, keys,
 * value dim), all of one dtype. q may have a multiple of k's heads: with g times as many, head i of
 * q has head i / g of k and v. Leading dims are repeated along one another.
 *
 * Query i of Q stands where key i + keys - Q does, so the last query stands where the last key
 * does: a causal one attends keys up to there, as in decoding (PyTorch: causal_lower_right).
 * Positions are those of the whole tensors, whatever is cut. A query that attends no key has
 * results and gradients of 0. Values of keys that no query of a block attends are not read; others
 * are multiplied by 0, so they must not be NaN or infinite.
 *
 * `mask` may be NULL. Else it is (.., heads, queries, keys), where any dim may be 1 or leading ones
 * be missing, and is repeated: a bool, 1 where a query attends a key, or of q's dtype, added to the
 * scores. It is cut as the others are, and has no gradient. (PyTorch: attn_mask.)
 *
 * Queries, heads and leading dims may be cut, in all operands that have them alike; v's last dim
 * too; dim not. Heads of q may be cut anywhere if k and v are not. Nothing is exchanged. Where k
 * and v are cut along the keys, ranks exchange once: each query's largest score, sum, and sum of
 * values. The result is then whole along these mesh dims.
 *
 * Gradients compute the weights again. dq is Partial(sum) where keys or v's last dim are cut, dk
 * and dv are where queries are, or heads of q alone, dk where v's last dim is. With the keys cut
 * the ranks exchange three numbers a query. `options` NULL: the defaults.
 */
TSR_API tsr_status tsr_attention(const tsr_dtensor *q, const tsr_dtensor *k, const tsr_dtensor *v,
                                 const tsr_dtensor *mask, const tsr_attention_options *options,
                                 tsr_dtensor **out);
TSR_API tsr_status tsr_attention_into(const tsr_dtensor *q, const tsr_dtensor *k,
                                      const tsr_dtensor *v, const tsr_dtensor *mask,
                                      const tsr_attention_options *options, tsr_dtensor *out);
TSR_API tsr_status tsr_attention_backward(const tsr_dtensor *q, const tsr_dtensor *k,
                                          const tsr_dtensor *v, const tsr_dtensor *mask,
                                          const tsr_attention_options *options,
                                          const tsr_dtensor *dout, tsr_dtensor **dq,
                                          tsr_dtensor **dk, tsr_dtensor **dv);
/** @} */

/** Options of tsr_rope() and its relatives. */
typedef struct tsr_rope_options {
    size_t size;             /**< sizeof(tsr_rope_options) */
    double base;             /**< pair i of n turns by base^(-i / n) a position */
    double factor;           /**< slow pairs turn slower by it; 1: none do */
    double low_freq_factor;  /**< pairs that turn less often than that within
                                  `original_max_position` are slowed */
    double high_freq_factor; /**< those that turn more often are not; those between are in part */
    int64_t original_max_position; /**< 0: all pairs are slowed; else as Llama 3.1 does it */
} tsr_rope_options;

/** Llama 2's. */
#define TSR_ROPE_OPTIONS_INIT                                                                      \
    {                                                                                              \
        sizeof(tsr_rope_options), 10000, 1, 1, 4, 0                                                \
    }

/** @{ */
/**
 * Floats: rotary positions. x is (.., tokens, heads, dim) with an even dim, positions (.., tokens)
 * of i64 or i32, whose leading dims are repeated. In each head, elements i and i + dim / 2 are a
 * pair that is rotated by the angle position * frequency i, as the checkpoints of Llama on Hugging
 * Face want (rotate_half). Angles, sines and products are f64, and the result is rounded once.
 *
 * Tokens, heads and leading dims may be cut, in positions alike; dim not. Nothing is exchanged. A
 * Partial(sum) x passes. The gradient of x is dout rotated back; positions have none. `options`
 * NULL: the defaults.
 */
TSR_API tsr_status tsr_rope(const tsr_dtensor *x, const tsr_dtensor *positions,
                            const tsr_rope_options *options, tsr_dtensor **out);
TSR_API tsr_status tsr_rope_into(const tsr_dtensor *x, const tsr_dtensor *positions,
                                 const tsr_rope_options *options, tsr_dtensor *out);
TSR_API tsr_status tsr_rope_backward(const tsr_dtensor *x, const tsr_dtensor *positions,
                                     const tsr_rope_options *options, const tsr_dtensor *dout,
                                     tsr_dtensor **dx);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
