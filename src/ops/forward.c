#include "ops/forward.h"

#include "ops/layer.h"
#include "ops/layer_cache.h"

tsr_status tsr_forward_begin(const char *caller, const tsr_layout *x, const tsr_layout *w, const tsr_layout *b,
                             tsr_forward *pass)
{
    tsr_layout *own;
    TSR_TRY(tsr_layer_recall_y(caller, x, w, b, &own));
    return tsr_local_form_take(own, &pass->own);
}

bool tsr_forward_adds_bias(const tsr_layout *own, const int64_t *coordinate)
{
    bool adds = true;
    for (int dim = 0; adds && dim < tsr_mesh_ndim(tsr_layout_mesh(own)); dim++) {
        const tsr_placement *p = &tsr_layout_placements(own)[dim];
        adds = p->kind != TSR_PARTIAL || p->op != TSR_SUM || coordinate[dim] == 0;
    }
    return adds;
}

tsr_status tsr_forward_place(const char *caller, const tsr_layout *x, const tsr_layout *w, const tsr_layout *b,
                             tsr_device device, tsr_forward *pass)
{
    const tsr_layout *const own = pass->own.layout;
    const tsr_gemm product = {.size = sizeof product,
                              .a_dtype = tsr_layout_dtype(x),
                              .b_dtype = tsr_layout_dtype(w),
                              .c_dtype = tsr_layout_dtype(own),
                              .bias_dtype = tsr_layout_dtype(b ? b : own),
                              .bias = b};
    int64_t coordinate[TSR_MAX_DIMS];
    int inside;
    pass->device = device;
    TSR_TRY(tsr_layer_choose(tsr_mesh_context(tsr_layout_mesh(own)), device, &pass->choice));
    TSR_TRY(tsr_gemm_supported(caller, device, &product));
    TSR_TRY(tsr_mesh_coordinate(tsr_layout_mesh(own), coordinate, &inside));
    pass->inside = inside;
    pass->adds_bias = b && inside && tsr_forward_adds_bias(own, coordinate);
    return TSR_OK;
}

tsr_status tsr_forward_multiply(const tsr_matmul_site *site, const tsr_tensor *x, const tsr_tensor *w,
                                const tsr_tensor *b, const tsr_tensor *y)
{
    const tsr_row_blocks blocks = tsr_row_blocks_of(x, y);
    const tsr_matrix transposed_w = tsr_matrix_transpose(tsr_matrix_of(w));
    for (int64_t i = 0; i < tsr_row_blocks_visited(&blocks, site); i++) {
        tsr_matrix x_rows, y_rows;
        tsr_row_blocks_get(&blocks, i, &x_rows, &y_rows);
        TSR_TRY(b ? tsr_matrix_multiply_biased(site, x_rows, transposed_w, tsr_matrix_of(b), y_rows)
                  : tsr_matrix_multiply(site, x_rows, transposed_w, y_rows, false));
    }
    return TSR_OK;
}

tsr_status tsr_forward_measure(tsr_forward *pass, const tsr_tensor *x, const tsr_tensor *w, const tsr_tensor *b,
                               bool any_strides)
{
    if (!pass->inside)
        return TSR_OK;
    const tsr_matmul_site site = {.device = pass->device, .needs = &pass->needs, .any_strides = any_strides};
    const tsr_tensor own = tsr_local_form_tensor(&pass->own, NULL, pass->device);
    return tsr_forward_multiply(&site, x, w, pass->adds_bias ? b : NULL, &own);
}

tsr_status tsr_forward_compute(const tsr_forward *pass, const tsr_tensor *x, const tsr_tensor *w, const tsr_tensor *b,
                               const tsr_tensor *own, void *memory, tsr_stream stream)
{
    const tsr_matmul_site site = tsr_layer_site(pass->device, &pass->choice, &pass->needs, memory, stream);
    return tsr_forward_multiply(&site, x, w, pass->adds_bias ? b : NULL, own);
}

void tsr_forward_release(tsr_forward *pass)
{
    tsr_local_form_release(&pass->own);
}
