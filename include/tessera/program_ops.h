/**
 * @file
 * Ops of programs: each function records an op, as tsr_program_apply() does by its name. They are
 * the functions on dtensors, with values in place of dtensors: tsr_op_softmax(program, x, dim)
 * records what tsr_softmax(x, dim, &out) computes. Shapes, dtypes, layouts, exchanges, gradients
 * and numbers are told there, in pointwise.h, reductions.h, norms.h, products.h, attention.h,
 * losses.h, mixture.h, indexing.h, views.h, order.h, random.h and varying.h.
 *
 * @par Values
 * A function returns the op's first result. TSR_NONE stands for an optional operand that is left
 * out. The same call again returns the value that is there already. Lists, texts, options and keys
 * are borrowed for the call. Sizes and other integers may stand for lengths (tsr_length()), but for
 * those of tsr_op_split().
 *
 * @par Errors
 * Those of the function on dtensors, and values that are none of the program's: the function then
 * returns TSR_NONE, and the error sticks to the program (program.h). Nothing communicates.
 */
#ifndef TESSERA_PROGRAM_OPS_H
#define TESSERA_PROGRAM_OPS_H

#include <tessera/attention.h>
#include <tessera/losses.h>
#include <tessera/mixture.h>
#include <tessera/program.h>
#include <tessera/random.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @{ */
/** Arithmetic (pointwise.h): x + y and so on, repeated along one another. */
TSR_API tsr_value tsr_op_add(tsr_program *program, tsr_value x, tsr_value y);
TSR_API tsr_value tsr_op_sub(tsr_program *program, tsr_value x, tsr_value y);
TSR_API tsr_value tsr_op_mul(tsr_program *program, tsr_value x, tsr_value y);
TSR_API tsr_value tsr_op_div(tsr_program *program, tsr_value x, tsr_value y);
TSR_API tsr_value tsr_op_maximum(tsr_program *program, tsr_value x, tsr_value y);
TSR_API tsr_value tsr_op_minimum(tsr_program *program, tsr_value x, tsr_value y);
TSR_API tsr_value tsr_op_pow(tsr_program *program, tsr_value x, tsr_value y);
TSR_API tsr_value tsr_op_floor_divide(tsr_program *program, tsr_value x, tsr_value y);
TSR_API tsr_value tsr_op_remainder(tsr_program *program, tsr_value x, tsr_value y);
/** @} */

/** @{ */
/** Comparisons, to bool, and logic (pointwise.h). */
TSR_API tsr_value tsr_op_eq(tsr_program *program, tsr_value x, tsr_value y);
TSR_API tsr_value tsr_op_ne(tsr_program *program, tsr_value x, tsr_value y);
TSR_API tsr_value tsr_op_lt(tsr_program *program, tsr_value x, tsr_value y);
TSR_API tsr_value tsr_op_le(tsr_program *program, tsr_value x, tsr_value y);
TSR_API tsr_value tsr_op_gt(tsr_program *program, tsr_value x, tsr_value y);
TSR_API tsr_value tsr_op_ge(tsr_program *program, tsr_value x, tsr_value y);
TSR_API tsr_value tsr_op_logical_and(tsr_program *program, tsr_value x, tsr_value y);
TSR_API tsr_value tsr_op_logical_or(tsr_program *program, tsr_value x, tsr_value y);
TSR_API tsr_value tsr_op_logical_not(tsr_program *program, tsr_value x);
TSR_API tsr_value tsr_op_isnan(tsr_program *program, tsr_value x);
TSR_API tsr_value tsr_op_isinf(tsr_program *program, tsr_value x);
TSR_API tsr_value tsr_op_isfinite(tsr_program *program, tsr_value x);
/** @} */

