#include "ops/matmul.h"

#include "ops/gemm.h"
#include <string.h>

/* Rows of a, and columns of b, that are packed at a time. */
#define TILE 64

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void *element_at(const tsr_matmul_site *site, const void *data, int64_t index)
{
    return (char *)data + index * (int64_t)tsr_dtype_bytes(site->dtype);
}

tsr_matrix tsr_matrix_transpose(tsr_matrix m)
{
    return (tsr_matrix){m.data, m.cols, m.rows, m.col_stride, m.row_stride};
}

static tsr_matrix part_of(const tsr_matmul_site *site, tsr_matrix m, int64_t row, int64_t rows, int64_t col, int64_t cols)
{
    void *data = element_at(site, m.data, row * m.row_stride + col * m.col_stride);
    return (tsr_matrix){data, rows, cols, m.row_stride, m.col_stride};
}

/* True if a gemm can take rows that are `m.row_stride` apart; writes their distance, which BLAS wants to be at least a row. */
static bool has_plain_rows(tsr_matrix m, int64_t *ld)
{
    if ((m.col_stride != 1 && m.cols != 1) || (m.row_stride < m.cols && m.rows != 1))
        return false;
    *ld = larger(m.rows == 1 ? 1 : m.row_stride, m.cols);
    return true;
}

static bool is_source_direct(tsr_matrix m, int *trans, int64_t *ld)
{
    *trans = 0;
    if (has_plain_rows(m, ld))
        return true;
    *trans = 1;
    return has_plain_rows(tsr_matrix_transpose(m), ld);
}

/* c = a b in the words of a gemm; false if the strides of the three don't allow one. */
static bool describe(const tsr_matmul_site *site, tsr_matrix a, tsr_matrix b, tsr_matrix c, bool accumulate, tsr_gemm *out)
{
    tsr_gemm g = {.dtype = site->dtype,
                  .m = c.rows,
                  .n = c.cols,
                  .k = a.cols,
                  .alpha = 1,
                  .beta = accumulate,
                  .a = a.data,
                  .b = b.data,
                  .c = c.data,
                  .workspace = site->workspace,
                  .workspace_bytes = site->workspace_bytes};
    if (!is_source_direct(a, &g.trans_a, &g.lda) || !is_source_direct(b, &g.trans_b, &g.ldb) || !has_plain_rows(c, &g.ldc))
        return false;
    *out = g;
    return true;
}

/* Likewise, or c' = b' a'. */
static bool describe_either(const tsr_matmul_site *site, tsr_matrix a, tsr_matrix b, tsr_matrix c, bool accumulate, tsr_gemm *out)
{
    return describe(site, a, b, c, accumulate, out) ||
           describe(site, tsr_matrix_transpose(b), tsr_matrix_transpose(a), tsr_matrix_transpose(c), accumulate, out);
}

static size_t packing_bytes(tsr_dtype dtype, int64_t m, int64_t n, int64_t k)
{
    const int64_t rows = smaller(m, TILE), cols = smaller(n, TILE);
    return (size_t)(rows * k + cols * k + rows * cols) * tsr_dtype_bytes(dtype);
}

/* `g` is NULL where the strides don't allow a gemm of the whole. Tiles go without a workspace. */
static tsr_status raise_needs(const tsr_matmul_site *site, const tsr_gemm *g, tsr_matrix a, tsr_matrix c)
{
    const size_t packing = g && !site->any_strides ? 0 : packing_bytes(site->dtype, c.rows, c.cols, a.cols);
    size_t workspace = 0;
    if (g)
        TSR_TRY(tsr_gemm_workspace(site->device, g, &workspace));
    tsr_matmul_needs *needs = site->needs;
    needs->packing = packing > needs->packing ? packing : needs->packing;
    needs->gemm = workspace > needs->gemm ? workspace : needs->gemm;
    return TSR_OK;
}

