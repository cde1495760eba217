#include "ops/gradients.h"

#include "ops/layer.h"
#include "ops/layer_cache.h"
#include "ops/layer_rule.h"
#include "ops/numbers.h"

#include <string.h>

const char *tsr_gradient_name(int which)
{
    static const char *const names[TSR_GRADIENTS] = {"dx", "dw", "db"};
    return names[which];
}

/* The sentences have both values. */
static tsr_status check_dy(const char *caller, const tsr_layout *y, const tsr_layout *dy)
{
    char ours[TSR_LAYER_SHAPE_TEXT], theirs[TSR_LAYER_SHAPE_TEXT], name[TSR_LAYER_MESH_DIM_TEXT];
    TSR_TRY(tsr_layer_check_mesh_dims(caller, "y", y, "dy", dy));
    if (!tsr_layer_same_shape(dy, y))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: dy has shape %s, but the y that x, w and b give has %s; both must be equal", caller,
                              tsr_layer_print_shape(dy, theirs), tsr_layer_print_shape(y, ours));
    if (tsr_layout_dtype(dy) != tsr_layout_dtype(y))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: dy is %s, but the y that x, w and b give is %s; both must be equal", caller,
                              tsr_dtype_name(tsr_layout_dtype(dy)), tsr_dtype_name(tsr_layout_dtype(y)));
    for (int dim = 0; dim < tsr_mesh_ndim(tsr_layout_mesh(y)); dim++) {
        if (tsr_layout_placements(dy)[dim].kind == TSR_PARTIAL)
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "%s: dy is Partial on mesh dim %s; a gradient layout has Replicate there", caller,
                                  tsr_layer_name_mesh_dim(tsr_layout_mesh(y), dim, name));
    }
    return TSR_OK;
}

tsr_status tsr_backward_begin(const char *caller, const tsr_layout *const *operands, const tsr_layout *dy,
                              tsr_device device, tsr_backward *pass)
{
    tsr_layout *y, *taken;
    int64_t coordinate[TSR_MAX_DIMS];
    int inside;
    pass->device = device;
    TSR_TRY(tsr_layer_recall_y(caller, operands[TSR_DX], operands[TSR_DW], operands[TSR_DB], &y));
    tsr_status status = dy ? check_dy(caller, y, dy) : TSR_OK;
    if (status == TSR_OK)
        status = tsr_layout_gradient(y, &taken);
    tsr_layout_destroy(y);
    TSR_TRY(status);
    TSR_TRY(tsr_local_form_take(taken, &pass->dy));
    TSR_TRY(tsr_mesh_coordinate(tsr_layout_mesh(taken), coordinate, &inside));
    pass->inside = inside;
    return tsr_layer_choose(tsr_mesh_context(tsr_layout_mesh(taken)), device, &pass->choice);
}

static tsr_dtype dtype_of_gradient(tsr_dtype of, const tsr_layout *wanted)
{
    const bool widens = wanted && tsr_layout_dtype(wanted) == TSR_F32 && (of == TSR_F16 || of == TSR_BF16);
    return widens ? TSR_F32 : of;
}

tsr_status tsr_backward_add(const char *caller, int which, const tsr_layout *const *operands, const tsr_layout *wanted,
                            tsr_backward *pass)
{
    const tsr_layout *const dy = pass->dy.layout,
                            *const others[] = {[TSR_DX] = operands[TSR_DW], [TSR_DW] = operands[TSR_DX], [TSR_DB] = dy};
    const tsr_dtype dtype = dtype_of_gradient(tsr_layout_dtype(operands[which]), wanted);
    const tsr_gemm product = {.size = sizeof product,
                              .a_dtype = tsr_layout_dtype(dy),
                              .b_dtype = tsr_layout_dtype(others[which]),
                              .c_dtype = dtype};
    tsr_layout *own;
    if (wanted)
        TSR_TRY(tsr_layer_check_mesh(caller, "x", operands[TSR_DX], tsr_gradient_name(which), wanted));
    TSR_TRY(tsr_gemm_supported(caller, pass->device, &product));
    TSR_TRY(tsr_layer_recall_gradient(caller, which, operands, dy, dtype, &own));
    return tsr_local_form_take(own, &pass->own[which]);
}

