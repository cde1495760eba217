/** One rank's call of experts. */
#ifndef TSR_TENSOR_EXPERTS_EXPERT_CALL_H
#define TSR_TENSOR_EXPERTS_EXPERT_CALL_H

#include "tensor/experts/expert_plan.h"

/**
 * What a call does: rows of tokens go to experts (`tokens` to `landing`), or experts' rows come to
 * tokens (`shown` to `sums` and `products`), or both. Members that a call lacks are NULL.
 */
typedef struct tsr_expert_call {
    tsr_experts_plan *plan;
    const char *name;           /**< "tsr_experts_dispatch" */
    bool dispatches;            /**< the call sets where rows lie; else the last dispatch did */
    const tsr_tensor *tokens;   /**< (tokens, width), which is read */
    const tsr_tensor *landing;  /**< (room, width), which gets the tokens' rows */
    const tsr_tensor *shown;    /**< (room, width), which the tokens' ranks read */
    const tsr_tensor *weights;  /**< of `landing` or `sums` */
    const tsr_tensor *sums;     /**< (tokens, width): of the slots' rows */
    const tsr_tensor *products; /**< (tokens, slots): of `tokens` and the slots' rows */
    const tsr_tensor *ids;      /**< of a dispatch */
    uint64_t fingerprint;
} tsr_expert_call;

/** A tsr_call_describe whose argument is a tsr_expert_call. */
void tsr_expert_describe(const void *arg, char *text, size_t capacity);

/** Writes what experts' rows give the tokens; they lie in plan->sides. */
void tsr_expert_read(const tsr_expert_call *call);

#endif
