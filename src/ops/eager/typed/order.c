#include "ops/eager/typed/typed.h"

#include <tessera/order.h>
#include <tessera/sys/status.h>

UNARY_WITH(cumsum, "cumsum", DIM_SETTING, DIM)

/* Runs an op of two results, of which either may be dropped. */
static tsr_status run_pair(const char *caller, const tsr_op *op, size_t count, const tsr_attribute *attributes,
                           const tsr_dtensor *x, tsr_dtensor **values, tsr_dtensor **indices)
{
    tsr_dtensor *made[TSR_OP_MOST_RESULTS];
    tsr_dtensor **const kept[] = {values, indices};
    if (!values && !indices)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: values and indices are NULL", caller);
    TSR_TRY(tsr_eager_run(caller, op, count, attributes, OPERANDS(x), made));
    for (int i = 0; i < 2; i++) {
        if (kept[i])
            *kept[i] = made[i];
        else
            tsr_dtensor_destroy(made[i]);
    }
    return TSR_OK;
}

tsr_status tsr_sort(const tsr_dtensor *x, int dim, int descending, tsr_dtensor **values, tsr_dtensor **indices)
{
    return run_pair("tsr_sort", row_by("sort", x), SORT, x, values, indices);
}

tsr_status tsr_sort_into(const tsr_dtensor *x, int dim, int descending, tsr_dtensor *values, tsr_dtensor *indices)
{
    tsr_dtensor *const results[] = {values, indices};
    return tsr_eager_run_into("tsr_sort_into", row_by("sort", x), SORT, OPERANDS(x), results);
}

tsr_status tsr_sort_backward(const tsr_dtensor *x, int dim, int descending, const tsr_dtensor *dvalues,
                             tsr_dtensor **dx)
{
    return tsr_eager_backward("tsr_sort_backward", row_by("sort", x), SORT, OPERANDS(x), dvalues, WANTED(dx));
}

tsr_status tsr_argsort(const tsr_dtensor *x, int dim, int descending, tsr_dtensor **indices)
{
    if (!indices)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_argsort: indices is NULL");
    return run_pair("tsr_argsort", row_by("sort", x), SORT, x, NULL, indices);
}

tsr_status tsr_topk(const tsr_dtensor *x, int64_t k, int dim, tsr_dtensor **values, tsr_dtensor **indices)
{
    return run_pair("tsr_topk", row_by("topk", x), TOP, x, values, indices);
}

tsr_status tsr_topk_into(const tsr_dtensor *x, int64_t k, int dim, tsr_dtensor *values, tsr_dtensor *indices)
{
    tsr_dtensor *const results[] = {values, indices};
    return tsr_eager_run_into("tsr_topk_into", row_by("topk", x), TOP, OPERANDS(x), results);
}

tsr_status tsr_topk_backward(const tsr_dtensor *x, int64_t k, int dim, const tsr_dtensor *dvalues, tsr_dtensor **dx)
{
    return tsr_eager_backward("tsr_topk_backward", row_by("topk", x), TOP, OPERANDS(x), dvalues, WANTED(dx));
}
