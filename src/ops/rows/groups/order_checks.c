#include "ops/rows/groups/order_checks.h"

#include "ops/kernels/lines/order.h"
#include "ops/rows/along.h"

#include <tessera/sys/status.h>

/* The place of the attribute k of topk. */
#define K 1

tsr_status tsr_check_cumulative(const tsr_op_case *c, tsr_dtype *results)
{
    results[0] = tsr_layout_dtype(c->operands[0]);
    return tsr_check_along(c);
}

tsr_status tsr_check_sorted(const tsr_op_case *c, tsr_dtype *results)
{
    TSR_TRY(tsr_check_cumulative(c, results));
    results[1] = TSR_I64;
    const int dim = tsr_along_dim(c);
    const int64_t size = tsr_layout_shape(c->operands[0])[dim], k = c->attributes[K].integer;
    if (c->op->code != TSR_ORDER_TOP || (k >= 0 && k <= size))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: k is %lld, but must be from 0 to %lld, the size of dim %d of x",
                          c->caller, (long long)k, (long long)size, dim);
}

tsr_status tsr_check_placed(const tsr_op_case *c, tsr_dtype *results)
{
    TSR_TRY(tsr_check_cumulative(c, results));
    if (tsr_layout_dtype(c->operands[1]) == TSR_I64)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: indices is %s, but %s takes i64", c->caller,
                          tsr_dtype_name(tsr_layout_dtype(c->operands[1])), c->op->name);
}

tsr_status tsr_shape_of_topk(const tsr_op_case *c, int result, int64_t shape[TSR_MAX_DIMS])
{
    (void)result;
    shape[tsr_along_dim(c)] = c->attributes[K].integer;
    return TSR_OK;
}