static tsr_status compute_dx(const tsr_matmul_site *site, const tsr_gradient_sources *from, const tsr_tensor *dx,
                             bool adds)
{
    const tsr_row_blocks blocks = tsr_row_blocks_of(&from->dy, dx);
    for (int64_t i = 0; i < tsr_row_blocks_visited(&blocks, site); i++) {
        tsr_matrix dy_rows, dx_rows;
        tsr_row_blocks_get(&blocks, i, &dy_rows, &dx_rows);
        TSR_TRY(tsr_matrix_multiply(site, dy_rows, tsr_matrix_of(&from->w), dx_rows, adds));
    }
    return TSR_OK;
}

static tsr_status compute_dw(const tsr_matmul_site *site, const tsr_gradient_sources *from, const tsr_tensor *dw,
                             bool adds)
{
    const tsr_row_blocks blocks = tsr_row_blocks_of(&from->dy, &from->x);
    const tsr_matrix to = tsr_matrix_of(dw);
    for (int64_t i = 0; i < tsr_row_blocks_visited(&blocks, site); i++) {
        tsr_matrix dy_rows, x_rows;
        tsr_row_blocks_get(&blocks, i, &dy_rows, &x_rows);
        TSR_TRY(tsr_matrix_multiply(site, tsr_matrix_transpose(dy_rows), x_rows, to, adds || i > 0));
    }
    return blocks.count > 0 || adds ? TSR_OK : tsr_matrix_fill(site, to, 0);
}

/* Adds up the rows of all blocks: products of the row `ones` with each block. */
static tsr_status add_rows(const tsr_matmul_site *site, const tsr_row_blocks *blocks, tsr_matrix ones, tsr_matrix to,
                           bool adds)
{
    for (int64_t i = 0; i < tsr_row_blocks_visited(blocks, site); i++) {
        tsr_matrix dy_rows, same;
        tsr_row_blocks_get(blocks, i, &dy_rows, &same);
        TSR_TRY(tsr_matrix_multiply(site, ones, dy_rows, to, adds || i > 0));
    }
    return TSR_OK;
}

/* Adds up dy's rows as the product of a row of ones with dy, whose order of sums is always the
 * same. The ones lie at the front of the packing memory. */
static tsr_status compute_db(const tsr_matmul_site *site, const tsr_gradient_sources *from, const tsr_tensor *db,
                             bool adds)
{
    const tsr_row_blocks blocks = tsr_row_blocks_of(&from->dy, &from->dy);
    const int64_t rows = blocks.first.rows;
    const tsr_dtype dtype = from->dy.dtype;
    const tsr_matrix to = tsr_matrix_of(db), ones = {site->packing, 1, rows, rows, 1, dtype};
    const size_t front = tsr_aligned_bytes((size_t)rows * tsr_dtype_bytes(dtype));
    tsr_matmul_needs needs = {0};
    const tsr_matmul_site behind = tsr_matmul_site_behind(site, front, &needs);
    if (blocks.count == 0)
        return adds ? TSR_OK : tsr_matrix_fill(site, to, 0);
    TSR_TRY(tsr_matrix_fill(site, ones, 1));
    TSR_TRY(add_rows(&behind, &blocks, ones, to, adds));
    tsr_matmul_site_raise(site, front, &needs);
    return TSR_OK;
}

tsr_status tsr_gradient_compute(int which, const tsr_matmul_site *site, const tsr_gradient_sources *from,
                                const tsr_tensor *to, bool adds)
{
    static tsr_status (*const computations[TSR_GRADIENTS])(const tsr_matmul_site *, const tsr_gradient_sources *,
                                                           const tsr_tensor *, bool) = {
        [TSR_DX] = compute_dx, [TSR_DW] = compute_dw, [TSR_DB] = compute_db};
    return computations[which](site, from, to, adds);
}

