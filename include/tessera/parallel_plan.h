/**
 * @file
 * Plans for models: which parameters of a model are cut over ranks, and what its modules do with
 * their input and output, by name. The `tp_plan` of Hugging Face's transformers; PyTorch's
 * parallelize_module(). docs/parallel-plans.md explains each style by example.
 *
 * @par Rules
 * A plan is a list of rules, each a pattern and a style. A pattern is the name of a module or of a
 * parameter, with `*` for each component that is a number: "model.layers.*.mlp.up_proj". A
 * parameter follows the rule for its own name, else that for its module, which is its name without
 * the last component. Where several patterns match, a component that is written out goes before
 * `*`, from the left. Numbers that are written out match themselves.
 *
 * @par Styles
 * Those of transformers 5.23: colwise, colwise_gather_output (colwise_rep), rowwise,
 * rowwise_split_input (rowwise_rep), packed_colwise, packed_rowwise, embedding_rowwise,
 * embedding_colwise, sequence_parallel, replicate, replicated_with_grad_allreduce, all_reduce,
 * mla_kv_a_proj, local_params, moe_tp_experts, moe_identity_expert, grouped_gemm,
 * ep_dispatch_experts. A style that cuts may be followed by modifiers of the cut, as in
 * "colwise;unit=128" (placement.h). In place of a style a rule may have a placement, "S(0;unit=64)"
 * or "R"; or several, one for each dim of the mesh, "R,S(1)".
 *
 * @par The plan's mesh dims
 * A plan cuts along one dim of a mesh, or along two (tsr_parallel_plan_options.dim and .group).
 * Along all other dims parameters are Replicate.
 */
#ifndef TESSERA_PARALLEL_PLAN_H
#define TESSERA_PARALLEL_PLAN_H

#include <tessera/program.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A plan. Immutable; any number of threads may use it. */
typedef struct tsr_parallel_plan tsr_parallel_plan;

/** A rule. A plain value; texts are borrowed. */
typedef struct tsr_parallel_rule {
    const char *pattern; /**< at most 255 characters, with the prefix of the options */
    const char *style;   /**< at most 255 characters */
} tsr_parallel_rule;

#define TSR_PARALLEL_MOST_RULES 4096 /**< the most rules of a plan */

/** Options of tsr_parallel_plan_create(). Texts are copied. */
typedef struct tsr_parallel_plan_options {
    size_t size;        /**< sizeof(tsr_parallel_plan_options) */
    const char *prefix; /**< put before each pattern, such as "model."; NULL: none */
    const char *dim;    /**< the mesh dim that cuts. NULL: "tp", if the mesh has it, else the only
                             dim, or that of two which is not `group` */
    const char *group;  /**< a mesh dim that cuts too, where a mesh has it; but key/value heads are
                             copied along it, so that more ranks than these work. NULL: none */
    int64_t heads;      /**< attention heads; 0: projections are cut as any other weight */
    int64_t kv_heads;   /**< key/value heads, which divide `heads`; 0: as many */
    int64_t head_dim;   /**< features of a head; needed with `heads` */
    int64_t rope_dim;   /**< for mla_kv_a_proj: its last features, which have rotary positions
                             (`qk_rope_head_dim`) */
} tsr_parallel_plan_options;

/** No prefix, the default dim, no heads. */
#define TSR_PARALLEL_PLAN_OPTIONS_INIT                                                             \
    {                                                                                              \
        sizeof(tsr_parallel_plan_options), NULL, NULL, NULL, 0, 0, 0, 0                            \
    }

/**
 * Makes a plan of `count` rules, which are copied. `options` may be NULL. The plan keeps a
 * reference to the context; the caller owns `*out`. Does not communicate. TSR_ERROR_ARGUMENT: a
 * pattern is no name, or comes twice; a style is not known, and the sentence lists those that are;
 * its modifiers are wrong; `kv_heads` do not divide `heads`, or there is no `head_dim`.
 */
TSR_API tsr_status tsr_parallel_plan_create(tsr_context *context, size_t count,
                                            const tsr_parallel_rule *rules,
                                            const tsr_parallel_plan_options *options,
                                            tsr_parallel_plan **out);

/** Frees a plan; NULL is fine. */
TSR_API void tsr_parallel_plan_destroy(tsr_parallel_plan *plan);

/** The number of rules. */
TSR_API size_t tsr_parallel_plan_count(const tsr_parallel_plan *plan);

/** The rule at `index`, its pattern with the prefix; borrowed. NULL: there is none. */
TSR_API const tsr_parallel_rule *tsr_parallel_plan_get(const tsr_parallel_plan *plan, size_t index);

/** The rule that the parameter called `name` follows; borrowed. NULL: there is none, and the
 * parameter is Replicate. */
TSR_API const tsr_parallel_rule *tsr_parallel_plan_find(const tsr_parallel_plan *plan,
                                                        const char *name);

