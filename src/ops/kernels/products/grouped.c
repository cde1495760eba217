#include "ops/kernels/products/grouped.h"

#include "ops/numbers.h"
#include "ops/rows.h"
#include "ops/widened.h"

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

/* Multiplies this rank's rows of one group. */
static tsr_status multiply_group(const tsr_kernel_call *call, tsr_grouped_kind kind, const tsr_matmul_site *site,
                                 const tsr_tensor *out, int64_t group, int64_t begin, int64_t end)
{
    const tsr_matrix a = rows_of(&call->inputs[0], begin, end);
    if (kind == TSR_GROUPED_DW)
        return tsr_matrix_multiply(site, tsr_matrix_transpose(a), rows_of(&call->inputs[1], begin, end),
                                   matrix_of(out, group), false);
    const tsr_matrix w = matrix_of(&call->inputs[1], group);
    return tsr_matrix_multiply(site, a, kind == TSR_GROUPED_DX ? tsr_matrix_transpose(w) : w, rows_of(out, begin, end),
                               false);
}

/* Raises the needs to the most that any number of rows takes. */
static tsr_status measure(const tsr_kernel_call *call, tsr_grouped_kind kind, const tsr_matmul_site *site,
                          const tsr_tensor *out)
{
    const int64_t rows = call->inputs[0].shape[0], columns = call->inputs[0].shape[1];
    const int64_t others = kind == TSR_GROUPED_DW ? call->inputs[1].shape[1] : out->shape[1];
    const tsr_gemm g = {.a_dtype = call->inputs[0].dtype,
                        .b_dtype = call->inputs[1].dtype,
                        .c_dtype = out->dtype,
                        .m = kind == TSR_GROUPED_DW ? columns : rows,
                        .n = others,
                        .k = kind == TSR_GROUPED_DW ? rows : columns};
    const tsr_gemm transposed = {
        .a_dtype = g.b_dtype, .b_dtype = g.a_dtype, .c_dtype = g.c_dtype, .m = g.n, .n = g.m, .k = g.k};
    const size_t few = tsr_aligned_bytes((size_t)(TSR_ROWS_MOST * g.k) * sizeof(float));
    TSR_TRY(multiply_group(call, kind, site, out, 0, 0, rows));
    const size_t most = tsr_larger_bytes(
        few, tsr_larger_bytes(tsr_widened_most_workspace(&g), tsr_widened_most_workspace(&transposed)));
    site->needs->gemm = tsr_larger_bytes(site->needs->gemm, most);
    return TSR_OK;
}

static tsr_status refuse_size(const tsr_kernel_call *call, int64_t group, int64_t size, int64_t end)
{
    const int64_t rows = tsr_layout_shape(call->layouts[0])[0];
    if (size < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: sizes[%lld] is %lld, but a group has 0 rows or more", call->op,
                              (long long)group, (long long)size);
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: groups 0 to %lld have %lld rows, but there are %lld; all sizes must add up to at most "
                          "that",
                          call->op, (long long)group, (long long)end, (long long)rows);
}

/* Multiplies group by group. */
static tsr_status multiply_all(const tsr_kernel_call *call, tsr_grouped_kind kind, const tsr_matmul_site *site,
                               const tsr_tensor *out, const owned *own)
{
    const tsr_tensor *const sizes = &call->inputs[2];
    const int64_t rows = tsr_layout_shape(call->layouts[0])[0];
    int64_t end = 0, local = 0;
    for (int64_t group = 0; group < sizes->shape[0]; group++) {
        const int64_t size = ((const int64_t *)sizes->data)[group * sizes->strides[0]];
        if (size < 0 || size > rows - end)
            return refuse_size(call, group, size, size < 0 ? 0 : end + size);
        end += size;
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
    return site->needs ? measure(call, kind, site, out) : multiply_all(call, kind, site, out, &own);
}
