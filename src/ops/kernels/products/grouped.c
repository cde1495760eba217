#include "ops/kernels/products/grouped.h"

#include "ops/numbers.h"

#include <tessera/sys/status.h>

/* The rows of the whole tensor that this rank has, in the order of its memory. */
typedef struct owned {
    const tsr_interval *intervals;
    size_t count;
} owned;

static tsr_status find_owned(const tsr_kernel_call *call, tsr_arena *arena, owned *out)
{
    const tsr_layout *const rows = call->layouts[0];
    size_t count;
    TSR_TRY(tsr_layout_intervals(rows, call->coordinate, 0, NULL, 0, &count));
    tsr_interval *const intervals = tsr_arena_take(arena, count * sizeof *intervals);
    *out = (owned){intervals, count};
    return intervals && count ? tsr_layout_intervals(rows, call->coordinate, 0, intervals, count, &count) : TSR_OK;
}

/* How many of this rank's rows lie in front of row `bound` of the whole tensor. */
static int64_t count_below(const owned *own, int64_t bound)
{
    int64_t below = 0;
    for (size_t i = 0; i < own->count && own->intervals[i].begin < bound; i++)
        below += tsr_smaller(own->intervals[i].end, bound) - own->intervals[i].begin;
    return below;
}

/* Rows `begin` to `end` of a tensor of two dims. */
static tsr_matrix rows_of(const tsr_tensor *tensor, int64_t begin, int64_t end)
{
    tsr_matrix m = tsr_matrix_of(tensor);
    m.data = m.data ? (char *)m.data + begin * m.row_stride * (int64_t)tsr_dtype_bytes(m.dtype) : NULL;
    m.rows = end - begin;
    return m;
}

/* The matrix of a group. */
static tsr_matrix matrix_of(const tsr_tensor *tensor, int64_t group)
{
    void *const data = tensor->data
                           ? (char *)tensor->data + group * tensor->strides[0] * (int64_t)tsr_dtype_bytes(tensor->dtype)
                           : NULL;
    return (tsr_matrix){data,         tensor->shape[1], tensor->shape[2], tensor->strides[1], tensor->strides[2],
                        tensor->dtype};
}

/* Multiplies this rank's rows of one group; a site that measures is told the most that any number
 * of rows takes. */
static tsr_status multiply_group(const tsr_kernel_call *call, tsr_grouped_kind kind, const tsr_matmul_site *site,
                                 const tsr_tensor *out, int64_t group, int64_t begin, int64_t end)
{
    const tsr_matrix rows = rows_of(&call->inputs[0], begin, end);
    tsr_matrix a = rows, b, c;
    if (kind == TSR_GROUPED_DW) {
        a = tsr_matrix_transpose(rows);
        b = rows_of(&call->inputs[1], begin, end);
        c = matrix_of(out, group);
    } else {
        const tsr_matrix w = matrix_of(&call->inputs[1], group);
        b = kind == TSR_GROUPED_DX ? tsr_matrix_transpose(w) : w;
        c = rows_of(out, begin, end);
    }
    return site->needs ? tsr_matrix_measure(site, a, b, c, false) : tsr_matrix_multiply(site, a, b, c, false);
}

static int64_t size_of(const tsr_kernel_call *call, int64_t group)
{
    const tsr_tensor *const sizes = &call->inputs[2];
    return ((const int64_t *)sizes->data)[group * sizes->strides[0]];
}

static tsr_status check_sizes(const tsr_kernel_call *call)
{
    const int64_t rows = tsr_layout_shape(call->layouts[0])[0];
    int64_t left = rows;
    for (int64_t group = 0; group < call->inputs[2].shape[0]; group++) {
        const int64_t size = size_of(call, group);
        if (size < 0)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: sizes[%lld] is %lld, but a group has 0 rows or more",
                                  call->op, (long long)group, (long long)size);
        if (size > left)
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "%s: sizes[%lld] is %lld, but %lld of %lld rows are left for it; all sizes must add "
                                  "up to at most that",
                                  call->op, (long long)group, (long long)size, (long long)left, (long long)rows);
        left -= size;
    }
    return TSR_OK;
}

/* Multiplies group by group; the sizes are checked. */
static tsr_status multiply_all(const tsr_kernel_call *call, tsr_grouped_kind kind, const tsr_matmul_site *site,
                               const tsr_tensor *out, const owned *own)
{
    int64_t end = 0, local = 0;
    for (int64_t group = 0; group < call->inputs[2].shape[0]; group++) {
        end += size_of(call, group);
        const int64_t next = count_below(own, end);
        TSR_TRY(multiply_group(call, kind, site, out, group, local, next));
        local = next;
    }
    return kind == TSR_GROUPED_DW ? TSR_OK : tsr_matrix_fill(site, rows_of(out, local, out->shape[0]), 0);
}

tsr_status tsr_grouped_multiply(const tsr_kernel_call *call, tsr_grouped_kind kind, const tsr_matmul_site *site,
                                tsr_arena *arena, const tsr_tensor *out)
{
    owned own;
    TSR_TRY(find_owned(call, arena, &own));
    if (site->needs)
        return multiply_group(call, kind, site, out, 0, 0, call->inputs[0].shape[0]);
    TSR_TRY(check_sizes(call));
    return multiply_all(call, kind, site, out, &own);
}
