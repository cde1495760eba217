#include "ops/matmul.h"

#include "ops/numbers.h"
#include "ops/rows.h"
#include "ops/widened.h"

#include <string.h>

/* The most rows of a, and columns of b, that are packed at a time. */
#define TILE 64

tsr_matrix tsr_matrix_transpose(tsr_matrix m)
{
    return (tsr_matrix){m.data, m.cols, m.rows, m.col_stride, m.row_stride, m.dtype};
}

static tsr_matrix part_of(tsr_matrix m, int64_t row, int64_t rows, int64_t col, int64_t cols)
{
    void *data = (char *)m.data + (row * m.row_stride + col * m.col_stride) * (int64_t)tsr_dtype_bytes(m.dtype);
    return (tsr_matrix){data, rows, cols, m.row_stride, m.col_stride, m.dtype};
}

/* True if a gemm can take the matrix untransposed; `*ld` becomes the distance of its rows, which
 * BLAS requires to be at least a row. */
static bool has_plain_rows(tsr_matrix m, int64_t *ld)
{
    if ((m.col_stride != 1 && m.cols != 1) || (m.row_stride < m.cols && m.rows != 1))
        return false;
    *ld = tsr_larger(m.rows == 1 ? 1 : m.row_stride, m.cols);
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

/* Describes c = a b as a gemm; false if the strides of a, b and c do not allow one. */
static bool describe_gemm(const tsr_matmul_site *site, tsr_matrix a, tsr_matrix b, tsr_matrix c, bool accumulate,
                          tsr_gemm *out)
{
    tsr_gemm g = {.size = sizeof g,
                  .a_dtype = a.dtype,
                  .b_dtype = b.dtype,
                  .c_dtype = c.dtype,
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
    if (!is_source_direct(a, &g.trans_a, &g.lda) || !is_source_direct(b, &g.trans_b, &g.ldb) ||
        !has_plain_rows(c, &g.ldc))
        return false;
    *out = g;
    return true;
}

/* Describes c = a b, or the transposed product c' = b' a', as a gemm; false if the strides allow
 * neither. */
static bool describe_either(const tsr_matmul_site *site, tsr_matrix a, tsr_matrix b, tsr_matrix c, bool accumulate,
                            tsr_gemm *out)
{
    return describe_gemm(site, a, b, c, accumulate, out) ||
           describe_gemm(site, tsr_matrix_transpose(b), tsr_matrix_transpose(a), tsr_matrix_transpose(c), accumulate,
                         out);
}

/* Offsets of packed operands in the packing memory: rows of a, (TILE, k), at 0; columns of b,
 * transposed (TILE, k); and a tile of c, (TILE, TILE). */
typedef struct packed_tile {
    size_t b, c, bytes;
} packed_tile;

static packed_tile place_tile(tsr_matrix a, tsr_matrix b, tsr_matrix c)
{
    const int64_t rows = tsr_smaller(c.rows, TILE), cols = tsr_smaller(c.cols, TILE);
    packed_tile tile;
    tile.b = tsr_aligned_bytes((size_t)(rows * a.cols) * tsr_dtype_bytes(a.dtype));
    tile.c = tile.b + tsr_aligned_bytes((size_t)(cols * a.cols) * tsr_dtype_bytes(b.dtype));
    tile.bytes = tile.c + tsr_aligned_bytes((size_t)(rows * cols) * tsr_dtype_bytes(c.dtype));
    return tile;
}

static tsr_status raise_workspace(const tsr_matmul_site *site, const tsr_gemm *g)
{
    size_t bytes = 0;
    TSR_TRY(tsr_gemm_workspace(site->device, g, &bytes));
    site->needs->gemm = bytes > site->needs->gemm ? bytes : site->needs->gemm;
    return TSR_OK;
}

/* Raises the needs to those of host products of up to m rows and n columns with any strides. More
 * rows or columns never need less, except at the step from few rows (rows.h) to many, so both sides
 * of it are asked for. */
static tsr_status raise_any(const tsr_matmul_site *site, tsr_matrix a, tsr_matrix b, int64_t m, int64_t n, tsr_dtype c)
{
    const int64_t rows[] = {m, tsr_smaller(m, TSR_ROWS_MOST)};
    for (int i = 0; i < 2; i++) {
        const tsr_gemm g = {.size = sizeof g,
                            .a_dtype = a.dtype,
                            .b_dtype = b.dtype,
                            .c_dtype = c,
                            .trans_a = 1,
                            .m = rows[i],
                            .n = n,
                            .k = a.cols,
                            .alpha = 1};
        TSR_TRY(raise_workspace(site, &g));
    }
    return TSR_OK;
}

/* Raises the needs to those of one product. `g` is NULL if the strides do not allow a gemm of the
 * whole. On a device, tiles are multiplied without a workspace. */
static tsr_status raise_needs(const tsr_matmul_site *site, const tsr_gemm *g, tsr_matrix a, tsr_matrix b, tsr_matrix c)
{
    tsr_matmul_needs *needs = site->needs;
    if (g)
        TSR_TRY(raise_workspace(site, g));
    if (g && !site->any_strides)
        return TSR_OK;
    const size_t packing = place_tile(a, b, c).bytes;
    needs->packing = packing > needs->packing ? packing : needs->packing;
    if (site->device.driver)
        return TSR_OK;
    const int64_t m = site->any_strides ? c.rows : tsr_smaller(c.rows, TILE),
                  n = site->any_strides ? c.cols : tsr_smaller(c.cols, TILE);
    TSR_TRY(raise_any(site, a, b, m, n, c.dtype));
    return raise_any(site, tsr_matrix_transpose(b), tsr_matrix_transpose(a), n, m, c.dtype);
}

static tsr_status multiply_tile(const tsr_matmul_site *site, tsr_matrix a, tsr_matrix b, tsr_matrix c, bool accumulate)
{
    const packed_tile at = place_tile(a, b, c);
    tsr_matrix packed_a = {site->packing, a.rows, a.cols, a.cols, 1, a.dtype};
    tsr_matrix packed_b = {(char *)site->packing + at.b, b.rows, b.cols, 1, b.rows, b.dtype};
    tsr_matrix packed_c = {(char *)site->packing + at.c, c.rows, c.cols, c.cols, 1, c.dtype};
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
    if (describe_gemm(site, packed_a, packed_b, c, accumulate, &g))
        return tsr_gemm_run(site->device, site->choice, &g, site->stream);
    if (accumulate)
        TSR_TRY(tsr_matrix_copy(site, c, packed_c));
    describe_gemm(site, packed_a, packed_b, packed_c, accumulate, &g);
    TSR_TRY(tsr_gemm_run(site->device, site->choice, &g, site->stream));
    return tsr_matrix_copy(site, packed_c, c);
}

static tsr_status multiply_by_tiles(const tsr_matmul_site *site, tsr_matrix a, tsr_matrix b, tsr_matrix c,
                                    bool accumulate)
{
    for (int64_t row = 0; row < c.rows; row += TILE) {
        const int64_t rows = tsr_smaller(TILE, c.rows - row);
        for (int64_t col = 0; col < c.cols; col += TILE) {
            const int64_t cols = tsr_smaller(TILE, c.cols - col);
            TSR_TRY(multiply_tile(site, part_of(a, row, rows, 0, a.cols), part_of(b, 0, b.rows, col, cols),
                                  part_of(c, row, rows, col, cols), accumulate));
        }
    }
    return TSR_OK;
}

tsr_status tsr_matrix_multiply(const tsr_matmul_site *site, tsr_matrix a, tsr_matrix b, tsr_matrix c, bool accumulate)
{
    if (c.rows == 0 || c.cols == 0 || (a.cols == 0 && accumulate))
        return TSR_OK;
    if (a.cols == 0)
        return tsr_matrix_fill(site, c, 0);
    tsr_gemm g;
    const bool direct = describe_either(site, a, b, c, accumulate, &g);
    if (site->needs)
        return raise_needs(site, direct ? &g : NULL, a, b, c);
    return direct ? tsr_gemm_run(site->device, site->choice, &g, site->stream)
                  : multiply_by_tiles(site, a, b, c, accumulate);
}

tsr_status tsr_matrix_measure(const tsr_matmul_site *site, tsr_matrix a, tsr_matrix b, tsr_matrix c, bool accumulate)
{
    const tsr_gemm g = {
        .a_dtype = a.dtype, .b_dtype = b.dtype, .c_dtype = c.dtype, .m = c.rows, .n = c.cols, .k = a.cols};
    const tsr_gemm transposed = {
        .a_dtype = g.b_dtype, .b_dtype = g.a_dtype, .c_dtype = g.c_dtype, .m = g.n, .n = g.m, .k = g.k};
    const size_t few = tsr_aligned_bytes((size_t)(TSR_ROWS_MOST * g.k) * sizeof(float));
    TSR_TRY(tsr_matrix_multiply(site, a, b, c, accumulate));
    const size_t most = tsr_larger_bytes(
        few, tsr_larger_bytes(tsr_widened_most_workspace(&g), tsr_widened_most_workspace(&transposed)));
    site->needs->gemm = tsr_larger_bytes(site->needs->gemm, most);
    return TSR_OK;
}

tsr_matmul_site tsr_matmul_site_behind(const tsr_matmul_site *site, size_t front, tsr_matmul_needs *needs)
{
    tsr_matmul_site behind = *site;
    behind.packing = site->needs ? NULL : (char *)site->packing + front;
    behind.needs = site->needs ? needs : NULL;
    return behind;
}

void tsr_matmul_site_raise(const tsr_matmul_site *site, size_t front, const tsr_matmul_needs *needs)
{
    if (!site->needs)
        return;
    site->needs->packing =
        front + needs->packing > site->needs->packing ? front + needs->packing : site->needs->packing;
    site->needs->gemm = needs->gemm > site->needs->gemm ? needs->gemm : site->needs->gemm;
}

/* Sets every row of c to the bias, whose values c's dtype holds exactly. A bias of another dtype is
 * packed, (1, n), and converted first. */
static tsr_status start_from_bias(const tsr_matmul_site *site, tsr_matrix bias, tsr_matrix c)
{
    void *self;
    const tsr_device_table *table = tsr_device_driver_table(site->device.driver, &self);
    if (site->needs || c.rows == 0 || c.cols == 0)
        return TSR_OK;
    if (bias.dtype != c.dtype) {
        const tsr_matrix packed = {site->packing, 1, c.cols, c.cols, 1, bias.dtype};
        tsr_matrix converted = {(char *)site->packing + tsr_aligned_bytes((size_t)c.cols * tsr_dtype_bytes(bias.dtype)),
                                1,
                                c.cols,
                                0,
                                1,
                                c.dtype};
        TSR_TRY(tsr_matrix_copy(site, bias, packed));
        TSR_TRY(table->convert(self, site->device.index, converted.data, c.dtype, packed.data, bias.dtype, c.cols,
                               site->stream));
        bias = converted;
    }
    bias.row_stride = 0;
    bias.rows = c.rows;
    return tsr_matrix_copy(site, bias, c);
}

static size_t packed_bias_bytes(tsr_matrix bias, tsr_matrix c)
{
    return bias.dtype == c.dtype ? 0
                                 : tsr_aligned_bytes((size_t)c.cols * tsr_dtype_bytes(bias.dtype)) +
                                       tsr_aligned_bytes((size_t)c.cols * tsr_dtype_bytes(c.dtype));
}

/* A gemm adds a bias per column, so it must be a gemm of c, not of c'. Otherwise c is set to the
 * bias and the product is added to it, which costs less than adding the bias afterwards. */
tsr_status tsr_matrix_multiply_biased(const tsr_matmul_site *site, tsr_matrix a, tsr_matrix b, tsr_matrix bias,
                                      tsr_matrix c)
{
    tsr_gemm g;
    const bool adds = c.rows > 0 && c.cols > 0 && a.cols > 0 && (bias.col_stride == 1 || bias.cols == 1) &&
                      describe_gemm(site, a, b, c, false, &g);
    if (adds) {
        g.bias = bias.data;
        g.bias_dtype = bias.dtype;
    }
    if (adds && !site->needs)
        return tsr_gemm_run(site->device, site->choice, &g, site->stream);
    if (adds)
        TSR_TRY(raise_needs(site, &g, a, b, c));
    if (adds && !site->any_strides)
        return TSR_OK;
    const size_t front = packed_bias_bytes(bias, c);
    tsr_matmul_needs needs = {0};
    const tsr_matmul_site behind = tsr_matmul_site_behind(site, front, &needs);
    TSR_TRY(start_from_bias(site, bias, c));
    TSR_TRY(tsr_matrix_multiply(&behind, a, b, c, true));
    tsr_matmul_site_raise(site, front, &needs);
    return TSR_OK;
}

tsr_status tsr_matrix_copy(const tsr_matmul_site *site, tsr_matrix from, tsr_matrix to)
{
    if (site->needs)
        return TSR_OK;
    void *self;
    const tsr_device_table *table = tsr_device_driver_table(site->device.driver, &self);
    const tsr_box_copy box = {.dst = to.data,
                              .src = from.data,
                              .element_bytes = tsr_dtype_bytes(to.dtype),
                              .ndim = 2,
                              .shape = {to.rows, to.cols},
                              .dst_strides = {to.row_stride, to.col_stride},
                              .src_strides = {from.row_stride, from.col_stride}};
    return table->copy_boxes(self, site->device.index, &box, 1, site->stream);
}

/* The bits of 1 in each dtype, in this machine's byte order. */
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
    for (size_t i = 0; i < sizeof ones / sizeof ones[0]; i++) {
        if (ones[i].dtype == dtype)
            return &ones[i].one;
    }
    return NULL;
}

tsr_status tsr_matrix_fill(const tsr_matmul_site *site, tsr_matrix to, int value)
{
    const void *one = find_one(to.dtype);
    if (value && !one)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "sums of rows are made of f64, f32, f16 and bf16, not of %s",
                              tsr_dtype_name(to.dtype));
    if (site->needs)
        return TSR_OK;
    void *self;
    const tsr_device_table *table = tsr_device_driver_table(site->device.driver, &self);
    tsr_box_fill fill = {.dst = to.data,
                         .element_bytes = tsr_dtype_bytes(to.dtype),
                         .ndim = 2,
                         .shape = {to.rows, to.cols},
                         .dst_strides = {to.row_stride, to.col_stride}};
    if (value)
        memcpy(fill.value, one, fill.element_bytes);
    return table->fill(self, site->device.index, &fill, site->stream);
}

