/**
 * @file
 * Rules of plans for models (parallel_plan.h) as JSON. In libtessera-files.
 *
 * The text is an object whose keys are patterns and whose values are styles or placements:
 *
 *     {"model.layers.*.mlp.up_proj": "colwise", "lm_head": {"weight": "S(0)", "bias": "R"}}
 *
 * An object as a value has rules for parameters of the module: here "lm_head.weight" and
 * "lm_head.bias". A model's config.json is read too, where it has a plan, `base_model_tp_plan`: it
 * is for the base model, so that "model." goes before its patterns. The text is not trusted.
 */
#ifndef TESSERA_PARALLEL_RULES_H
#define TESSERA_PARALLEL_RULES_H

#include <tessera/parallel_plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Rules that were read. Immutable; any number of threads may use them. */
typedef struct tsr_parallel_rules tsr_parallel_rules;

/**
 * Reads the rules of a file of at most 16 MiB. Each rank that calls this reads the file. The caller
 * owns `*out`. TSR_ERROR_IO: the file cannot be read. TSR_ERROR_ARGUMENT: it is not JSON, or not of
 * this form; a key comes twice; or it is a config.json without a plan. Patterns and styles are
 * checked by tsr_parallel_plan_create().
 */
TSR_API tsr_status tsr_parallel_rules_open(const char *path, tsr_parallel_rules **out);

/** tsr_parallel_rules_open() of a text of `bytes` bytes; `name` stands for the file in sentences.
 */
TSR_API tsr_status tsr_parallel_rules_parse(const char *name, const char *text, size_t bytes,
                                            tsr_parallel_rules **out);

/** Frees rules; NULL is fine. */
TSR_API void tsr_parallel_rules_destroy(tsr_parallel_rules *rules);

/** The rules, in the order of the text, for tsr_parallel_plan_create(), and in `*count` their
 * number; borrowed. */
TSR_API const tsr_parallel_rule *tsr_parallel_rules_all(const tsr_parallel_rules *rules,
                                                        size_t *count);

#ifdef __cplusplus
}
#endif

#endif
