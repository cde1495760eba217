/**
 * @file
 * Mixtures of experts on dtensors: gated layers of which each token goes through some, and the sum
 * of what they make. docs/ops.md shows the whole layer, routing included. What all operations have
 * in common (layouts, dtypes, the three forms of a function) is in tessera/ops.h.
 */
#ifndef TESSERA_MIXTURE_H
#define TESSERA_MIXTURE_H

#include <tessera/dtensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What an expert does to its gates. */
typedef enum tsr_expert_mlp_activation {
    TSR_EXPERT_MLP_SILU = 0,
    TSR_EXPERT_MLP_GELU,
    TSR_EXPERT_MLP_GELU_TANH,
    TSR_EXPERT_MLP_RELU
} tsr_expert_mlp_activation;

/** What becomes of a slot whose expert has as many tokens as it may. */
typedef enum tsr_expert_mlp_overflow {
    TSR_EXPERT_MLP_FAIL = 0, /**< TSR_ERROR_ARGUMENT: the sentence tells how many the expert has */
    TSR_EXPERT_MLP_DROP /**< it is 0; earlier tokens, and of one token earlier slots, come first */
} tsr_expert_mlp_overflow;

/** What an id behind the last expert means. A negative id is an error. */
typedef enum tsr_expert_mlp_beyond {
    TSR_EXPERT_MLP_REFUSE = 0, /**< TSR_ERROR_ARGUMENT */
    TSR_EXPERT_MLP_ZERO,       /**< the slot is 0 */
    TSR_EXPERT_MLP_IDENTITY    /**< the slot is the token itself, which is as long */
} tsr_expert_mlp_beyond;

/** Options of tsr_expert_mlp() and its relatives. */
typedef struct tsr_expert_mlp_options {
    size_t size; /**< sizeof(tsr_expert_mlp_options) */
    tsr_expert_mlp_activation activation;
    tsr_expert_mlp_overflow overflow;
    tsr_expert_mlp_beyond beyond;
    int64_t capacity; /**< the most slots of an expert, in the whole tensor; 0: any number */
} tsr_expert_mlp_options;

/** SiLU, any number of tokens, and ids of experts alone. */
#define TSR_EXPERT_MLP_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(tsr_expert_mlp_options), TSR_EXPERT_MLP_SILU, TSR_EXPERT_MLP_FAIL,                  \
            TSR_EXPERT_MLP_REFUSE, 0                                                               \
    }

/** @{ */
/**
 * What experts make of tokens: y[t, j] = down[e] (activation(gate[e] x[t]) * (up[e] x[t])) with e =
 * ids[t, j]. The op is called experts. x is (t, k), `ids` (t, s), i64 or i32, `gate_up` (e, 2 i,
 * k), of each expert first all rows of gates, then those of ups, `down` (e, h, i), and y (t, s, h).
 * This is how transformers saves the experts of Mixtral and Qwen3-MoE, as gate_up_proj and
 * down_proj. Floats are f64, or any mixture of f32, f16 and bf16: y has their dtype, or f32 if they
 * differ. Hidden values are f32, or f64. `options` NULL: the defaults.
 *
 * Any of these may be cut, in all tensors that have it alike:
 * - e: a rank computes the slots of its own experts, of which there may be any number, and others
 *   are -0: y is Partial(sum), and its sum exact.
 * - i, "S(1;interleave=2)" of gate_up and "S(2)" of down, so that a rank has the gates and the ups
 *   of its columns: y is Partial(sum).
 * - t, s, and h of down: y is cut as they are.
 * k must be whole. With a capacity t and s must be, too, because it counts all tokens; with
 * TSR_EXPERT_MLP_IDENTITY h must be.
 *
 * Nothing is exchanged. Each rank sorts its slots by expert, so that it reads the weights of each
 * expert once for 256 tokens. Gradients compute hidden values again: dx is Partial(sum) where e, i,
 * s or h are cut, and those of weights where t, s or h are. dx is added over the slots of a token
 * in their order.
 */
TSR_API tsr_status tsr_expert_mlp(const tsr_dtensor *x, const tsr_dtensor *ids,
                                  const tsr_dtensor *gate_up, const tsr_dtensor *down,
                                  const tsr_expert_mlp_options *options, tsr_dtensor **out);
TSR_API tsr_status tsr_expert_mlp_into(const tsr_dtensor *x, const tsr_dtensor *ids,
                                       const tsr_dtensor *gate_up, const tsr_dtensor *down,
                                       const tsr_expert_mlp_options *options, tsr_dtensor *out);
TSR_API tsr_status tsr_expert_mlp_backward(const tsr_dtensor *x, const tsr_dtensor *ids,
                                           const tsr_dtensor *gate_up, const tsr_dtensor *down,
                                           const tsr_expert_mlp_options *options,
                                           const tsr_dtensor *dout, tsr_dtensor **dx,
                                           tsr_dtensor **dgate_up, tsr_dtensor **ddown);
/** @} */

/** @{ */
/**
 * The sum over the slots of each token: out[t] is the sum of weights[t, j] y[t, j], in ascending
 * order of j, in f32, of f64 in f64, rounded once to y's dtype. y is (t, s, h), weights (t, s). t
 * and h may be cut; along a mesh dim that cuts s, out is Partial(sum), as it is where y is.
 *
 * Slots are added in their order where a rank has all of a token, so make a y that is Partial over
 * experts "S(2)" or "S(0)" first: the bits of out then do not depend on how experts are cut. A
 * Partial y that is combined as it is, and reduced afterwards, moves s times less.
 */
TSR_API tsr_status tsr_combine(const tsr_dtensor *y, const tsr_dtensor *weights, tsr_dtensor **out);
TSR_API tsr_status tsr_combine_into(const tsr_dtensor *y, const tsr_dtensor *weights,
                                    tsr_dtensor *out);
TSR_API tsr_status tsr_combine_backward(const tsr_dtensor *y, const tsr_dtensor *weights,
                                        const tsr_dtensor *dout, tsr_dtensor **dy,
                                        tsr_dtensor **dweights);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