/** @{ */
/** By element (pointwise.h); tsr_op_ln() is the natural logarithm. */
TSR_API tsr_value tsr_op_neg(tsr_program *program, tsr_value x);
TSR_API tsr_value tsr_op_abs(tsr_program *program, tsr_value x);
TSR_API tsr_value tsr_op_exp(tsr_program *program, tsr_value x);
TSR_API tsr_value tsr_op_ln(tsr_program *program, tsr_value x);
TSR_API tsr_value tsr_op_sqrt(tsr_program *program, tsr_value x);
TSR_API tsr_value tsr_op_rsqrt(tsr_program *program, tsr_value x);
TSR_API tsr_value tsr_op_tanh(tsr_program *program, tsr_value x);
TSR_API tsr_value tsr_op_sigmoid(tsr_program *program, tsr_value x);
TSR_API tsr_value tsr_op_silu(tsr_program *program, tsr_value x);
TSR_API tsr_value tsr_op_relu(tsr_program *program, tsr_value x);
TSR_API tsr_value tsr_op_reciprocal(tsr_program *program, tsr_value x);
TSR_API tsr_value tsr_op_square(tsr_program *program, tsr_value x);
TSR_API tsr_value tsr_op_expm1(tsr_program *program, tsr_value x);
TSR_API tsr_value tsr_op_log1p(tsr_program *program, tsr_value x);
TSR_API tsr_value tsr_op_softplus(tsr_program *program, tsr_value x);
TSR_API tsr_value tsr_op_sin(tsr_program *program, tsr_value x);
TSR_API tsr_value tsr_op_cos(tsr_program *program, tsr_value x);
TSR_API tsr_value tsr_op_erf(tsr_program *program, tsr_value x);
TSR_API tsr_value tsr_op_sign(tsr_program *program, tsr_value x);
TSR_API tsr_value tsr_op_floor(tsr_program *program, tsr_value x);
TSR_API tsr_value tsr_op_ceil(tsr_program *program, tsr_value x);
TSR_API tsr_value tsr_op_round(tsr_program *program, tsr_value x);
/** @} */

/** @{ */
/** By element, with settings: GELU by the error function, or with `tanh` 1 by its approximation; x
 * times `factor`; x in another dtype; x within bounds; leaky ReLU; ELU (pointwise.h). */
TSR_API tsr_value tsr_op_gelu(tsr_program *program, tsr_value x, int tanh);
TSR_API tsr_value tsr_op_scale(tsr_program *program, tsr_value x, double factor);
TSR_API tsr_value tsr_op_cast(tsr_program *program, tsr_value x, tsr_dtype dtype);
TSR_API tsr_value tsr_op_clamp(tsr_program *program, tsr_value x, double min, double max);
TSR_API tsr_value tsr_op_leaky_relu(tsr_program *program, tsr_value x, double slope);
TSR_API tsr_value tsr_op_elu(tsr_program *program, tsr_value x, double alpha);
/** @} */

/** @{ */
/** SwiGLU, silu(gate) * up; x where `condition` is 1, y elsewhere; `value` where `mask` is 1, x
 * elsewhere (pointwise.h). */
TSR_API tsr_value tsr_op_silu_mul(tsr_program *program, tsr_value gate, tsr_value up);
TSR_API tsr_value tsr_op_where(tsr_program *program, tsr_value condition, tsr_value x, tsr_value y);
TSR_API tsr_value tsr_op_masked_fill(tsr_program *program, tsr_value x, tsr_value mask,
                                     double value);
/** @} */

/** @{ */
/** Reductions over the `count` dims in `dims`, all if count is 0, which stay with size 1 if `keep`
 * is 1 (reductions.h). */
TSR_API tsr_value tsr_op_sum(tsr_program *program, tsr_value x, int count, const int64_t *dims,
                             int keep);
TSR_API tsr_value tsr_op_mean(tsr_program *program, tsr_value x, int count, const int64_t *dims,
                              int keep);
TSR_API tsr_value tsr_op_max(tsr_program *program, tsr_value x, int count, const int64_t *dims,
                             int keep);
TSR_API tsr_value tsr_op_min(tsr_program *program, tsr_value x, int count, const int64_t *dims,
                             int keep);
TSR_API tsr_value tsr_op_prod(tsr_program *program, tsr_value x, int count, const int64_t *dims,
                              int keep);
TSR_API tsr_value tsr_op_any(tsr_program *program, tsr_value x, int count, const int64_t *dims,
                             int keep);
TSR_API tsr_value tsr_op_all(tsr_program *program, tsr_value x, int count, const int64_t *dims,
                             int keep);
TSR_API tsr_value tsr_op_var(tsr_program *program, tsr_value x, int count, const int64_t *dims,
                             int keep, double correction);
TSR_API tsr_value tsr_op_std(tsr_program *program, tsr_value x, int count, const int64_t *dims,
                             int keep, double correction);
/** @} */

/** @{ */
/** Positions of the largest and the smallest element along `dim` (reductions.h). */
TSR_API tsr_value tsr_op_argmax(tsr_program *program, tsr_value x, int dim);
TSR_API tsr_value tsr_op_argmin(tsr_program *program, tsr_value x, int dim);
/** @} */

/** @{ */
/** Softmax and its logarithm along `dim`; logsumexp and the norm by `p` over dims as of
 * tsr_op_sum() (norms.h). */
TSR_API tsr_value tsr_op_softmax(tsr_program *program, tsr_value x, int dim);
TSR_API tsr_value tsr_op_log_softmax(tsr_program *program, tsr_value x, int dim);
TSR_API tsr_value tsr_op_logsumexp(tsr_program *program, tsr_value x, int count,
                                   const int64_t *dims, int keep);