/* True if a dim of stride `stride` can be merged into the rows of `m`: one step of it is m.rows
 * rows, or there is only one row. */
static bool joins_rows(int64_t stride, tsr_matrix m)
{
    return m.rows == 1 || stride == m.rows * m.row_stride;
}

static tsr_matrix row_of(const tsr_tensor *tensor)
{
    const int last = tensor->ndim - 1;
    return (tsr_matrix){tensor->data, 1, tensor->shape[last], tensor->shape[last], tensor->strides[last],
                        tensor->dtype};
}

tsr_row_blocks tsr_row_blocks_of(const tsr_tensor *first, const tsr_tensor *second)
{
    tsr_row_blocks blocks = {.count = 1, .first = row_of(first), .second = row_of(second)};
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

/* NULL stays NULL: a product that is only measured has no data. */
static void *move_pointer(void *data, int64_t bytes)
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
    first->data = move_pointer(first->data, p * (int64_t)tsr_dtype_bytes(first->dtype));
    second->data = move_pointer(second->data, q * (int64_t)tsr_dtype_bytes(second->dtype));
}

tsr_matrix tsr_matrix_of(const tsr_tensor *tensor)
{
    if (tensor->ndim == 1)
        return row_of(tensor);
    return (tsr_matrix){tensor->data,       tensor->shape[0],   tensor->shape[1],
                        tensor->strides[0], tensor->strides[1], tensor->dtype};
}
