/** NCCL's types and operations for the dtypes and ops that it reduces. */
#ifndef TSR_COMM_ENGINES_NCCL_TYPES_H
#define TSR_COMM_ENGINES_NCCL_TYPES_H

#include "comm/engines/nccl/api.h"

#include <tessera/dtype.h>

#include <stdbool.h>

/** How NCCL reduces values of a dtype. */
typedef struct tsr_nccl_reduction {
    ncclDataType_t type;
    size_t numbers; /**< values of `type` in one element: two for complex dtypes, which are added part by part */
    ncclRedOp_t op;
} tsr_nccl_reduction;

/** Fills `*out`. False: NCCL has no such reduction. */
bool tsr_nccl_find_reduction(tsr_dtype dtype, tsr_reduce_op op, tsr_nccl_reduction *out);

#endif
