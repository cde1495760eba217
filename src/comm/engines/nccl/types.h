/** What NCCL calls the dtypes and operations that it reduces. */
#ifndef TSR_COMM_ENGINES_NCCL_TYPES_H
#define TSR_COMM_ENGINES_NCCL_TYPES_H

#include "comm/engines/nccl/api.h"
#include <stdbool.h>
#include <tessera/dtype.h>

/** How values of a dtype are reduced. */
typedef struct tsr_nccl_reduction {
    ncclDataType_t type;
    size_t numbers; /**< of that type in one element: two for complex values, which are added part by part */
    ncclRedOp_t op;
} tsr_nccl_reduction;

/** False: NCCL has no such reduction. */
bool tsr_nccl_find_reduction(tsr_dtype dtype, tsr_reduce_op op, tsr_nccl_reduction *out);

#endif
