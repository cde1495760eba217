#include "ops/layer.h"

#include "ops/blas/provider.h"
#include "ops/numbers.h"

#include <tessera/sys/device.h>
#include <tessera/sys/memory.h>

tsr_status tsr_layer_check_devices(const char *caller, const tsr_tensor *const *operands, const char *const *names,
                                   int count)
{
    int first = -1;
    for (int i = 0; i < count; i++) {
        first = first < 0 && operands[i] ? i : first;
        if (operands[i] && !tsr_device_same(operands[first]->device, operands[i]->device))
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "%s: %s and %s are on different devices; both must be on one device", caller,
                                  names[first], names[i]);
    }
    return TSR_OK;
}

size_t tsr_layer_needs_bytes(const tsr_matmul_needs *needs)
{
    return tsr_aligned_bytes(needs->packing) + tsr_aligned_bytes(needs->gemm);
}

tsr_matmul_site tsr_layer_site(tsr_device device, const tsr_choice *choice, const tsr_matmul_needs *needs, void *memory,
                               tsr_stream stream)
{
    return (tsr_matmul_site){.device = device,
                             .stream = stream,
                             .choice = choice,
                             .packing = memory,
                             .workspace = needs->gemm > 0 ? (char *)memory + tsr_aligned_bytes(needs->packing) : NULL,
                             .workspace_bytes = needs->gemm};
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

tsr_status tsr_layer_choose(tsr_context *context, tsr_device device, tsr_choice *out)
{
    *out = (tsr_choice){.count = 0};
    return device.driver ? TSR_OK : tsr_choice_own(context, out);
}
