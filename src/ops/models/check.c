/* Layouts by a plan, and a check of a plan against a model. */
#include "ops/models/cuts.h"
#include "ops/models/match.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

static tsr_status check_shape(const char *caller, const char *name, int ndim, const int64_t *shape)
{
    if (ndim < 0 || ndim > TSR_MAX_DIMS)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: \"%.128s\" has %d dims, but must have 0 to %d", caller, name,
                              ndim, TSR_MAX_DIMS);
    return ndim == 0 || shape ? TSR_OK : tsr_status_set(TSR_ERROR_ARGUMENT, "%s: shape is NULL", caller);
}

tsr_status tsr_parallel_plan_layout(const tsr_parallel_plan *plan, const char *name, const tsr_mesh *mesh, int ndim,
                                    const int64_t *shape, tsr_dtype dtype, tsr_layout **out)
{
    bool varies;
    const char *const missing = !plan ? "plan" : !name ? "name" : !mesh ? "mesh" : !out ? "out" : NULL;
    if (missing)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_parallel_plan_layout: %s is NULL", missing);
    TSR_TRY(check_shape("tsr_parallel_plan_layout", name, ndim, shape));
    const tsr_plan_tensor tensor = {plan, tsr_plan_rule_for(plan, name), name, mesh, dtype, ndim, shape};
    return tsr_plan_place(&tensor, out, &varies);
}

/* Refuses a rule whose pattern matches nothing, with the names that are most like it. */
static tsr_status check_pattern(const char *pattern, size_t count, const tsr_parallel_parameter *parameters)
{
    tsr_near near = {.pattern = pattern};
    char names[512];
    for (size_t i = 0; i < count; i++) {
        if (tsr_pattern_reaches(pattern, parameters[i].name))
            return TSR_OK;
    }
    for (size_t i = 0; i < count; i++)
        tsr_near_add(&near, parameters[i].name);
    tsr_near_print(&near, names, sizeof names);
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "tsr_parallel_plan_check: pattern \"%.255s\" matches none of %zu parameters and their "
                          "modules%s%.500s",
                          pattern, count, near.count ? "; similar are " : "", names);
}

tsr_status tsr_parallel_plan_check(const tsr_parallel_plan *plan, const tsr_mesh *mesh, size_t count,
                                   const tsr_parallel_parameter *parameters, char *without)
{
    if (!plan || (count && !parameters))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_parallel_plan_check: %s is NULL", plan ? "parameters" : "plan");
    for (size_t i = 0; i < count; i++) {
        if (!parameters[i].name)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_parallel_plan_check: the name of parameter %zu is NULL", i);
    }
    for (size_t i = 0; i < plan->count; i++)
        TSR_TRY(check_pattern(plan->rules[i].text.pattern, count, parameters));
    for (size_t i = 0; mesh && i < count; i++) {
        tsr_layout *layout;
        const tsr_parallel_parameter *const p = &parameters[i];
        TSR_TRY(tsr_parallel_plan_layout(plan, p->name, mesh, p->ndim, p->shape, p->dtype, &layout));
        tsr_layout_destroy(layout);
    }
    for (size_t i = 0; without && i < count; i++)
        without[i] = !tsr_plan_rule_for(plan, parameters[i].name);
    return TSR_OK;
}
