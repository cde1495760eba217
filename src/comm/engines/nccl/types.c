#include "comm/engines/nccl/types.h"

#define OP(op) (1u << (op))
#define ALL    (OP(TSR_SUM) | OP(TSR_AVG) | OP(TSR_MIN) | OP(TSR_MAX) | OP(TSR_PROD))

/* One row per dtype; numbers 0: NCCL does not reduce it. Only newer GPUs reduce 8-bit floats in
 * NCCL, no GPU 16-bit integers. An op must also be one that the dtype itself has. */
static const struct {
    ncclDataType_t type;
    size_t numbers;
    unsigned ops;
} types[TSR_DTYPE_END] = {
    [TSR_F64] = {ncclFloat64, 1, ALL},
    [TSR_F32] = {ncclFloat32, 1, ALL},
    [TSR_F16] = {ncclFloat16, 1, ALL},
    [TSR_BF16] = {ncclBfloat16, 1, ALL},
    [TSR_I64] = {ncclInt64, 1, ALL},
    [TSR_I32] = {ncclInt32, 1, ALL},
    [TSR_I8] = {ncclInt8, 1, ALL},
    [TSR_U64] = {ncclUint64, 1, ALL},
    [TSR_U32] = {ncclUint32, 1, ALL},
    [TSR_U8] = {ncclUint8, 1, ALL},
    [TSR_BOOL] = {ncclUint8, 1, ALL},
    [TSR_C64] = {ncclFloat32, 2, OP(TSR_SUM) | OP(TSR_AVG)},
    [TSR_C128] = {ncclFloat64, 2, OP(TSR_SUM) | OP(TSR_AVG)},
};

static const ncclRedOp_t ops[TSR_REDUCE_OP_END] = {
    [TSR_SUM] = ncclSum, [TSR_AVG] = ncclAvg, [TSR_MIN] = ncclMin, [TSR_MAX] = ncclMax, [TSR_PROD] = ncclProd,
};

bool tsr_nccl_find_reduction(tsr_dtype dtype, tsr_reduce_op op, tsr_nccl_reduction *out)
{
    const tsr_dtype_info *info = tsr_dtype_get(dtype);
    if (!info || (unsigned)op >= TSR_REDUCE_OP_END || !types[dtype].numbers ||
        !(types[dtype].ops & info->reduce_ops & OP(op)))
        return false;
    *out = (tsr_nccl_reduction){types[dtype].type, types[dtype].numbers, ops[op]};
    return true;
}