/* The packing holds a tile of a, (TILE, k), one of b, (TILE, k) as its transpose, and one of c, (TILE, TILE). */
static tsr_status multiply_tile(const tsr_matmul_site *site, tsr_matrix a, tsr_matrix b, tsr_matrix c, bool accumulate)
{
    tsr_matrix packed_a = {site->packing, a.rows, a.cols, a.cols, 1};
    tsr_matrix packed_b = {element_at(site, packed_a.data, a.rows * a.cols), b.rows, b.cols, 1, b.rows};
    tsr_matrix packed_c = {element_at(site, packed_b.data, b.rows * b.cols), c.rows, c.cols, c.cols, 1};
    int trans;
    int64_t ld;
    tsr_gemm g;
    if (is_source_direct(a, &trans, &ld))
        packed_a = a;
    else
        TSR_TRY(tsr_matrix_copy(site, a, packed_a));
    if (is_source_direct(b, &trans, &ld))
        packed_b = b;
    else
        TSR_TRY(tsr_matrix_copy(site, b, packed_b));
    if (describe(site, packed_a, packed_b, c, accumulate, &g))
        return tsr_gemm_run(site->device, site->choice, &g, site->stream);
    if (accumulate)
        TSR_TRY(tsr_matrix_copy(site, c, packed_c));
    describe(site, packed_a, packed_b, packed_c, accumulate, &g);
    TSR_TRY(tsr_gemm_run(site->device, site->choice, &g, site->stream));
    return tsr_matrix_copy(site, packed_c, c);
}

static tsr_status multiply_by_tiles(const tsr_matmul_site *site, tsr_matrix a, tsr_matrix b, tsr_matrix c, bool accumulate)
{
    for (int64_t row = 0; row < c.rows; row += TILE) {
        const int64_t rows = smaller(TILE, c.rows - row);
        for (int64_t col = 0; col < c.cols; col += TILE) {
            const int64_t cols = smaller(TILE, c.cols - col);
            TSR_TRY(multiply_tile(site, part_of(site, a, row, rows, 0, a.cols), part_of(site, b, 0, b.rows, col, cols),
                                  part_of(site, c, row, rows, col, cols), accumulate));
        }
    }
    return TSR_OK;
}

tsr_status tsr_matmul(const tsr_matmul_site *site, tsr_matrix a, tsr_matrix b, tsr_matrix c, bool accumulate)
{
    if (c.rows == 0 || c.cols == 0 || (a.cols == 0 && accumulate))
        return TSR_OK;
    if (a.cols == 0)
        return tsr_matrix_fill(site, c, 0);
    tsr_gemm g;
    const bool direct = describe_either(site, a, b, c, accumulate, &g);
    if (site->needs)
        return raise_needs(site, direct ? &g : NULL, a, c);
    return direct ? tsr_gemm_run(site->device, site->choice, &g, site->stream) : multiply_by_tiles(site, a, b, c, accumulate);
}

/* A bias falls along the columns of c, so that only a gemm of c itself, not of c', can add it. Elsewhere the product is added to the bias,
 * which costs less than the other way round: c is written first anyway. */
tsr_status tsr_matmul_biased(const tsr_matmul_site *site, tsr_matrix a, tsr_matrix b, tsr_matrix bias, tsr_matrix c)
{
    tsr_gemm g;
    const bool adds = c.rows > 0 && c.cols > 0 && a.cols > 0 && (bias.col_stride == 1 || bias.cols == 1);
    if (adds && describe(site, a, b, c, false, &g)) {
        g.bias = bias.data;
        return site->needs ? raise_needs(site, &g, a, c) : tsr_gemm_run(site->device, site->choice, &g, site->stream);
    }
    bias.row_stride = 0;
    bias.rows = c.rows;
    if (c.rows > 0 && c.cols > 0)
        TSR_TRY(tsr_matrix_copy(site, bias, c));
    return tsr_matmul(site, a, b, c, true);
}

tsr_status tsr_matrix_copy(const tsr_matmul_site *site, tsr_matrix from, tsr_matrix to)
{
    if (site->needs)
        return TSR_OK;
    void *self;
    const tsr_device_table *table = tsr_device_driver_table(site->device.driver, &self);
    const tsr_box_copy box = {.dst = to.data,
                              .src = from.data,
                              .element_bytes = tsr_dtype_bytes(site->dtype),
                              .ndim = 2,
                              .shape = {to.rows, to.cols},
                              .dst_strides = {to.row_stride, to.col_stride},
                              .src_strides = {from.row_stride, from.col_stride}};
    return table->copy_boxes(self, site->device.index, &box, 1, site->stream);
}

