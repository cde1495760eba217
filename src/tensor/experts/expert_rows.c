#include "tensor/experts/expert_rows.h"

#include "device/host/choose.h"

#include <string.h>

/* The row of a slot in column part `column`. */
static char *row_of(const tsr_experts_plan *plan, const tsr_expert_place *place, int64_t column)
{
    const tsr_expert_side *const side = &plan->sides[tsr_expert_position(plan, place->part, column)];
    return side->data + (size_t)place->row * side->stride;
}

bool tsr_expert_streams(const tsr_experts_plan *plan, int64_t rows)
{
    return plan->row_bytes >= TSR_STREAMED_RUN && (size_t)rows >= TSR_LARGE_CALL / plan->row_bytes;
}

void tsr_expert_rows_copy(const tsr_experts_plan *plan, char *to, size_t to_stride, const char *from,
                          size_t from_stride, int64_t rows)
{
    const bool stream = tsr_expert_streams(plan, rows);
    for (int64_t i = 0; i < rows; i++)
        plan->kernels->copy(to + (size_t)i * to_stride, from + (size_t)i * from_stride, plan->row_bytes, stream);
    if (stream)
        plan->kernels->fence();
}

static const void *weight_at(const tsr_tensor *weights, int64_t token, int64_t slot)
{
    return (const char *)weights->data +
           (token * weights->strides[0] + slot * weights->strides[1]) * (int64_t)tsr_dtype_bytes(weights->dtype);
}

static double weight_of(const tsr_experts_plan *plan, const tsr_tensor *weights, int64_t token, int64_t slot)
{
    return weights ? plan->kernels->loops[weights->dtype].load(weight_at(weights, token, slot)) : 1;
}

void tsr_expert_tokens_scatter(const tsr_experts_plan *plan, const tsr_tensor *tokens, const tsr_tensor *weights)
{
    const int64_t columns = plan->table->columns.count;
    const bool stream = tsr_expert_streams(plan, plan->token_count * plan->slots);
    const tsr_expert_place *place = plan->places;
    for (int64_t token = 0; token < plan->token_count; token++) {
        const void *const from = tsr_expert_row(plan, tokens, token);
        for (int64_t slot = 0; slot < plan->slots; slot++, place++) {
            if (place->row < 0)
                continue;
            const double weight = weight_of(plan, weights, token, slot);
            const tsr_expert_terms term = {&from, &weight, 1, 1};
            for (int64_t column = 0; column < columns; column++) {
                char *const to = row_of(plan, place, column);
                if (weights)
                    plan->loops->sum(to, &term, plan->width, stream);
                else
                    plan->kernels->copy(to, from, plan->row_bytes, stream);
            }
        }
    }
    if (stream)
        plan->kernels->fence();
}

/* Lists the rows of a token's slots that have one, and their weights. */
static tsr_expert_terms list_terms(const tsr_experts_plan *plan, const tsr_tensor *weights, int64_t token)
{
    const tsr_expert_place *place = plan->places + token * plan->slots;
    const int64_t columns = plan->table->columns.count;
    tsr_expert_terms terms = {plan->terms, plan->weights, 0, columns};
    for (int64_t slot = 0; slot < plan->slots; slot++, place++) {
        if (place->row < 0)
            continue;
        plan->weights[terms.slots] = weight_of(plan, weights, token, slot);
        for (int64_t column = 0; column < columns; column++)
            plan->terms[terms.slots * columns + column] = row_of(plan, place, column);
        terms.slots++;
    }
    return terms;
}

void tsr_expert_tokens_sum(const tsr_experts_plan *plan, const tsr_tensor *weights, const tsr_tensor *tokens)
{
    const bool stream = tsr_expert_streams(plan, plan->token_count);
    for (int64_t token = 0; token < plan->token_count; token++) {
        const tsr_expert_terms terms = list_terms(plan, weights, token);
        plan->loops->sum(tsr_expert_row(plan, tokens, token), &terms, plan->width, stream);
    }
    if (stream)
        plan->kernels->fence();
}

void tsr_expert_tokens_multiply(const tsr_experts_plan *plan, const tsr_tensor *tokens, const tsr_tensor *out)
{
    const tsr_expert_loops *const of_out = &plan->kernels->loops[out->dtype];
    const tsr_expert_place *place = plan->places;
    const int64_t columns = plan->table->columns.count;
    for (int64_t token = 0; token < plan->token_count; token++)
        for (int64_t slot = 0; slot < plan->slots; slot++, place++) {
            double product = 0;
            for (int64_t column = 0; column < columns && place->row >= 0; column++)
                plan->terms[column] = row_of(plan, place, column);
            if (place->row >= 0)
                product = plan->loops->dot(tsr_expert_row(plan, tokens, token), plan->terms, columns, plan->width);
            of_out->store((void *)weight_at(out, token, slot), product);
        }
}
