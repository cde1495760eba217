#include "ops/kernels/products/q8.h"

#include "ops/epilogue.h"
#include "ops/numbers.h"
#include "ops/rows.h"

#include <string.h>

/* A panel of values has about PANEL_BYTES: a multiple of TSR_Q8_BLOCK rows or columns, up to
 * MOST_PANEL. */
#define PANEL_BYTES ((int64_t)4 << 20)
#define MOST_PANEL  TSR_EPILOGUE_COLUMNS

/* Columns of the result that are computed before they are written. */
#define FEW_COLUMNS 256
_Static_assert(FEW_COLUMNS <= TSR_EPILOGUE_COLUMNS && MOST_PANEL % TSR_Q8_BLOCK == 0, "an epilogue takes a panel");

/* The weights of a call, whose rows are contiguous. */
typedef struct weights {
    const tsr_rows_kernels *kernels;
    const int8_t *data;
    const float *scales;
    int64_t rows, columns, ld, scales_ld;
} weights;

/* What products with few rows need: rows of x in f32, and c's rows if they are not contiguous. */
typedef struct few {
    float *x;
    void *c, *bias;
} few;

/* The matrix with contiguous rows: the tensor's own, or a copy in the arena. */
static tsr_status take_rows(const tsr_matmul_site *site, tsr_arena *arena, tsr_matrix m, tsr_matrix *out)
{
    *out = m;
    if (m.col_stride == 1 || m.cols <= 1)
        return TSR_OK;
    out->data = tsr_arena_take(arena, (size_t)(m.rows * m.cols) * tsr_dtype_bytes(m.dtype));
    out->row_stride = m.cols;
    out->col_stride = 1;
    return m.rows ? tsr_matrix_copy(site, m, *out) : TSR_OK;
}

static tsr_status take_weights(const tsr_kernel_call *call, const tsr_matmul_site *site, tsr_arena *arena, weights *out)
{
    tsr_matrix data, scales;
    TSR_TRY(take_rows(site, arena, tsr_matrix_of(&call->inputs[1]), &data));
    TSR_TRY(take_rows(site, arena, tsr_matrix_of(&call->inputs[2]), &scales));
    *out = (weights){tsr_rows_kernels_for(call->kernels),
                     data.data,
                     scales.data,
                     data.rows,
                     data.cols,
                     data.row_stride,
                     scales.row_stride};
    return TSR_OK;
}

/* Makes the values of rows and columns, which begin at multiples of TSR_Q8_BLOCK. */
static void widen(const weights *w, int64_t row, int64_t rows, int64_t column, int64_t columns, float *panel)
{
    for (int64_t i = row; i < row + rows; i++, panel += columns)
        w->kernels->widen_q8(w->data + i * w->ld + column, w->scales + i * w->scales_ld + column / TSR_Q8_BLOCK,
                             columns, panel);
}

static int64_t panel_of(int64_t size, int64_t length)
{
    const int64_t fitting = PANEL_BYTES / (int64_t)sizeof(float) / tsr_larger(length, 1) / TSR_Q8_BLOCK * TSR_Q8_BLOCK;
    return tsr_smaller(size, tsr_smaller(MOST_PANEL, tsr_larger(fitting, TSR_Q8_BLOCK)));
}

/* Columns `first` and following of a matrix. */
static tsr_matrix columns_of(tsr_matrix m, int64_t first, int64_t count)
{
    m.data = m.data ? (char *)m.data + first * m.col_stride * (int64_t)tsr_dtype_bytes(m.dtype) : NULL;
    m.cols = count;
    return m;
}

/* c = x w^T + bias by panels of rows of w; `bias` NULL: there is none. */
static tsr_status multiply_panels(const tsr_matmul_site *site, const weights *w, tsr_matrix x, const tsr_matrix *bias,
                                  tsr_matrix c, float *panel)
{
    const int64_t step = panel_of(w->rows, w->columns);
    for (int64_t j = 0; j < w->rows; j += step) {
        const int64_t count = tsr_smaller(step, w->rows - j);
        const tsr_matrix values = {panel, w->columns, count, 1, w->columns, TSR_F32}, part = columns_of(c, j, count);
        if (!site->needs)
            widen(w, j, count, 0, w->columns, panel);
        TSR_TRY(bias ? tsr_matrix_multiply_biased(site, x, values, columns_of(*bias, j, count), part)
                     : tsr_matrix_multiply(site, x, values, part, false));
    }
    return TSR_OK;
}

/* Rows of x as contiguous f32. */
static tsr_status widen_rows(const tsr_matmul_site *site, tsr_matrix x, float *to)
{
    const tsr_matrix packed = {
        (char *)to + x.rows * x.cols * (int64_t)sizeof(float), x.rows, x.cols, x.cols, 1, x.dtype};
    TSR_TRY(tsr_matrix_copy(site, x, packed));
    return tsr_gemm_widen(to, packed.data, x.dtype, x.rows * x.cols);
}

/* The description of c and the bias for tsr_epilogue(). */
static tsr_gemm describe(tsr_matrix c, const tsr_matrix *bias)
{
    return (tsr_gemm){.size = sizeof(tsr_gemm),
                      .c_dtype = c.dtype,
                      .bias_dtype = bias ? bias->dtype : TSR_F32,
                      .m = c.rows,
                      .n = c.cols,
                      .alpha = 1,
                      .c = c.data,
                      .ldc = c.row_stride,
                      .bias = bias ? bias->data : NULL};
}