TSR_API tsr_value tsr_op_norm(tsr_program *program, tsr_value x, double p, int count,
                              const int64_t *dims, int keep);
/** @} */

/** @{ */
/** Norms of the last dim; `weight` and `bias` may be TSR_NONE (norms.h). */
TSR_API tsr_value tsr_op_rms_norm(tsr_program *program, tsr_value x, tsr_value weight,
                                  double epsilon);
TSR_API tsr_value tsr_op_layer_norm(tsr_program *program, tsr_value x, tsr_value weight,
                                    tsr_value bias, double epsilon);
/** @} */

/** @{ */
/** Products: `b` of linear layers, a bias, may be TSR_NONE. w of linear_q8 and its scales are those
 * of tsr_quantize_q8() (products.h). */
TSR_API tsr_value tsr_op_matmul(tsr_program *program, tsr_value a, tsr_value b);
TSR_API tsr_value tsr_op_linear(tsr_program *program, tsr_value x, tsr_value w, tsr_value b);
TSR_API tsr_value tsr_op_grouped_matmul(tsr_program *program, tsr_value x, tsr_value w,
                                        tsr_value sizes);
TSR_API tsr_value tsr_op_linear_q8(tsr_program *program, tsr_value x, tsr_value w, tsr_value scales,
                                   tsr_value b);
/** @} */

/** The sum of products that `equation` says, of `count` operands (products.h). */
TSR_API tsr_value tsr_op_einsum(tsr_program *program, const char *equation, int count,
                                const tsr_value *operands);

/** @{ */
/** What experts make of tokens, in slots, and the sum of slots; `options` NULL: the defaults
 * (mixture.h). */
TSR_API tsr_value tsr_op_experts(tsr_program *program, tsr_value x, tsr_value ids,
                                 tsr_value gate_up, tsr_value down,
                                 const tsr_expert_mlp_options *options);
TSR_API tsr_value tsr_op_combine(tsr_program *program, tsr_value y, tsr_value weights);
/** @} */

/** Attention; `mask` may be TSR_NONE, and `options` NULL: the defaults (attention.h). */
TSR_API tsr_value tsr_op_attention(tsr_program *program, tsr_value q, tsr_value k, tsr_value v,
                                   tsr_value mask, const tsr_attention_options *options);

/** Rotary positions; `options` NULL: the defaults (attention.h). */
TSR_API tsr_value tsr_op_rope(tsr_program *program, tsr_value x, tsr_value positions,
                              const tsr_rope_options *options);

/** @{ */
/** Cross-entropy of logits, and of x w' without the logits; `options` NULL: the mean (losses.h). */
TSR_API tsr_value tsr_op_cross_entropy(tsr_program *program, tsr_value logits, tsr_value targets,
                                       const tsr_cross_entropy_options *options);
TSR_API tsr_value tsr_op_linear_cross_entropy(tsr_program *program, tsr_value x, tsr_value w,
                                              tsr_value targets,
                                              const tsr_cross_entropy_options *options);
/** @} */

/** @{ */
/** Elements by ids (indexing.h). */
TSR_API tsr_value tsr_op_embedding(tsr_program *program, tsr_value weight, tsr_value ids);
TSR_API tsr_value tsr_op_index_select(tsr_program *program, tsr_value x, tsr_value index, int dim);
TSR_API tsr_value tsr_op_gather(tsr_program *program, tsr_value x, tsr_value index, int dim);
TSR_API tsr_value tsr_op_scatter_add(tsr_program *program, tsr_value x, tsr_value index,
                                     tsr_value source, int dim);
TSR_API tsr_value tsr_op_one_hot(tsr_program *program, tsr_value ids, int64_t classes);
TSR_API tsr_value tsr_op_bincount(tsr_program *program, tsr_value ids, int64_t length);
/** @} */

/** @{ */
/** Other shapes and orders of dims, and parts (views.h). A run copies nothing where the function on
 * dtensors makes a view. */
TSR_API tsr_value tsr_op_reshape(tsr_program *program, tsr_value x, int ndim, const int64_t *shape);
TSR_API tsr_value tsr_op_transpose(tsr_program *program, tsr_value x, int dim0, int dim1);
TSR_API tsr_value tsr_op_permute(tsr_program *program, tsr_value x, int count, const int64_t *dims);
TSR_API tsr_value tsr_op_expand(tsr_program *program, tsr_value x, int ndim, const int64_t *shape);
TSR_API tsr_value tsr_op_squeeze(tsr_program *program, tsr_value x, int count, const int64_t *dims);
TSR_API tsr_value tsr_op_unsqueeze(tsr_program *program, tsr_value x, int dim);
TSR_API tsr_value tsr_op_slice(tsr_program *program, tsr_value x, int dim, int64_t start,
                               int64_t end, int64_t step);
