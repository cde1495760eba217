/** Checks what a rank brings to a call of experts. Nothing here communicates. */
#ifndef TSR_TENSOR_EXPERTS_EXPERT_CHECKS_H
#define TSR_TENSOR_EXPERTS_EXPERT_CHECKS_H

#include "tensor/experts/expert_plan.h"

/** What a tensor of a call holds. */
typedef enum tsr_expert_kind {
    TSR_EXPERT_TOKENS,  /**< (tokens, width) of the dtype */
    TSR_EXPERT_ROWS,    /**< (room, width) of the dtype */
    TSR_EXPERT_WEIGHTS, /**< (tokens, slots) of f32 or the dtype */
    TSR_EXPERT_IDS,     /**< (tokens, slots) of i32 or i64 */
    TSR_EXPERT_SIZES    /**< (experts of the rank) of i64 */
} tsr_expert_kind;

/** A tensor of a call. */
typedef struct tsr_expert_operand {
    const char *name;
    const tsr_tensor *tensor; /**< NULL only if `optional` */
    tsr_expert_kind kind;
    bool written;
    bool optional;
} tsr_expert_operand;

/**
 * Checks the tensors of a call. `dispatches`: they may have any number of tokens, up to the plan's,
 * and rows any room; else tokens are those of the last dispatch, and rows have room for what came.
 * Tensors that are written overlap no other. TSR_ERROR_ARGUMENT, TSR_ERROR_UNSUPPORTED.
 */
tsr_status tsr_expert_check(const tsr_experts_plan *plan, const char *call, bool dispatches,
                            const tsr_expert_operand *operands, size_t count);

#endif
