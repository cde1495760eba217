/* Plans in programs. */
#include "ops/models/cuts.h"
#include "ops/programs/program.h"

#include <tessera/program_ops.h>
#include <tessera/sys/status.h>

#include <string.h>

static tsr_value fail_null(tsr_program *program, const char *call, const char *missing)
{
    return tsr_program_fail(program, tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", call, missing));
}

tsr_value tsr_parallel_plan_parameter(const tsr_parallel_plan *plan, tsr_program *program, const char *name,
                                      const tsr_mesh *mesh, tsr_dtype dtype, int ndim, const int64_t *shape,
                                      tsr_value *parameter)
{
    tsr_layout *layout;
    bool varies = false;
    if (parameter)
        *parameter = TSR_NONE;
    if (!tsr_program_records(program))
        return TSR_NONE;
    const char *const missing = !plan ? "plan" : !name ? "name" : !mesh ? "mesh" : ndim > 0 && !shape ? "shape" : NULL;
    if (missing)
        return fail_null(program, "tsr_parallel_plan_parameter", missing);
    if (ndim < 0 || ndim > TSR_MAX_DIMS)
        return tsr_program_fail(program, tsr_status_set(TSR_ERROR_ARGUMENT,
                                                        "tsr_parallel_plan_parameter: ndim is %d, but must be 0 to %d",
                                                        ndim, TSR_MAX_DIMS));
    const tsr_plan_tensor tensor = {plan, tsr_plan_rule_for(plan, name), name, mesh, dtype, ndim, shape};
    const tsr_status status = tsr_plan_place(&tensor, &layout, &varies);
    if (status != TSR_OK)
        return tsr_program_fail(program, status);
    const tsr_value value = tsr_parameter(program, name, layout);
    tsr_layout_destroy(layout);
    if (parameter)
        *parameter = value;
    return varies ? tsr_op_vary(program, value) : value;
}

/* A module's value, and what its rule says. */
typedef struct use {
    const tsr_parallel_plan *plan;
    tsr_program *program;
    const char *name;
    tsr_value x;
    const tsr_layout *own; /* of x */
    tsr_plan_dims dims;
    tsr_parallel_module module;
} use;

static tsr_status open_use(const char *call, use *u)
{
    if (!u->plan || !u->name)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", call, u->plan ? "module" : "plan");
    u->own = tsr_value_layout(u->program, u->x);
    if (!u->own)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: value %d is not one of the program's", call, u->x);
    TSR_TRY(tsr_parallel_plan_module(u->plan, u->name, &u->module));
    return tsr_plan_find_dims(u->plan, tsr_layout_mesh(u->own), &u->dims);
}

/* Moves x to a layout, which goes. */
static tsr_value move(const use *u, tsr_layout *layout)
{
    const tsr_value moved = tsr_op_to_mesh(u->program, u->x, layout);
    tsr_layout_destroy(layout);
    return moved;
}

/* Replicate along the plan's dims, of terms alone where `cuts` is false. */
static tsr_status make_whole(const use *u, bool cuts, tsr_value *out)
{
    tsr_placement placements[TSR_MAX_DIMS];
    tsr_layout *layout;
    memcpy(placements, tsr_layout_placements(u->own),
           (size_t)tsr_mesh_ndim(tsr_layout_mesh(u->own)) * sizeof *placements);
    for (int i = 0; i < u->dims.count; i++) {
        tsr_placement *const placement = &placements[u->dims.at[i]];
        if (cuts || placement->kind == TSR_PARTIAL)
            *placement = tsr_replicate();
    }
    TSR_TRY(tsr_layout_with(u->own, placements, &layout));
    *out = move(u, layout);
    return TSR_OK;
}

/* Cuts the last dim as the weight's columns. */
static tsr_status make_split(const use *u, tsr_value *out)
{
    tsr_layout *layout;
    const tsr_plan_tensor tensor = {u->plan,
                                    tsr_plan_rule_of(u->plan, u->name, strlen(u->name)),
                                    u->name,
                                    tsr_layout_mesh(u->own),
                                    tsr_layout_dtype(u->own),
                                    tsr_layout_ndim(u->own),
                                    tsr_layout_shape(u->own)};
    TSR_TRY(tsr_plan_split(&tensor, u->own, tensor.ndim - 1, &layout));
    *out = move(u, layout);
    return TSR_OK;
}

/* What is Replicate becomes one term of a sum, so that it counts once among terms. */
static tsr_status make_term(const use *u, tsr_value *out)
{
    tsr_placement placements[TSR_MAX_DIMS];
    tsr_layout *layout;
    memcpy(placements, tsr_layout_placements(u->own),
           (size_t)tsr_mesh_ndim(tsr_layout_mesh(u->own)) * sizeof *placements);
    for (int i = 0; i < u->dims.count; i++) {
        tsr_placement *const placement = &placements[u->dims.at[i]];
        if (placement->kind == TSR_REPLICATE)
            *placement = tsr_partial(TSR_SUM);
    }
    TSR_TRY(tsr_layout_with(u->own, placements, &layout));
    *out = move(u, layout);
    return TSR_OK;
}

/* Cuts the dim before the last. */
static tsr_status make_sequence(const use *u, tsr_value *out)
{
    tsr_placement placements[TSR_MAX_DIMS];
    tsr_layout *layout;
    memcpy(placements, tsr_layout_placements(u->own),
           (size_t)tsr_mesh_ndim(tsr_layout_mesh(u->own)) * sizeof *placements);
    for (int i = 0; i < u->dims.count; i++)
        placements[u->dims.at[i]] = tsr_shard(tsr_layout_ndim(u->own) - 2);
    TSR_TRY(tsr_layout_with(u->own, placements, &layout));
    *out = move(u, layout);
    return TSR_OK;
}

static tsr_status take_input(const use *u, tsr_value *out)
{
    const int ndim = tsr_layout_ndim(u->own), least = u->module.input == TSR_PARALLEL_INPUT_SEQUENCE ? 2 : 1;
    *out = u->x;
    if (u->module.input == TSR_PARALLEL_INPUT_AS_IS)
        return TSR_OK;
    if (ndim < least)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_parallel_plan_input: \"%.128s\", style \"%.80s\": the input has %d dims, but must "
                              "have %d or more",
                              u->name, u->module.rule->style, ndim, least);
    switch (u->module.input) {
    case TSR_PARALLEL_INPUT_WHOLE:
        TSR_TRY(make_whole(u, true, out));
        *out = tsr_op_vary(u->program, *out);
        return TSR_OK;
    case TSR_PARALLEL_INPUT_SPLIT:
        return make_split(u, out);
    case TSR_PARALLEL_INPUT_TERM:
        return make_term(u, out);
    default:
        return make_sequence(u, out);
    }
}