/**
 * The layout on `mesh` of a parameter called `name`, Replicate where no rule matches. A linear
 * weight is (out, in); of tensors with more dims these are the last two. The caller owns `*out`.
 * Pure; the mesh may be abstract.
 *
 * With tsr_parallel_plan_options.heads, cuts of attention's projections fall between heads: those
 * of k_proj and v_proj between key/value heads, those of q_proj, o_proj, out_proj and
 * attention.dense between the groups of heads that share one. Fused projections are cut in each of
 * their parts: qkv_proj, in_proj_weight and in_proj_bias (all of q, then k, then v), and
 * query_key_value (group by group). Ranks may be more than key/value heads, or not divide them:
 * some then have fewer heads, or none. Modifiers in the rule turn this off.
 *
 * TSR_ERROR_ARGUMENT: the mesh lacks the plan's dim; the parameter lacks the dim to cut; its size
 * is not what the heads say, or does not divide into packed parts.
 */
TSR_API tsr_status tsr_parallel_plan_layout(const tsr_parallel_plan *plan, const char *name,
                                            const tsr_mesh *mesh, int ndim, const int64_t *shape,
                                            tsr_dtype dtype, tsr_layout **out);

/** What a module does with its input. */
typedef enum tsr_parallel_input {
    TSR_PARALLEL_INPUT_AS_IS = 0,
    TSR_PARALLEL_INPUT_WHOLE,    /**< Replicate, and each rank has a term of its gradient */
    TSR_PARALLEL_INPUT_SPLIT,    /**< cut along the last dim, as the weight's columns are */
    TSR_PARALLEL_INPUT_SEQUENCE, /**< cut along the dim before the last, the sequence */
    TSR_PARALLEL_INPUT_TERM      /**< Replicate becomes one term of Partial(sum), because the output
                                      is added to terms of other modules */
} tsr_parallel_input;

/** What a module does with its output. */
typedef enum tsr_parallel_output {
    TSR_PARALLEL_OUTPUT_AS_IS = 0,
    TSR_PARALLEL_OUTPUT_REDUCE, /**< terms are added: Partial becomes Replicate */
    TSR_PARALLEL_OUTPUT_GATHER, /**< Shard becomes Replicate */
    TSR_PARALLEL_OUTPUT_LAST    /**< as it is; but each rank has a term of the gradient of the last
                                     tsr_parallel_plan_options.rope_dim features */
} tsr_parallel_output;

/** What the rule of a module says. */
typedef struct tsr_parallel_module {
    const tsr_parallel_rule *rule; /**< borrowed from the plan; NULL: none */
    tsr_parallel_input input;
    tsr_parallel_output output;
    int varies; /**< 1: each rank has a term of the gradient of parameters that are Replicate */
} tsr_parallel_module;

/** What the module called `name` does: the rule for exactly this name counts. Without one, `rule`
 * is NULL, and all is as it is. Pure. */
TSR_API tsr_status tsr_parallel_plan_module(const tsr_parallel_plan *plan, const char *name,
                                            tsr_parallel_module *out);

/** A parameter of a model. A plain value; texts are borrowed. */
typedef struct tsr_parallel_parameter {
    const char *name;
    tsr_dtype dtype;
    int ndim;
    int64_t shape[TSR_MAX_DIMS];
} tsr_parallel_parameter;

/**
 * Checks a plan against the `count` parameters of a model, before anything is loaded: each pattern
 * matches a parameter, or a module that has one; and each parameter has a layout on `mesh`, as by
 * tsr_parallel_plan_layout(). `mesh` NULL: names alone are checked. `without` has an entry for each
 * parameter, or is NULL: 1 where no rule matches, so that it is Replicate. Pure.
 *
 * TSR_ERROR_ARGUMENT: a pattern matches nothing, and the sentence names similar names; or an error
 * of a layout.
 */
TSR_API tsr_status tsr_parallel_plan_check(const tsr_parallel_plan *plan, const tsr_mesh *mesh,
                                           size_t count, const tsr_parallel_parameter *parameters,
                                           char *without);

/**
 * tsr_parameter() with the layout of the plan. Returns the value that ops take: where each rank has
 * a term of the gradient (tsr_parallel_module.varies, and key/value heads along `group`) it is
 * tsr_op_vary() of the parameter. `parameter`, where not NULL, gets the parameter itself, by which
 * tsr_gradients() takes gradients. Errors stick to the program.
 */
TSR_API tsr_value tsr_parallel_plan_parameter(const tsr_parallel_plan *plan, tsr_program *program,
                                              const char *name, const tsr_mesh *mesh,
                                              tsr_dtype dtype, int ndim, const int64_t *shape,
                                              tsr_value *parameter);

/** The input `x` of the module called `module`, as the module's rule wants it: redistributed along
 * the plan's mesh dims, and varying where it says so. Without a rule, x. Errors stick to the
 * program. */
TSR_API tsr_value tsr_parallel_plan_input(const tsr_parallel_plan *plan, tsr_program *program,
                                          const char *module, tsr_value x);

/** The output `x` of the module called `module`, as others get it: reduced or gathered along the
 * plan's mesh dims where its rule says so. Of TSR_PARALLEL_OUTPUT_LAST it returns all features but
 * the last, and gives those to `last`, varying; else `last`, which may be NULL there, gets
 * TSR_NONE. Without a rule, x. Errors stick to the program. */
TSR_API tsr_value tsr_parallel_plan_output(const tsr_parallel_plan *plan, tsr_program *program,
                                           const char *module, tsr_value x, tsr_value *last);

#ifdef __cplusplus
}
#endif

#endif