tsr_status tsr_backward_measure(tsr_backward *pass, int which, const tsr_gradient_sources *from, const tsr_tensor *to,
                                bool adds, bool any_strides)
{
    if (!pass->inside)
        return TSR_OK;
    const tsr_matmul_site site = {.device = pass->device, .needs = &pass->needs[adds], .any_strides = any_strides};
    if (to)
        return tsr_gradient_compute(which, &site, from, to, adds);
    const tsr_tensor own = tsr_local_form_tensor(&pass->own[which], NULL, pass->device);
    return tsr_gradient_compute(which, &site, from, &own, adds);
}

size_t tsr_backward_needs_bytes(const tsr_backward *pass, bool adds)
{
    const size_t bytes = tsr_layer_needs_bytes(&pass->needs[false]);
    return adds ? tsr_larger_bytes(bytes, tsr_layer_needs_bytes(&pass->needs[true])) : bytes;
}

tsr_status tsr_backward_compute(const tsr_backward *pass, int which, const tsr_gradient_sources *from,
                                const tsr_tensor *to, bool adds, void *memory, tsr_stream stream)
{
    const tsr_matmul_site site = tsr_layer_site(pass->device, &pass->choice, &pass->needs[adds], memory, stream);
    return tsr_gradient_compute(which, &site, from, to, adds);
}

void tsr_backward_release(tsr_backward *pass)
{
    for (int i = 0; i < TSR_GRADIENTS; i++)
        tsr_local_form_release(&pass->own[i]);
    tsr_local_form_release(&pass->dy);
}

/* On a mesh dim of size 1 a Partial is as Replicate. */
tsr_status tsr_gradient_check_terms(const char *caller, int which, const tsr_layout *to)
{
    const tsr_mesh *const mesh = tsr_layout_mesh(to);
    char name[TSR_LAYER_MESH_DIM_TEXT];
    for (int dim = 0; dim < tsr_mesh_ndim(mesh); dim++) {
        const tsr_placement *p = &tsr_layout_placements(to)[dim];
        if (tsr_mesh_size(mesh, dim) > 1 && p->kind == TSR_PARTIAL && p->op != TSR_SUM && p->op != TSR_AVG)
            return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                                  "%s: %s is P(%s) on mesh dim %s: adding terms does not add what they reduce to; "
                                  "overwrite it, or give it in R",
                                  caller, tsr_gradient_name(which), tsr_reduce_op_name(p->op),
                                  tsr_layer_name_mesh_dim(mesh, dim, name));
    }
    return TSR_OK;
}

tsr_status tsr_gradient_add(const tsr_tensor *more, const tsr_tensor *to, tsr_stream stream)
{
    void *self;
    const tsr_device_table *table = tsr_device_driver_table(to->device.driver, &self);
    const void *const src[] = {to->data, more->data};
    void *const dst[] = {to->data};
    int64_t strides[2][TSR_MAX_DIMS];
    memcpy(strides[0], to->strides, sizeof strides[0]);
    memcpy(strides[1], more->strides, sizeof strides[1]);
    tsr_box_reduce sum = {.dtype = to->dtype,
                          .op = TSR_SUM,
                          .divisor = 1,
                          .ndim = to->ndim,
                          .src_count = 2,
                          .dst_count = 1,
                          .src = src,
                          .src_strides = (const int64_t(*)[TSR_MAX_DIMS])strides,
                          .dst = dst,
                          .dst_strides = (const int64_t(*)[TSR_MAX_DIMS])strides};
    for (int dim = 0; dim < to->ndim; dim++) {
        if (to->shape[dim] == 0)
            return TSR_OK;
        sum.shape[dim] = to->shape[dim];
    }
    return table->reduce(self, to->device.index, &sum, stream);
}