tsr_value tsr_parallel_plan_input(const tsr_parallel_plan *plan, tsr_program *program, const char *module, tsr_value x)
{
    use u = {.plan = plan, .program = program, .name = module, .x = x};
    tsr_value out = TSR_NONE;
    if (!tsr_program_records(program))
        return TSR_NONE;
    tsr_status status = open_use("tsr_parallel_plan_input", &u);
    if (status == TSR_OK)
        status = take_input(&u, &out);
    return status == TSR_OK ? out : tsr_program_fail(program, status);
}

/* Parts the last features off, which vary. */
static tsr_status part_last(const use *u, tsr_value *out, tsr_value *last)
{
    const int ndim = tsr_layout_ndim(u->own);
    const int64_t size = ndim ? tsr_layout_shape(u->own)[ndim - 1] : 0, rope = u->plan->options.rope_dim;
    if (!last)
        return tsr_status_set(
            TSR_ERROR_ARGUMENT,
            "tsr_parallel_plan_output: last is NULL, but \"%.128s\" of style \"%.80s\" has two outputs", u->name,
            u->module.rule->style);
    if (rope < 1 || rope >= size)
        return tsr_status_set(
            TSR_ERROR_ARGUMENT,
            "tsr_parallel_plan_output: \"%.128s\", style \"%.80s\": rope_dim of the plan is %lld, but "
            "must be at least 1, and less than the %lld features of the output",
            u->name, u->module.rule->style, (long long)rope, (long long)size);
    *out = tsr_op_narrow(u->program, u->x, ndim - 1, 0, size - rope);
    *last = tsr_op_vary(u->program, tsr_op_narrow(u->program, u->x, ndim - 1, size - rope, rope));
    return TSR_OK;
}

static tsr_status give_output(const use *u, tsr_value *out, tsr_value *last)
{
    *out = u->x;
    switch (u->module.output) {
    case TSR_PARALLEL_OUTPUT_REDUCE:
        return make_whole(u, false, out);
    case TSR_PARALLEL_OUTPUT_GATHER:
        return make_whole(u, true, out);
    case TSR_PARALLEL_OUTPUT_LAST:
        return part_last(u, out, last);
    default:
        return TSR_OK;
    }
}

tsr_value tsr_parallel_plan_output(const tsr_parallel_plan *plan, tsr_program *program, const char *module, tsr_value x,
                                   tsr_value *last)
{
    use u = {.plan = plan, .program = program, .name = module, .x = x};
    tsr_value out = TSR_NONE;
    if (last)
        *last = TSR_NONE;
    if (!tsr_program_records(program))
        return TSR_NONE;
    tsr_status status = open_use("tsr_parallel_plan_output", &u);
    if (status == TSR_OK)
        status = give_output(&u, &out, last);
    return status == TSR_OK ? out : tsr_program_fail(program, status);
}
