#include "ops/eager/compute.h"

#include "ops/eager/exchange.h"
#include "ops/eager/launch.h"

#include <tessera/sys/device.h>
#include <tessera/sys/dtensor.h>
#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

/* A call that is computed on this rank. */
typedef struct computing {
    const tsr_computation *given;
    tsr_context *context;
    void *scratch; /* allocated, or NULL */
    tsr_kernel_call call;
} computing;

/* Allocates the kernel's workspace, and the records of an exchange. */
static tsr_status allocate_scratch(computing *k)
{
    const size_t bytes = tsr_exchange_scratch(k->given->c, k->given->exchanged, &k->call);
    if (bytes == 0)
        return TSR_OK;
    TSR_TRY(tsr_allocate_data(k->context, bytes, &k->scratch));
    k->call.workspace = k->scratch;
    return TSR_OK;
}

static tsr_status run_exchange(computing *k, tsr_status local)
{
    const tsr_exchange x = {.c = k->given->c,
                            .mesh = k->given->mesh,
                            .exchanged = k->given->exchanged,
                            .coordinate = k->given->coordinate,
                            .number = tsr_exchange_number(k->given->c),
                            .call = &k->call};
    return tsr_exchange_run(&x, local == TSR_OK ? k->scratch : NULL, local);
}

static tsr_status run_kernel(computing *k, tsr_status local)
{
    const bool on_host = !k->given->device.driver;
    k->call.stage = TSR_STAGE_WHOLE;
    if (local == TSR_OK && on_host)
        local = allocate_scratch(k);
    if (k->given->exchanged)
        return run_exchange(k, local);
    if (!on_host)
        return local == TSR_OK ? tsr_eager_launch(k->given->c, k->given->device, &k->call) : local;
    return local == TSR_OK ? k->given->c->op->host(&k->call) : local;
}

/* Lists the local tensors, and what the kernel is told of them. */
static void list_tensors(const tsr_computation *given, tsr_tensor *inputs, tsr_tensor *outputs,
                         const tsr_layout **layouts, tsr_kernel_call *call)
{
    const tsr_op *const op = given->c->op;
    for (int i = 0; op->operands[i]; i++, call->input_count++) {
        if (given->operands[i])
            inputs[i] = tsr_dtensor_to_local(given->operands[i]);
        else
            inputs[i] = (tsr_tensor){.ndim = -1};
    }
    for (int i = 0; op->results[i]; i++, call->output_count++) {
        layouts[i] = tsr_dtensor_layout(given->results[i]);
        outputs[i] = tsr_dtensor_to_local(given->results[i]);
    }
    call->inputs = inputs;
    call->outputs = outputs;
    call->result_layouts = layouts;
}

/* Records lie on the host, where no kernel of a device finds them. */
static tsr_status refuse_exchange(const tsr_computation *given)
{
    void *self;
    return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                          "%s: a factor of the rule \"%s\" is cut, so ranks must exchange inside the op, which runs on "
                          "the host alone; on device \"%s\" redistribute the operand so that this factor is whole",
                          given->c->caller, given->c->op->rule,
                          tsr_device_driver_table(given->device.driver, &self)->name);
}

/* Redistributes the first operand. A rank that has failed tells its peers. */
static tsr_status move(const tsr_computation *given, tsr_status local)
{
    tsr_kept_sentence kept;
    tsr_placement placements[TSR_MAX_DIMS];
    if (local == TSR_OK)
        return tsr_redistribute_into(given->operands[0], given->results[0], NULL);
    tsr_status_keep_returned(&kept, local);
    const bool known = given->c->op->moves_to(given->c, placements) == TSR_OK;
    tsr_status_restore(&kept, local);
    return tsr_redistribute_failed(given->operands[0], known ? placements : NULL, local);
}

tsr_status tsr_eager_compute(const tsr_computation *given, tsr_status local)
{
    tsr_tensor inputs[TSR_OP_MOST_OPERANDS], outputs[TSR_OP_MOST_RESULTS];
    const tsr_layout *layouts[TSR_OP_MOST_RESULTS];
    if (given->c->op->moves_to)
        return move(given, local);
    if (local != TSR_OK && !given->exchanged)
        return local;
    computing k = {.given = given, .context = tsr_mesh_context(given->mesh)};
    if (!given->inside)
        return given->exchanged ? tsr_exchange_attend(given->c, given->mesh, given->exchanged, local) : local;
    k.call.op = given->c->op->name;
    k.call.code = given->c->op->code;
    k.call.attributes = given->c->attributes;
    k.call.kernels = tsr_context_kernels(k.context);
    k.call.choices = tsr_comm_kernel_choices(tsr_mesh_comm(given->mesh));
    k.call.layouts = given->c->operands;
    k.call.coordinate = given->coordinate;
    if (local == TSR_OK && given->device.driver && given->exchanged)
        local = refuse_exchange(given);
    if (local == TSR_OK)
        list_tensors(given, inputs, outputs, layouts, &k.call);
    const tsr_status status = run_kernel(&k, local);
    tsr_release(k.context, k.scratch);
    return status;
}