/* c = x w^T + bias for few rows; c and bias are contiguous along columns. */
static tsr_status multiply_few(const weights *w, tsr_matrix x, const tsr_matrix *bias, tsr_matrix c)
{
    float sums[TSR_ROWS_MOST * FEW_COLUMNS];
    const tsr_gemm g = describe(c, bias);
    tsr_rows_part part = {.w_ld = w->ld,
                          .x = x.data,
                          .x_ld = x.row_stride,
                          .m = x.rows,
                          .k = w->columns,
                          .sums = sums,
                          .sums_ld = FEW_COLUMNS,
                          .scales_ld = w->scales_ld};
    for (int64_t j = 0; j < w->rows; j += FEW_COLUMNS) {
        part.w = w->data + j * w->ld;
        part.scales = w->scales + j * w->scales_ld;
        part.n = tsr_smaller(FEW_COLUMNS, w->rows - j);
        w->kernels->dots_q8(&part);
        for (int64_t i = 0; i < x.rows; i++)
            TSR_TRY(tsr_epilogue(&g, 1, i, j, part.n, sums + i * FEW_COLUMNS));
    }
    return TSR_OK;
}

/* Multiplies few rows; x, c and the bias are packed in `room` where they must be. */
static tsr_status multiply_few_rows(const tsr_matmul_site *site, const weights *w, tsr_matrix x, const tsr_matrix *bias,
                                    tsr_matrix c, const few *room)
{
    tsr_matrix rows = x, to = c, added;
    if (x.dtype != TSR_F32 || (x.col_stride != 1 && x.cols > 1)) {
        TSR_TRY(widen_rows(site, x, room->x));
        rows = (tsr_matrix){room->x, x.rows, x.cols, x.cols, 1, TSR_F32};
    }
    if (c.col_stride != 1 && c.cols > 1)
        to = (tsr_matrix){room->c, c.rows, c.cols, c.cols, 1, c.dtype};
    if (bias) {
        added = (tsr_matrix){room->bias, 1, c.cols, c.cols, 1, bias->dtype};
        TSR_TRY(tsr_matrix_copy(site, *bias, added));
    }
    TSR_TRY(multiply_few(w, rows, bias ? &added : NULL, to));
    return to.data == c.data ? TSR_OK : tsr_matrix_copy(site, to, c);
}

static few take_few(tsr_arena *arena, const weights *w, tsr_dtype c, tsr_dtype bias)
{
    few room;
    room.x = tsr_arena_take(arena, 2 * sizeof(float) * (size_t)(TSR_ROWS_MOST * w->columns));
    room.c = tsr_arena_take(arena, tsr_dtype_bytes(c) * (size_t)(TSR_ROWS_MOST * w->rows));
    room.bias = tsr_arena_take(arena, tsr_dtype_bytes(bias) * (size_t)w->rows);
    return room;
}

static bool are_few(const tsr_row_blocks *blocks)
{
    return blocks->first.rows <= TSR_ROWS_MOST;
}

bool tsr_q8_is_few(const tsr_kernel_call *call, const tsr_tensor *out)
{
    const tsr_row_blocks blocks = tsr_row_blocks_of(&call->inputs[0], out);
    return are_few(&blocks);
}

tsr_status tsr_q8_multiply(const tsr_kernel_call *call, const tsr_matmul_site *site, tsr_arena *arena, bool biased,
                           const tsr_tensor *out)
{
    weights w;
    const tsr_row_blocks blocks = tsr_row_blocks_of(&call->inputs[0], out);
    tsr_matrix bias = {.dtype = TSR_F32};
    if (biased)
        bias = tsr_matrix_of(&call->inputs[3]);
    TSR_TRY(take_weights(call, site, arena, &w));
    const bool is_few = are_few(&blocks);
    const few room = is_few ? take_few(arena, &w, out->dtype, bias.dtype) : (few){NULL, NULL, NULL};
    float *const panel =
        is_few ? NULL : tsr_arena_take(arena, sizeof(float) * (size_t)(panel_of(w.rows, w.columns) * w.columns));
    for (int64_t i = 0; i < tsr_row_blocks_visited(&blocks, site); i++) {
        tsr_matrix x, c;
        tsr_row_blocks_get(&blocks, i, &x, &c);
        if (!is_few)
            TSR_TRY(multiply_panels(site, &w, x, biased ? &bias : NULL, c, panel));
        else if (!site->needs && w.rows > 0)
            TSR_TRY(multiply_few_rows(site, &w, x, biased ? &bias : NULL, c, &room));
    }
    return TSR_OK;
}

tsr_status tsr_q8_multiply_back(const tsr_kernel_call *call, const tsr_matmul_site *site, tsr_arena *arena,
                                const tsr_tensor *out)
{
    weights w;
    const tsr_row_blocks blocks = tsr_row_blocks_of(&call->inputs[0], out);
    TSR_TRY(take_weights(call, site, arena, &w));
    const int64_t step = panel_of(w.columns, w.rows);
    float *const panel = tsr_arena_take(arena, sizeof(float) * (size_t)(step * w.rows));
    for (int64_t k = 0; k < w.columns; k += step) {
        const int64_t count = tsr_smaller(step, w.columns - k);
        const tsr_matrix values = {panel, w.rows, count, count, 1, TSR_F32};
        if (!site->needs)
            widen(&w, 0, w.rows, k, count, panel);
        for (int64_t i = 0; i < tsr_row_blocks_visited(&blocks, site); i++) {
            tsr_matrix dout, dx;
            tsr_row_blocks_get(&blocks, i, &dout, &dx);
            TSR_TRY(tsr_matrix_multiply(site, dout, values, columns_of(dx, k, count), false));
        }
    }
    return TSR_OK;
}
