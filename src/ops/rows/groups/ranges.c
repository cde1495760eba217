#include "ops/rows/groups/ranges.h"

#include "ops/kernels/views.h"
#include "ops/rows/groups/views_checks.h"

#include <tessera/sys/status.h>

static int dims_of(const tsr_op_case *c)
{
    return tsr_layout_ndim(c->operands[0]);
}

static const int64_t *shape_of(const tsr_op_case *c, int operand)
{
    return tsr_layout_shape(c->operands[operand]);
}

static bool is_gradient(const tsr_op_case *c)
{
    return c->op->code == TSR_VIEW_SLICE_GRADIENT || c->op->code == TSR_VIEW_NARROW_GRADIENT;
}

/* The operand of which the op takes, or fills, a range. */
static int whole_operand(const tsr_op_case *c)
{
    return is_gradient(c) ? 1 : 0;
}

static tsr_view_range range_of(const tsr_op_case *c)
{
    const tsr_layout *const like = c->op->operands[1] ? c->operands[1] : NULL;
    return tsr_view_range_of(c->op->code, c->attributes, dims_of(c), shape_of(c, whole_operand(c)),
                             like ? tsr_layout_shape(like) : NULL);
}

static int64_t count_range(const tsr_view_range *range)
{
    return (range->end - range->start + range->step - 1) / range->step;
}

/* Checks that operand 1, where there is one, has the dims of operand 0. */
static tsr_status check_like(const tsr_op_case *c)
{
    const tsr_layout *const like = c->op->operands[1] ? c->operands[1] : NULL;
    if (!like || tsr_layout_ndim(like) == dims_of(c))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s has %d dims but %s has %d", c->caller, c->op->operands[0],
                          dims_of(c), c->op->operands[1], tsr_layout_ndim(like));
}

/* The end of a range as the attributes say, which need not be in the dim; it does not overflow. */
static int64_t end_of_range(const tsr_op_case *c, int64_t start, int64_t size)
{
    const tsr_attribute *const a = c->attributes;
    const int dim = tsr_view_dim(&a[0], dims_of(c));
    int64_t end = size, length = 0;
    switch (c->op->code) {
    case TSR_VIEW_SLICE:
    case TSR_VIEW_SLICE_GRADIENT:
        return a[2].integer == INT64_MAX ? size : a[2].integer;
    case TSR_VIEW_NARROW:
    case TSR_VIEW_NARROW_GRADIENT:
        length = a[2].integer;
        break;
    case TSR_VIEW_SLICE_LIKE:
        length = shape_of(c, 1)[dim];
        break;
    default:
        return size;
    }
    return __builtin_add_overflow(start, length, &end) ? INT64_MAX : end;
}

tsr_status tsr_check_range(const tsr_op_case *c, tsr_dtype *results)
{
    results[0] = tsr_layout_dtype(c->operands[0]);
    TSR_TRY(tsr_check_view_dim(c, dims_of(c)));
    TSR_TRY(check_like(c));
    const int code = c->op->code, whole = whole_operand(c), dim = tsr_view_dim(&c->attributes[0], dims_of(c));
    const bool steps = code == TSR_VIEW_SLICE || code == TSR_VIEW_SLICE_GRADIENT;
    if (steps && c->attributes[3].integer < 1)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: step is %lld, but must be 1 or more", c->caller,
                              (long long)c->attributes[3].integer);
    const int64_t size = shape_of(c, whole)[dim];
    const int64_t start = code != TSR_VIEW_REST ? c->attributes[1].integer : c->operands[1] ? shape_of(c, 1)[dim] : 0;
    const int64_t end = end_of_range(c, start, size);
    if (start < 0 || start > end || end > size)
        return tsr_status_set(
            TSR_ERROR_ARGUMENT,
            "%s: elements %lld to %lld, but dim %d of %s has elements 0 to %lld; the end is not among them", c->caller,
            (long long)start, (long long)end, dim, c->op->operands[whole], (long long)size);
    const tsr_view_range range = range_of(c);
    if (!is_gradient(c) || count_range(&range) == shape_of(c, 0)[dim])
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: dim %d of %s has size %lld, but the range has %lld elements",
                          c->caller, dim, c->op->operands[0], (long long)shape_of(c, 0)[dim],
                          (long long)count_range(&range));
}

tsr_status tsr_shape_of_range(const tsr_op_case *c, int result, int64_t shape[TSR_MAX_DIMS])
{
    (void)result;
    const tsr_view_range range = range_of(c);
    shape[range.dim] = is_gradient(c) ? shape_of(c, 1)[range.dim] : count_range(&range);
    return TSR_OK;
}

void tsr_place_of_range(const tsr_op_case *c, tsr_op_placing *out)
{
    const int whole = whole_operand(c);
    const tsr_view_range range = range_of(c);
    *out = (tsr_op_placing){.count = 1, .size = count_range(&range), .target = -1, .like = -1};
    out->parts[0] = (tsr_op_part){.operand = whole,
                                  .size = shape_of(c, whole)[range.dim],
                                  .start = range.start,
                                  .end = range.end,
                                  .step = range.step};
    if (is_gradient(c) || c->op->code == TSR_VIEW_SLICE_LIKE) {
        out->target = is_gradient(c) ? 0 : 1;
        out->like = 1;
    }
}
