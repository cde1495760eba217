/** The tokens' side of a call: rows of a rank's tokens, and where those of their slots are. */
#ifndef TSR_TENSOR_EXPERTS_EXPERT_ROWS_H
#define TSR_TENSOR_EXPERTS_EXPERT_ROWS_H

#include "tensor/experts/expert_plan.h"

/** Writes the row of each token to those of its slots, in plan->sides; with `weights` times the
 * weight of the slot, else every bit. */
void tsr_expert_tokens_scatter(const tsr_experts_plan *plan, const tsr_tensor *tokens, const tsr_tensor *weights);

/** Writes the sum of the rows of a token's slots, times their weights, which are 1 if NULL. */
void tsr_expert_tokens_sum(const tsr_experts_plan *plan, const tsr_tensor *weights, const tsr_tensor *tokens);

/** Writes the products of each token's row and those of its slots to `out` (tokens, slots); 0 for
 * slots without a row. */
void tsr_expert_tokens_multiply(const tsr_experts_plan *plan, const tsr_tensor *tokens, const tsr_tensor *out);

/** True if rows of this many bytes in all are better written past the cache. */
bool tsr_expert_streams(const tsr_experts_plan *plan, int64_t rows);

/** Copies rows of the plan from stride to stride, in bytes. */
void tsr_expert_rows_copy(const tsr_experts_plan *plan, char *to, size_t to_stride, const char *from,
                          size_t from_stride, int64_t rows);

/** Row `i` of a tensor of the plan's rows or tokens. */
static inline char *tsr_expert_row(const tsr_experts_plan *plan, const tsr_tensor *t, int64_t i)
{
    return (char *)t->data + (size_t)i * (size_t)t->strides[0] * (plan->row_bytes / (size_t)plan->width);
}

/** Bytes from row to row of such a tensor. */
static inline size_t tsr_expert_stride(const tsr_experts_plan *plan, const tsr_tensor *t)
{
    return (size_t)t->strides[0] * (plan->row_bytes / (size_t)plan->width);
}

#endif