/* The bits of 1, as far as the dtype has bytes, in this machine's order. */
static const struct {
    tsr_dtype dtype;
    union {
        double f64;
        float f32;
        uint16_t half;
    } one;
} ones[] = {{TSR_F64, {.f64 = 1}}, {TSR_F32, {.f32 = 1}}, {TSR_F16, {.half = 0x3c00}}, {TSR_BF16, {.half = 0x3f80}}};

static const void *find_one(tsr_dtype dtype)
{
    for (size_t i = 0; i < sizeof(ones) / sizeof(ones[0]); i++) {
        if (ones[i].dtype == dtype)
            return &ones[i].one;
    }
    return NULL;
}

tsr_status tsr_matrix_fill(const tsr_matmul_site *site, tsr_matrix to, int value)
{
    const void *one = find_one(site->dtype);
    if (value && !one)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "sums of rows are made of f64, f32, f16 and bf16, not of %s",
                              tsr_dtype_name(site->dtype));
    if (site->needs)
        return TSR_OK;
    void *self;
    const tsr_device_table *table = tsr_device_driver_table(site->device.driver, &self);
    tsr_box_fill fill = {.dst = to.data,
                         .element_bytes = tsr_dtype_bytes(site->dtype),
                         .ndim = 2,
                         .shape = {to.rows, to.cols},
                         .dst_strides = {to.row_stride, to.col_stride}};
    if (value)
        memcpy(fill.value, one, fill.element_bytes);
    return table->fill(self, site->device.index, &fill, site->stream);
}

/* A dim of size 1 never stands in the way; otherwise its step must be that of the rows that it holds. */
static bool joins_rows(int64_t stride, tsr_matrix m)
{
    return m.rows == 1 || stride == m.rows * m.row_stride;
}

static tsr_matrix row_of(const tsr_tensor *tensor)
{
    const int last = tensor->ndim - 1;
    return (tsr_matrix){tensor->data, 1, tensor->shape[last], tensor->shape[last], tensor->strides[last]};
}

tsr_row_blocks tsr_row_blocks_of(const tsr_tensor *first, const tsr_tensor *second)
{
    tsr_row_blocks blocks = {.count = 1, .first = row_of(first), .second = row_of(second), .element_bytes = tsr_dtype_bytes(first->dtype)};
    for (int dim = first->ndim - 2; dim >= 0; dim--) {
        const int64_t size = first->shape[dim], p = first->strides[dim], q = second->strides[dim];
        if (size == 1)
            continue;
        if (size == 0)
            blocks.count = 0;
        if (blocks.outer_ndim == 0 && joins_rows(p, blocks.first) && joins_rows(q, blocks.second)) {
            blocks.first.row_stride = blocks.first.rows == 1 ? p : blocks.first.row_stride;
            blocks.second.row_stride = blocks.second.rows == 1 ? q : blocks.second.row_stride;
            blocks.first.rows = blocks.second.rows = blocks.first.rows * size;
            continue;
        }
        blocks.outer_shape[blocks.outer_ndim] = size;
        blocks.first_strides[blocks.outer_ndim] = p;
        blocks.second_strides[blocks.outer_ndim++] = q;
        blocks.count *= size;
    }
    return blocks;
}

/* A product that is only measured has no data. */
static void *move(void *data, int64_t bytes)
{
    return data ? (char *)data + bytes : NULL;
}

void tsr_row_blocks_get(const tsr_row_blocks *blocks, int64_t index, tsr_matrix *first, tsr_matrix *second)
{
    int64_t p = 0, q = 0;
    for (int dim = 0; dim < blocks->outer_ndim; dim++) {
        const int64_t at = index % blocks->outer_shape[dim];
        index /= blocks->outer_shape[dim];
        p += at * blocks->first_strides[dim];
        q += at * blocks->second_strides[dim];
    }
    *first = blocks->first;
    *second = blocks->second;
    first->data = move(first->data, p * (int64_t)blocks->element_bytes);
    second->data = move(second->data, q * (int64_t)blocks->element_bytes);
}

tsr_matrix tsr_matrix_of(const tsr_tensor *tensor)
{
    if (tensor->ndim == 1)
        return row_of(tensor);
    return (tsr_matrix){tensor->data, tensor->shape[0], tensor->shape[1], tensor->strides[0], tensor->strides[1]};
}