TSR_API tsr_value tsr_op_narrow(tsr_program *program, tsr_value x, int dim, int64_t start,
                                int64_t length);
/** @} */

/** @{ */
/** The elements in other places, or with others (views.h). */
TSR_API tsr_value tsr_op_pad(tsr_program *program, tsr_value x, int dim, int64_t before,
                             int64_t after, double value);
TSR_API tsr_value tsr_op_flip(tsr_program *program, tsr_value x, int count, const int64_t *dims);
TSR_API tsr_value tsr_op_roll(tsr_program *program, tsr_value x, int dim, int64_t shift);
TSR_API tsr_value tsr_op_tril(tsr_program *program, tsr_value x, int64_t diagonal);
TSR_API tsr_value tsr_op_triu(tsr_program *program, tsr_value x, int64_t diagonal);
/** @} */

/** `count` parts of x along `dim`, of the sizes in `sizes`, in the order of `out`, which has room
 * for all (views.h). */
TSR_API void tsr_op_split(tsr_program *program, tsr_value x, int dim, int count,
                          const int64_t *sizes, tsr_value *out);

/** @{ */
/** `count` values (1 to 8) one behind the other along `dim`, or along a new dim (views.h). */
TSR_API tsr_value tsr_op_concat(tsr_program *program, int count, const tsr_value *x, int dim);
TSR_API tsr_value tsr_op_stack(tsr_program *program, int count, const tsr_value *x, int dim);
/** @} */

/** @{ */
/** Elements in order along `dim`, or the `k` largest; `*indices`, where not NULL, gets their
 * positions (order.h). */
TSR_API tsr_value tsr_op_sort(tsr_program *program, tsr_value x, int dim, int descending,
                              tsr_value *indices);
TSR_API tsr_value tsr_op_topk(tsr_program *program, tsr_value x, int64_t k, int dim,
                              tsr_value *indices);
/** @} */

/** @{ */
/** The positions of tsr_op_sort() alone, and cumulative sums (order.h). */
TSR_API tsr_value tsr_op_argsort(tsr_program *program, tsr_value x, int dim, int descending);
TSR_API tsr_value tsr_op_cumsum(tsr_program *program, tsr_value x, int dim);
/** @} */

/** @{ */
/** Random numbers (random.h) in `layout`, which is retained: those of `*key`, the same in every
 * run, or with one of tsr_run_key() those of the key that each run gives. */
TSR_API tsr_value tsr_op_uniform(tsr_program *program, const tsr_layout *layout,
                                 const tsr_random_key *key, double low, double high);
TSR_API tsr_value tsr_op_normal(tsr_program *program, const tsr_layout *layout,
                                const tsr_random_key *key, double mean, double std);
TSR_API tsr_value tsr_op_truncated_normal(tsr_program *program, const tsr_layout *layout,
                                          const tsr_random_key *key, double mean, double std,
                                          double low, double high);
TSR_API tsr_value tsr_op_bernoulli(tsr_program *program, const tsr_layout *layout,
                                   const tsr_random_key *key, double p);
TSR_API tsr_value tsr_op_bits(tsr_program *program, const tsr_layout *layout,
                              const tsr_random_key *key);
TSR_API tsr_value tsr_op_randint(tsr_program *program, const tsr_layout *layout,
                                 const tsr_random_key *key, int64_t low, int64_t high);
/** @} */

/** 0 with probability `p`, else x / (1 - p) (random.h). Every run drops the same elements, or with
 * a key of tsr_run_key() those of the key that it gives; the backward drops those of the forward.
 */
TSR_API tsr_value tsr_op_dropout(tsr_program *program, tsr_value x, double p,
                                 const tsr_random_key *key);

/** x under other placements of its mesh, one a mesh dim as text: "S(0),R". Every policy allows it,
 * and the backward moves the gradient back. */
TSR_API tsr_value tsr_op_redistribute(tsr_program *program, tsr_value x, const char *placements);

/** x, Replicate where it is Partial; with `partial` 1 the result varies along these mesh dims, so
 * that the backward adds terms of its gradient (varying.h). */
TSR_API tsr_value tsr_op_all_reduce(tsr_program *program, tsr_value x, int partial);

/** x, as a value that varies along the mesh dims on which it is Replicate: the backward adds terms
 * of its gradient (varying.h). */
TSR_API tsr_value tsr_op_vary(tsr_program *program, tsr_value x);

#ifdef __cplusplus
}
#endif

#endif
