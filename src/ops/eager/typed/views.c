#include "ops/eager/typed/typed.h"

#include <tessera/sys/status.h>
#include <tessera/values.h>
#include <tessera/views.h>

UNARY_WITH(reshape, "reshape", SHAPE_SETTING, SHAPE)
UNARY_WITH(transpose, "transpose", TWO_DIMS_SETTING, TWO_DIMS)
UNARY_WITH(permute, "permute", ORDER_SETTING, ORDER)
UNARY_WITH(expand, "expand", SHAPE_SETTING, SHAPE)
UNARY_WITH(squeeze, "squeeze", DIMS_SETTING, DIMS)
UNARY_WITH(unsqueeze, "unsqueeze", DIM_SETTING, DIM)
UNARY_WITH(slice, "slice", RANGE_SETTING, RANGE)
UNARY_WITH(narrow, "narrow", LENGTH_SETTING, LENGTH)
UNARY_WITH(pad, "pad", PADS_SETTING, PADS)
UNARY_WITH(flip, "flip", DIMS_SETTING, DIMS)
UNARY_WITH(roll, "roll", SHIFT_SETTING, SHIFT)
UNARY_WITH(tril, "tril", DIAGONAL_SETTING, DIAGONAL)
UNARY_WITH(triu, "triu", DIAGONAL_SETTING, DIAGONAL)

/* Checks the number of operands, and completes their list with NULL. */
static tsr_status take_operands(const char *caller, int count, const tsr_dtensor *const *x,
                                const tsr_dtensor *operands[TSR_OP_MOST_OPERANDS])
{
    TSR_TRY(tsr_settings_check_count(caller, count, TSR_OP_MOST_OPERANDS, "x", x));
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++) {
        operands[i] = i < count ? x[i] : NULL;
        if (i < count && !x[i])
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: x[%d] is NULL", caller, i);
    }
    return TSR_OK;
}

static tsr_status run_concat(const char *caller, int count, const tsr_dtensor *const *x, int dim, tsr_dtensor **out)
{
    const tsr_dtensor *operands[TSR_OP_MOST_OPERANDS];
    TSR_TRY(take_operands(caller, count, x, operands));
    return tsr_eager_run(caller, row_by("concat", x[0]), DIM, operands, out);
}

static tsr_status run_concat_into(const char *caller, int count, const tsr_dtensor *const *x, int dim, tsr_dtensor *out)
{
    const tsr_dtensor *operands[TSR_OP_MOST_OPERANDS];
    TSR_TRY(take_operands(caller, count, x, operands));
    return tsr_eager_run_into(caller, row_by("concat", x[0]), DIM, operands, &out);
}

tsr_status tsr_concat(int count, const tsr_dtensor *const *x, int dim, tsr_dtensor **out)
{
    return run_concat("tsr_concat", count, x, dim, out);
}

tsr_status tsr_concat_into(int count, const tsr_dtensor *const *x, int dim, tsr_dtensor *out)
{
    return run_concat_into("tsr_concat_into", count, x, dim, out);
}

tsr_status tsr_concat_backward(int count, const tsr_dtensor *const *x, int dim, const tsr_dtensor *dout,
                               tsr_dtensor **dx)
{
    static const char caller[] = "tsr_concat_backward";
    const tsr_dtensor *operands[TSR_OP_MOST_OPERANDS];
    tsr_dtensor **wanted[TSR_OP_MOST_OPERANDS] = {NULL};
    TSR_TRY(take_operands(caller, count, x, operands));
    if (!dx)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: dx is NULL", caller);
    for (int i = 0; i < count; i++)
        wanted[i] = &dx[i];
    return tsr_eager_backward(caller, row_by("concat", x[0]), DIM, operands, dout, wanted);
}

static void destroy_all(int count, tsr_dtensor **x)
{
    for (int i = 0; i < count; i++)
        tsr_dtensor_destroy(x[i]);
}

/* Views the operands of a stack with a new dim. */
static tsr_status unsqueeze_all(const char *caller, int count, const tsr_dtensor *const *x, int dim,
                                tsr_dtensor *views[TSR_OP_MOST_OPERANDS])
{
    const tsr_dtensor *operands[TSR_OP_MOST_OPERANDS];
    TSR_TRY(take_operands(caller, count, x, operands));
    tsr_status status = TSR_OK;
    for (int i = 0; i < count && status == TSR_OK; i++)
        status = tsr_eager_run(caller, row_by("unsqueeze", x[i]), DIM, OPERANDS(x[i]), &views[i]);
    if (status != TSR_OK)
        destroy_all(count, views);
    return status;
}

tsr_status tsr_stack(int count, const tsr_dtensor *const *x, int dim, tsr_dtensor **out)
{
    static const char caller[] = "tsr_stack";
    tsr_dtensor *views[TSR_OP_MOST_OPERANDS] = {NULL};
    TSR_TRY(unsqueeze_all(caller, count, x, dim, views));
    const tsr_status status = run_concat(caller, count, (const tsr_dtensor *const *)views, dim, out);
    destroy_all(count, views);
    return status;
}

tsr_status tsr_stack_into(int count, const tsr_dtensor *const *x, int dim, tsr_dtensor *out)
{
    static const char caller[] = "tsr_stack_into";
    tsr_dtensor *views[TSR_OP_MOST_OPERANDS] = {NULL};
    TSR_TRY(unsqueeze_all(caller, count, x, dim, views));
    const tsr_status status = run_concat_into(caller, count, (const tsr_dtensor *const *)views, dim, out);
    destroy_all(count, views);
    return status;
}

