/** The experts that tokens name. */
#ifndef TSR_TENSOR_EXPERTS_EXPERT_IDS_H
#define TSR_TENSOR_EXPERTS_EXPERT_IDS_H

#include <tessera/tensor.h>

/** The id of a slot, from i32 or i64 of (tokens, slots). */
static inline int64_t tsr_expert_id(const tsr_tensor *ids, int64_t token, int64_t slot)
{
    const int64_t at = token * ids->strides[0] + slot * ids->strides[1];
    return ids->dtype == TSR_I64 ? ((const int64_t *)ids->data)[at] : ((const int32_t *)ids->data)[at];
}

#endif
