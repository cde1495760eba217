#include "ops/eager/launch.h"

#include <tessera/sys/device.h>
#include <tessera/sys/status.h>

static const char *name_of(tsr_device device)
{
    void *self;
    return tsr_device_driver_table(device.driver, &self)->name;
}

tsr_status tsr_eager_refuse_device(const tsr_op_case *c, tsr_device device)
{
    const char *const name = name_of(device);
    return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                          "%s: device \"%s\" has no kernel of %s for these dtypes, shapes and attributes; copy the "
                          "operands to the host, where every op runs",
                          c->caller, name, c->op->name);
}

/* Allocates the workspace in the order of the default stream, so that it is freed in that order. */
static tsr_status launch_with(const tsr_device_table *table, void *self, int index, const tsr_kernel_call *call,
                              size_t bytes)
{
    tsr_kernel_call launched = *call;
    if (bytes > 0)
        TSR_TRY(table->alloc(self, index, bytes, table->default_stream, &launched.workspace));
    const tsr_status status = table->launch(self, index, &launched, NULL);
    if (bytes > 0)
        table->free(self, index, launched.workspace, bytes, table->default_stream);
    return status;
}

tsr_status tsr_eager_launch(const tsr_op_case *c, tsr_device device, const tsr_kernel_call *call)
{
    void *self;
    int64_t bytes = 0;
    const tsr_device_table *const table = tsr_device_driver_table(device.driver, &self);
    tsr_kernel_call asked = *call;
    asked.query = &bytes;
    const tsr_status status = table->launch ? table->launch(self, device.index, &asked, NULL) : TSR_ERROR_UNSUPPORTED;
    if (status == TSR_ERROR_UNSUPPORTED)
        return tsr_eager_refuse_device(c, device);
    TSR_TRY(status);
    return launch_with(table, self, device.index, call, (size_t)bytes);
}
