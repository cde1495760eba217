#include "ops/layer.h"

#include "ops/agreement.h"
#include "ops/blas/provider.h"
#include "ops/numbers.h"
#include "ops/rule.h"

#include <tessera/sys/memory.h>

#define WEIGHT_FORM "a weight is (out_features, in_features)"

static const tsr_rule product_rule = {"linear: b k, o k -> b o", {"x", "w"}, 1, WEIGHT_FORM};
static const tsr_rule biased_rule = {"linear: b k, o k + o -> b o", {"x", "w", "b"}, 1, WEIGHT_FORM};

tsr_status tsr_layer_propagate(const char *caller, const tsr_layout *x, const tsr_layout *w, const tsr_layout *b,
                               tsr_layout **y)
{
    const tsr_layout *const operands[] = {x, w, b};
    return tsr_rule_apply(caller, b ? &biased_rule : &product_rule, operands, NULL, y);
}

tsr_status tsr_layer_forward(const tsr_matmul_site *site, const tsr_tensor *x, const tsr_tensor *w, const tsr_tensor *b,
                             const tsr_tensor *y)
{
    const tsr_row_blocks blocks = tsr_row_blocks_of(x, y);
    const tsr_matrix transposed_w = tsr_matrix_transpose(tsr_matrix_of(w));
    for (int64_t i = 0; i < tsr_row_blocks_visited(&blocks, site); i++) {
        tsr_matrix x_rows, y_rows;
        tsr_row_blocks_get(&blocks, i, &x_rows, &y_rows);
        TSR_TRY(b ? tsr_matmul_biased(site, x_rows, transposed_w, tsr_matrix_of(b), y_rows)
                  : tsr_matmul(site, x_rows, transposed_w, y_rows, false));
    }
    return TSR_OK;
}

tsr_status tsr_layer_adds_bias(const tsr_layout *own, bool *adds)
{
    const tsr_mesh *mesh = tsr_layout_mesh(own);
    int64_t coordinate[TSR_MAX_DIMS];
    int inside;
    TSR_TRY(tsr_mesh_coordinate(mesh, coordinate, &inside));
    *adds = inside;
    for (int dim = 0; *adds && dim < tsr_mesh_ndim(mesh); dim++) {
        const tsr_placement *p = &tsr_layout_placements(own)[dim];
        *adds = p->kind != TSR_PARTIAL || p->op != TSR_SUM || coordinate[dim] == 0;
    }
    return TSR_OK;
}

static bool same_device(tsr_device a, tsr_device b)
{
    return a.driver == b.driver && a.index == b.index;
}

tsr_status tsr_layer_check_devices(const char *caller, const tsr_tensor *const *operands, const char *const *names,
                                   int count)
{
    int first = -1;
    for (int i = 0; i < count; i++) {
        first = first < 0 && operands[i] ? i : first;
        if (operands[i] && !same_device(operands[first]->device, operands[i]->device))
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "%s: %s and %s are on different devices; both must be on one device", caller,
                                  names[first], names[i]);
    }
    return TSR_OK;
}

tsr_status tsr_layer_check_products(const char *caller, tsr_device device, const tsr_layout *x, const tsr_layout *w,
                                    const tsr_layout *b, const tsr_layout *y)
{
    const tsr_gemm product = {.size = sizeof product,
                              .a_dtype = tsr_layout_dtype(x),
                              .b_dtype = tsr_layout_dtype(w),
                              .c_dtype = tsr_layout_dtype(y),
                              .bias_dtype = tsr_layout_dtype(b ? b : y),
                              .bias = b};
    return tsr_gemm_supported(caller, device, &product);
}

tsr_matmul_site tsr_layer_site(tsr_device device, const tsr_choice *choice, tsr_stream stream)
{
    return (tsr_matmul_site){.device = device, .stream = stream, .choice = choice};
}

tsr_status tsr_layer_check_runs(const char *caller, const tsr_layout *x)
{
    if (tsr_mesh_comm(tsr_layout_mesh(x)))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: x is on an abstract mesh; a layer that runs needs a mesh over a communicator", caller);
}

