/* Fuzzes plans for models: a text is refused with a message, or has rules, which make a plan or are
 * refused with a message; a plan gives each of some parameters a layout, or a message. */
#include "fuzz.h"

#include <tessera/parallel_rules.h>

static void ask(const tsr_parallel_plan *plan, const tsr_mesh *mesh, const char *name, int ndim)
{
    static const int64_t shape[] = {12, 8, 6};
    tsr_layout *layout = NULL;
    tsr_parallel_module module;
    if (tsr_parallel_plan_layout(plan, name, mesh, ndim, shape, TSR_F32, &layout) != TSR_OK)
        FUZZ_REQUIRE(!layout && tsr_status_message()[0] != '\0');
    tsr_layout_destroy(layout);
    if (tsr_parallel_plan_module(plan, name, &module) == TSR_OK && module.rule)
        FUZZ_REQUIRE(strlen(module.rule->style) <= 255);
}

static void use(tsr_context *context, const tsr_parallel_plan *plan)
{
    static const tsr_parallel_parameter some = {"a.0.q_proj.weight", TSR_F32, 2, {12, 8}};
    tsr_mesh *mesh = NULL;
    FUZZ_REQUIRE(tsr_mesh_parse(NULL, context, "tp=3,group=2", &mesh) == TSR_OK);
    ask(plan, mesh, "a", 1);
    ask(plan, mesh, "a.bias", 1);
    ask(plan, mesh, "a.0.q_proj.weight", 2);
    ask(plan, mesh, "a.1", 3);
    ask(plan, mesh, "", 0);
    for (size_t i = 0; tsr_parallel_plan_get(plan, i) && i < 8; i++)
        ask(plan, mesh, tsr_parallel_plan_get(plan, i)->pattern, 2);
    if (tsr_parallel_plan_check(plan, mesh, 1, &some, NULL) != TSR_OK)
        FUZZ_REQUIRE(tsr_status_message()[0] != '\0');
    tsr_mesh_destroy(mesh);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *text = fuzz_copy(data, size);
    tsr_context *context = NULL;
    tsr_parallel_rules *rules = NULL;
    tsr_parallel_plan *plan = NULL;
    tsr_parallel_plan_options options = TSR_PARALLEL_PLAN_OPTIONS_INIT;
    options.group = "group";
    options.heads = 6;
    options.kv_heads = size % 2 ? 3 : 6;
    options.head_dim = 2;
    FUZZ_REQUIRE(tsr_context_create(NULL, &context) == TSR_OK);
    if (tsr_parallel_rules_parse("plan.json", (const char *)text, size, &rules) == TSR_OK) {
        size_t count;
        const tsr_parallel_rule *const all = tsr_parallel_rules_all(rules, &count);
        if (tsr_parallel_plan_create(context, count, all, &options, &plan) == TSR_OK)
            use(context, plan);
        else
            FUZZ_REQUIRE(tsr_status_message()[0] != '\0');
    } else {
        FUZZ_REQUIRE(!rules && tsr_status_message()[0] != '\0');
    }
    tsr_parallel_plan_destroy(plan);
    tsr_parallel_rules_destroy(rules);
    tsr_context_destroy(context);
    free(text);
    return 0;
}
