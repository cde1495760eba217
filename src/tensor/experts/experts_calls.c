/* The public calls. */
#include "base/checked.h"
#include "base/hash.h"
#include "base/memory/memory.h"
#include "base/options.h"
#include "comm/core/agree.h"
#include "comm/core/entry.h"
#include "comm/meshes/along.h"
#include "placement/ownership.h"
#include "placement/print.h"
#include "tensor/dtensor.h"
#include "tensor/experts/expert_checks.h"
#include "tensor/experts/experts_direct.h"
#include "tensor/experts/experts_message.h"

#include <tessera/sys/status.h>

#include <string.h>

#define CREATE "tsr_experts_plan_create"

static tsr_status check_layout(const tsr_layout *layout)
{
    char text[512];
    if (layout->ndim == 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CREATE ": experts is of a scalar, which has no experts");
    for (int i = 0; i < layout->mesh_ndim; i++)
        if (tsr_layout_kind(layout, i) == TSR_PARTIAL)
            return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                                  CREATE
                                  ": experts is %s: mesh dim %d holds terms, not experts; give a layout of R and S",
                                  tsr_layout_describe(layout, text, sizeof text), i);
    return TSR_OK;
}

/* Checks what a plan is for, and sets it. */
static tsr_status set_sizes(tsr_experts_plan *plan, const tsr_experts_options *options)
{
    int64_t bytes, places;
    if (plan->tokens < 0 || plan->slots < 1 || plan->width < 1)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              CREATE
                              ": tokens is %lld, slots %lld and width %lld: tokens is 0 or more, the others 1 or "
                              "more",
                              (long long)plan->tokens, (long long)plan->slots, (long long)plan->width);
    if (options->expert_capacity < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              CREATE ": options.expert_capacity is %lld: it is a number of rows, or 0 for any",
                              (long long)options->expert_capacity);
    if ((unsigned)options->overflow >= TSR_EXPERTS_OVERFLOW_END)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              CREATE ": options.overflow is %d: it is TSR_EXPERTS_FAIL or TSR_EXPERTS_DROP",
                              (int)options->overflow);
    if ((unsigned)plan->dtype >= TSR_DTYPE_END || !tsr_expert_kernels_portable.loops[plan->dtype].sum)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, CREATE ": dtype is %s: tokens are of a real floating type",
                              tsr_dtype_name(plan->dtype));
    if (!tsr_multiply(plan->width, (int64_t)tsr_dtype_bytes(plan->dtype), &bytes) ||
        !tsr_multiply(plan->tokens, plan->slots, &places))
        return tsr_status_set(
            TSR_ERROR_ARGUMENT, CREATE ": %lld tokens of %lld slots and %lld %s are more than 2^63 - 1",
            (long long)plan->tokens, (long long)plan->slots, (long long)plan->width, tsr_dtype_name(plan->dtype));
    plan->row_bytes = (size_t)bytes;
    plan->expert_capacity = options->expert_capacity > 0 ? options->expert_capacity : INT64_MAX;
    plan->overflow = options->overflow;
    return TSR_OK;
}

static uint64_t hash_plan(const tsr_experts_plan *plan)
{
    const int64_t words[] = {plan->slots, plan->width, (int64_t)plan->dtype, plan->expert_capacity,
                             (int64_t)plan->overflow};
    return tsr_hash_words(tsr_hash_word(TSR_HASH_SEED, plan->layout->hash), words, sizeof words / sizeof *words);
}

/* Sets what the plan is for; `given` may be NULL. */
static tsr_status describe_plan(tsr_experts_plan *plan, const tsr_experts_options *given, const void *out)
{
    tsr_experts_options options = TSR_EXPERTS_OPTIONS_INIT;
    if (!out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CREATE ": out is NULL");
    TSR_TRY(check_layout(plan->layout));
    TSR_TRY(tsr_options_read(CREATE, given, &options, sizeof options));
    TSR_TRY(set_sizes(plan, &options));
    plan->hash = hash_plan(plan);
    return TSR_OK;
}

/* A plan of what `wanted` describes. Does not communicate. */
static tsr_status make_plan(const tsr_experts_plan *wanted, tsr_experts_plan **out)
{
    void *memory;
    TSR_TRY(tsr_allocate_zeroed(wanted->context, sizeof **out, &memory));
    tsr_experts_plan *const plan = memory;
    *plan = *wanted;
    plan->context = tsr_context_retain(plan->context);
    plan->layout = tsr_layout_retain(plan->layout);
    *out = plan;
    return plan->group ? tsr_expert_plan_fill(plan) : TSR_OK;
}

/* `wanted` has what the caller gave. */
static tsr_status create(tsr_experts_plan *wanted, const tsr_experts_options *options, tsr_experts_plan **out)
{
    tsr_experts_plan *plan = NULL;
    const tsr_expert_call call = {.plan = wanted, .name = CREATE};
    TSR_TRY(tsr_mesh_find_group(wanted->layout->mesh, CREATE, NULL, &wanted->group));
    tsr_status status = describe_plan(wanted, options, out);
    if (status == TSR_OK)
        status = make_plan(wanted, &plan);
    if (wanted->group)
        status = tsr_comm_agree(wanted->group->comm, wanted->hash, status, tsr_expert_describe, &call);
    if (status == TSR_OK)
        *out = plan;
    else
        tsr_experts_plan_destroy(plan);
    return status;
}

