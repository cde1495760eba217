#include "ops/programs/devices/enqueue.h"

#include "ops/eager/exchange.h"

#include <tessera/sys/device.h>

#include <string.h>

static const char *name_of(const tsr_executable *x)
{
    void *self;
    return tsr_device_driver_table(x->device.driver, &self)->name;
}

/* The call as a device's table takes it: it finds kernels by the row's name. */
static tsr_kernel_call as_launched(const tsr_step *step, const tsr_kernel_call *call)
{
    tsr_kernel_call launched = *call;
    launched.op = step->c.op->name;
    return launched;
}

tsr_status tsr_executable_find_way(const tsr_executable *x, tsr_step *step, size_t *bytes)
{
    tsr_tensor outputs[TSR_OP_MOST_RESULTS];
    tsr_launch launch;
    tsr_kernel_call call = as_launched(step, &step->call);
    *bytes = 0;
    if (step->exchanged)
        return tsr_status_set(
            TSR_ERROR_UNSUPPORTED,
            "%s: a factor of the rule \"%s\" is cut, so ranks must exchange inside the op, which runs "
            "on the host alone; on device \"%s\" redistribute the operand so that this factor is whole",
            step->caller, step->c.op->rule, name_of(x));
    if (x->stands_in) {
        memcpy(outputs, step->outputs, sizeof outputs);
        for (int i = 0; i < TSR_OP_MOST_RESULTS; i++)
            outputs[i].data = NULL;
        call.outputs = outputs;
    }
    TSR_TRY(tsr_launch_find(step->caller, step->c.op, x->device, &call, &launch));
    step->way = launch.way;
    *bytes = (size_t)launch.bytes;
    return TSR_OK;
}

tsr_status tsr_executable_find_scratch(const tsr_executable *x, tsr_step *step, size_t *bytes)
{
    if (!x->device.driver) {
        *bytes = tsr_exchange_scratch(&step->c, step->exchanged, &step->call);
        return TSR_OK;
    }
    const tsr_status status = tsr_executable_find_way(x, step, bytes);
    return status == TSR_ERROR_UNSUPPORTED && x->stands_in ? TSR_OK : status;
}

tsr_status tsr_executable_call(const tsr_executable *x, const tsr_step *step, const tsr_kernel_call *call,
                               tsr_stream stream)
{
    if (!x->device.driver)
        return step->c.op->host(call);
    if (step->kind != TSR_DOES_KERNEL)
        return tsr_launch_copy(&call->inputs[0], &call->outputs[0], x->device, stream);
    const tsr_kernel_call launched = as_launched(step, call);
    return tsr_launch_enqueue(step->c.op, step->way, x->device, &launched, stream);
}
