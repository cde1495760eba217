#include "ops/layer.h"

#include "ops/gemm.h"
#include <tessera/sys/memory.h>

tsr_status tsr_layer_forward(const tsr_matmul_site *site, const tsr_tensor *x, const tsr_tensor *w, const tsr_tensor *b,
                             const tsr_tensor *y)
{
    const tsr_row_blocks blocks = tsr_row_blocks_of(x, y);
    const tsr_matrix transposed_w = tsr_matrix_transpose(tsr_matrix_of(w));
    for (int64_t i = 0; i < blocks.count; i++) {
        tsr_matrix x_rows, y_rows;
        tsr_row_blocks_get(&blocks, i, &x_rows, &y_rows);
        if (b) {
            /* The product is added to the bias, which costs less than the other way round: y is written first anyway. */
            tsr_matrix bias = tsr_matrix_of(b);
            bias.row_stride = 0;
            TSR_TRY(tsr_matrix_copy(site, bias, y_rows));
        }
        TSR_TRY(tsr_matmul(site, x_rows, transposed_w, y_rows, b != NULL));
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

tsr_status tsr_layer_check_devices(const char *caller, const tsr_tensor *const *operands, const char *const *names, int count)
{
    for (int i = 1; i < count; i++) {
        if (operands[i] && !same_device(operands[0]->device, operands[i]->device))
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s and %s are on different devices; both must be on one", caller, names[0],
                                  names[i]);
    }
    return tsr_gemm_supported(caller, operands[0]->device, operands[0]->dtype);
}

/* Host memory is the context's, other memory the device's. */
tsr_status tsr_layer_workspace_create(tsr_context *context, tsr_device device, size_t bytes, void **out)
{
    if (!device.driver && bytes > 0)
        return tsr_allocate(context, bytes, out);
    *out = NULL;
    if (bytes == 0)
        return TSR_OK;
    void *self;
    const tsr_device_table *table = tsr_device_driver_table(device.driver, &self);
    return table->alloc(self, device.index, bytes, NULL, out);
}

void tsr_layer_workspace_destroy(tsr_context *context, tsr_device device, void *workspace, size_t bytes)
{
    if (!device.driver)
        tsr_release(context, workspace);
    if (!device.driver || !workspace)
        return;
    void *self;
    const tsr_device_table *table = tsr_device_driver_table(device.driver, &self);
    table->free(self, device.index, workspace, bytes, NULL);
}