tsr_status tsr_stack_backward(int count, const tsr_dtensor *const *x, int dim, const tsr_dtensor *dout,
                              tsr_dtensor **dx)
{
    static const char caller[] = "tsr_stack_backward";
    tsr_dtensor *views[TSR_OP_MOST_OPERANDS] = {NULL}, *parts[TSR_OP_MOST_OPERANDS] = {NULL};
    tsr_dtensor **wanted[TSR_OP_MOST_OPERANDS] = {NULL}, *made[TSR_OP_MOST_OPERANDS] = {NULL};
    if (!dx)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: dx is NULL", caller);
    TSR_TRY(unsqueeze_all(caller, count, x, dim, views));
    for (int i = 0; i < count; i++)
        wanted[i] = &parts[i];
    const tsr_dtensor *const *const operands = (const tsr_dtensor *const *)views;
    tsr_status status = tsr_eager_backward(caller, row_by("concat", x[0]), DIM, operands, dout, wanted);
    for (int i = 0; i < count && status == TSR_OK; i++) {
        tsr_dtensor **const own[] = {&made[i]};
        status = tsr_eager_backward(caller, row_by("unsqueeze", x[i]), DIM, OPERANDS(x[i]), parts[i], own);
    }
    for (int i = 0; i < count && status == TSR_OK; i++)
        dx[i] = made[i];
    if (status != TSR_OK)
        destroy_all(count, made);
    destroy_all(count, parts);
    destroy_all(count, views);
    return status;
}

static tsr_status check_split(const char *caller, const tsr_dtensor *x, int *dim, int count, const int64_t *sizes,
                              const void *list)
{
    if (!x || !list)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", caller, x ? "the list of results" : "x");
    return tsr_settings_check_sizes(caller, tsr_dtensor_layout(x), dim, count, sizes);
}

static tsr_status take_part(const char *caller, const tsr_dtensor *x, int dim, int64_t start, int64_t length,
                            tsr_dtensor **out)
{
    return tsr_eager_run(caller, row_by("narrow", x), LENGTH, OPERANDS(x), out);
}

tsr_status tsr_split(const tsr_dtensor *x, int dim, int count, const int64_t *sizes, tsr_dtensor **out)
{
    static const char caller[] = "tsr_split";
    TSR_TRY(check_split(caller, x, &dim, count, sizes, out));
    int64_t start = 0;
    for (int i = 0; i < count; i++) {
        const tsr_status status = take_part(caller, x, dim, start, sizes[i], &out[i]);
        if (status != TSR_OK) {
            destroy_all(i, out);
            for (int made = 0; made < i; made++)
                out[made] = NULL;
            return status;
        }
        start += sizes[i];
    }
    return TSR_OK;
}

/* True if a part, which may be empty here, is a view of the whole. A policy may have moved a
 * copy. */
static bool shares_memory(const tsr_dtensor *whole, const tsr_dtensor *part)
{
    const tsr_placement *const a = tsr_layout_placements(tsr_dtensor_layout(whole)), *const b = tsr_layout_placements(
                                                                                         tsr_dtensor_layout(part));
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(tsr_dtensor_layout(whole))); k++) {
        if (a[k].kind != b[k].kind || (a[k].kind == TSR_SHARD && a[k].dim != b[k].dim))
            return false;
    }
    return true;
}

/* Writes the gradient of one part where it lies in that of the whole; NULL: 0. */
static tsr_status write_part(const char *caller, tsr_dtensor *whole, int dim, int64_t start, int64_t size,
                             const tsr_dtensor *dout)
{
    tsr_dtensor *part;
    TSR_TRY(take_part(caller, whole, dim, start, size, &part));
    if (!shares_memory(whole, part)) {
        tsr_dtensor_destroy(part);
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              "%s: no placement says which rank has what of a part of x, so its gradient cannot be "
                              "written where it lies; redistribute x so that dim %d is whole",
                              caller, dim);
    }
    const int64_t end = size, step = 1;
    start = 0;
    const tsr_status status = dout ? tsr_eager_run_into(caller, row_by("slice", dout), RANGE, OPERANDS(dout), &part)
                                   : tsr_dtensor_fill(part, 0, NULL);
    tsr_dtensor_destroy(part);
    return status;
}

tsr_status tsr_split_backward(const tsr_dtensor *x, int dim, int count, const int64_t *sizes,
                              const tsr_dtensor *const *dout, tsr_dtensor **dx)
{
    static const char caller[] = "tsr_split_backward";
    tsr_layout *layout;
    tsr_dtensor *whole;
    TSR_TRY(check_split(caller, x, &dim, count, sizes, dout));
    if (!dx)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: dx is NULL", caller);
    TSR_TRY(tsr_layout_gradient(tsr_dtensor_layout(x), &layout));
    tsr_status status = tsr_dtensor_create(layout, tsr_device_host(), &whole);
    tsr_layout_destroy(layout);
    TSR_TRY(status);
    int64_t start = 0;
    for (int i = 0; i < count && status == TSR_OK; i++) {
        status = write_part(caller, whole, dim, start, sizes[i], dout[i]);
        start += sizes[i];
    }
    if (status == TSR_OK)
        *dx = whole;
    else
        tsr_dtensor_destroy(whole);
    return status;
}
