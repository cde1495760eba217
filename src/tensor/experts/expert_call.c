#include "tensor/experts/expert_call.h"

#include "placement/print.h"
#include "tensor/experts/expert_rows.h"

#include <stdio.h>

void tsr_expert_describe(const void *arg, char *text, size_t capacity)
{
    const tsr_expert_call *const call = arg;
    const tsr_experts_plan *const plan = call->plan;
    char layout[512];
    snprintf(text, capacity, "%s%s of %lld slots and %lld %s (capacity %lld, overflow %s), experts %s", call->name,
             call->products ? " with gradients of weights" : "", (long long)plan->slots, (long long)plan->width,
             tsr_dtype_name(plan->dtype), (long long)(plan->expert_capacity == INT64_MAX ? 0 : plan->expert_capacity),
             plan->overflow == TSR_EXPERTS_DROP ? "drops" : "fails",
             tsr_layout_describe(plan->layout, layout, sizeof layout));
}

void tsr_expert_read(const tsr_expert_call *call)
{
    if (call->sums)
        tsr_expert_tokens_sum(call->plan, call->weights, call->sums);
    if (call->products)
        tsr_expert_tokens_multiply(call->plan, call->tokens, call->products);
}
