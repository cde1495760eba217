/** A plan for models. */
#ifndef TSR_OPS_MODELS_PLAN_H
#define TSR_OPS_MODELS_PLAN_H

#include "ops/models/styles.h"

/** A rule that was read. */
typedef struct tsr_plan_rule {
    tsr_parallel_rule text; /**< with the prefix; the plan's own */
    tsr_style_text style;
} tsr_plan_rule;

struct tsr_parallel_plan {
    tsr_context *context;
    tsr_plan_rule *rules;
    size_t count;
    tsr_parallel_plan_options options; /**< texts are the plan's own; kv_heads is set where heads are */
    char *texts;
};

/** The rule for exactly this name, or NULL. */
const tsr_plan_rule *tsr_plan_rule_of(const tsr_parallel_plan *plan, const char *name, size_t length);

/** The rule that a parameter follows, or NULL. */
const tsr_plan_rule *tsr_plan_rule_for(const tsr_parallel_plan *plan, const char *name);

#endif