tsr_status tsr_experts_plan_create(const tsr_layout *experts, int64_t tokens, int64_t slots, int64_t width,
                                   tsr_dtype dtype, const tsr_experts_options *options, tsr_experts_plan **out)
{
    if (!experts)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CREATE ": experts is NULL");
    TSR_TRY(tsr_check_communicates(experts->mesh, CREATE));
    tsr_experts_plan wanted = {.context = experts->context,
                               .layout = (tsr_layout *)experts,
                               .comm = tsr_mesh_comm(experts->mesh),
                               .tokens = tokens,
                               .slots = slots,
                               .width = width,
                               .dtype = dtype,
                               .count = experts->ndim > 0 ? experts->shape[0] : 0};
    TSR_TRY(tsr_comm_enter(wanted.comm, CREATE));
    return tsr_comm_leave(wanted.comm, create(&wanted, options, out));
}

/* Checks and runs a call. */
static tsr_status check_and_run(tsr_expert_call *call, const tsr_expert_operand *operands, size_t count)
{
    tsr_experts_plan *const plan = call->plan;
    const tsr_status local = tsr_expert_check(plan, call->name, call->dispatches, operands, count);
    call->fingerprint = tsr_hash_text(tsr_hash_word(plan->hash, call->products ? 1 : 0), call->name);
    if (call->dispatches)
        plan->routed = false;
    TSR_TRY(plan->messages ? tsr_experts_run_by_messages(call, local) : tsr_experts_run_directly(call, local));
    plan->routed = true;
    return TSR_OK;
}

static tsr_status run(tsr_expert_call *call, const tsr_expert_operand *operands, size_t count)
{
    tsr_experts_plan *const plan = call->plan;
    if (!plan)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: plan is NULL", call->name);
    TSR_TRY(tsr_check_communicates(plan->layout->mesh, call->name));
    if (!plan->group)
        return TSR_OK;
    TSR_TRY(tsr_comm_enter(plan->comm, call->name));
    return tsr_comm_leave(plan->comm, check_and_run(call, operands, count));
}

#define RUN(call, operands) run(call, operands, sizeof(operands) / sizeof *(operands))

static void write_sizes(const tsr_experts_plan *plan, const tsr_tensor *sizes)
{
    for (int64_t e = 0; e < plan->own_count; e++)
        ((int64_t *)sizes->data)[e * sizes->strides[0]] = plan->sizes[e];
}

tsr_status tsr_experts_dispatch(tsr_experts_plan *plan, const tsr_tensor *x, const tsr_tensor *ids,
                                const tsr_tensor *rows, const tsr_tensor *sizes)
{
    tsr_expert_call call = {
        .plan = plan, .name = "tsr_experts_dispatch", .dispatches = true, .tokens = x, .landing = rows, .ids = ids};
    const tsr_expert_operand operands[] = {{"x", x, TSR_EXPERT_TOKENS, .written = false},
                                           {"ids", ids, TSR_EXPERT_IDS, .written = false},
                                           {"rows", rows, TSR_EXPERT_ROWS, .written = true},
                                           {"sizes", sizes, TSR_EXPERT_SIZES, .written = true}};
    TSR_TRY(RUN(&call, operands));
    if (plan->group)
        write_sizes(plan, sizes);
    return TSR_OK;
}

tsr_status tsr_experts_combine(tsr_experts_plan *plan, const tsr_tensor *rows, const tsr_tensor *weights,
                               const tsr_tensor *out)
{
    tsr_expert_call call = {
        .plan = plan, .name = "tsr_experts_combine", .shown = rows, .weights = weights, .sums = out};
    const tsr_expert_operand operands[] = {{"rows", rows, TSR_EXPERT_ROWS, .written = false},
                                           {"weights", weights, TSR_EXPERT_WEIGHTS, .optional = true},
                                           {"out", out, TSR_EXPERT_TOKENS, .written = true}};
    return RUN(&call, operands);
}

tsr_status tsr_experts_combine_backward(tsr_experts_plan *plan, const tsr_tensor *dout, const tsr_tensor *weights,
                                        const tsr_tensor *rows, const tsr_tensor *drows, const tsr_tensor *dweights)
{
    tsr_expert_call call = {.plan = plan,
                            .name = "tsr_experts_combine_backward",
                            .tokens = dout,
                            .landing = drows,
                            .weights = weights,
                            .shown = dweights ? rows : NULL,
                            .products = dweights};
    const tsr_expert_operand operands[] = {
        {"dout", dout, TSR_EXPERT_TOKENS, .written = false},
        {"weights", weights, TSR_EXPERT_WEIGHTS, .optional = true},
        {"rows", rows, TSR_EXPERT_ROWS, .optional = !dweights},
        {"drows", drows, TSR_EXPERT_ROWS, .written = true},
        {"dweights", dweights, TSR_EXPERT_WEIGHTS, .written = true, .optional = true}};
    return RUN(&call, operands);
}

tsr_status tsr_experts_dispatch_backward(tsr_experts_plan *plan, const tsr_tensor *drows, const tsr_tensor *dx)
{
    tsr_expert_call call = {.plan = plan, .name = "tsr_experts_dispatch_backward", .shown = drows, .sums = dx};
    const tsr_expert_operand operands[] = {{"drows", drows, TSR_EXPERT_ROWS, .written = false},
                                           {"dx", dx, TSR_EXPERT_TOKENS, .written = true}};
    return RUN(&call, operands);
}