tsr_status tsr_layer_plan_move(const char *caller, const tsr_layout *from, const tsr_layout *to, tsr_plan **out)
{
    *out = NULL;
    if (tsr_layout_equal(from, to))
        return TSR_OK;
    const tsr_status status = tsr_plan_create(from, to, NULL, out);
    return status == TSR_OK ? TSR_OK : tsr_status_set(status, "%s: %s", caller, tsr_status_message());
}

tsr_status tsr_layer_check_stream(const char *caller, tsr_device device, tsr_stream stream)
{
    if (device.driver || !stream)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: stream is %p, but the host has one stream, NULL", caller, stream);
}

tsr_status tsr_layer_check_workspace(const char *caller, const void *workspace, size_t bytes, size_t wanted)
{
    if (bytes >= wanted && (workspace || wanted == 0))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: workspace %p of %zu bytes; the plan wants %zu bytes", caller,
                          workspace, bytes, wanted);
}

size_t tsr_layer_needs_bytes(const tsr_matmul_needs *needs)
{
    return tsr_aligned_bytes(needs->packing) + tsr_aligned_bytes(needs->gemm);
}

void tsr_layer_place(tsr_matmul_site *site, const tsr_matmul_needs *needs, void *memory)
{
    const size_t packing = tsr_aligned_bytes(needs->packing);
    site->packing = memory;
    site->workspace = needs->gemm > 0 ? (char *)memory + packing : NULL;
    site->workspace_bytes = needs->gemm;
}

/* Host memory comes from the context, other memory from the device. */
tsr_status tsr_layer_workspace_create(tsr_context *context, tsr_device device, size_t bytes, void **out)
{
    if (!device.driver && bytes > 0)
        return tsr_allocate_data(context, bytes, out);
    *out = NULL;
    if (bytes == 0)
        return TSR_OK;
    void *self;
    const tsr_device_table *table = tsr_device_driver_table(device.driver, &self);
    return table->alloc(self, device.index, bytes, table->default_stream, out);
}

void tsr_layer_workspace_destroy(tsr_context *context, tsr_device device, void *workspace, size_t bytes)
{
    if (!device.driver)
        tsr_release(context, workspace);
    if (!device.driver || !workspace)
        return;
    void *self;
    const tsr_device_table *table = tsr_device_driver_table(device.driver, &self);
    table->free(self, device.index, workspace, bytes, table->default_stream);
}

/* On a rank outside the mesh the local tensor has one dim of size 0. */
tsr_status tsr_layer_borrow(const tsr_layout *layout, tsr_device device, void *memory, tsr_dtensor **out)
{
    int64_t coordinate[TSR_MAX_DIMS], shape[TSR_MAX_DIMS] = {0};
    int inside;
    TSR_TRY(tsr_mesh_coordinate(tsr_layout_mesh(layout), coordinate, &inside));
    if (inside)
        TSR_TRY(tsr_layout_local(layout, coordinate, shape, NULL));
    tsr_tensor local =
        tsr_tensor_contiguous(memory, tsr_layout_dtype(layout), inside ? tsr_layout_ndim(layout) : 1, shape);
    local.device = device;
    return tsr_dtensor_from_local(&local, layout, NULL, out);
}

/* The source is NULL, which fails; the destination is an invalid tensor (ndim -1) that only tells
 * the device, on which it depends whether peers are told at all. */
tsr_status tsr_layer_take_part(const tsr_plan *move, tsr_comm *comm, tsr_device device, tsr_status status,
                               tsr_stream stream)
{
    const tsr_tensor none = {.ndim = -1, .device = device};
    tsr_kept_sentence kept;
    tsr_status_keep(&kept);
    tsr_plan_execute(move, comm, NULL, &none, NULL, 0, stream);
    return tsr_status_restore(&kept, status);
}

tsr_status tsr_layer_choose(tsr_context *context, tsr_device device, tsr_choice *out)
{
    *out = (tsr_choice){.count = 0};
    return device.driver ? TSR_OK : tsr_choice_own(context, out);
}
