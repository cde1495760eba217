#include "ops/eager/view.h"

#include <tessera/sys/status.h>

/* Describes the call to the row. */
static tsr_kernel_call describe_call(const tsr_computation *computation, tsr_tensor inputs[TSR_OP_MOST_OPERANDS],
                                     const tsr_layout *const *layout)
{
    const tsr_op_case *const c = computation->c;
    int count = 0;
    for (; c->op->operands[count]; count++)
        inputs[count] = computation->operands[count] ? tsr_dtensor_to_local(computation->operands[count])
                                                     : (tsr_tensor){.ndim = -1};
    return (tsr_kernel_call){.op = c->op->name,
                             .code = c->op->code,
                             .attributes = c->attributes,
                             .kernels = tsr_context_kernels(tsr_mesh_context(computation->mesh)),
                             .input_count = count,
                             .inputs = inputs,
                             .layouts = c->operands,
                             .result_layouts = layout,
                             .coordinate = computation->coordinate,
                             .stage = TSR_STAGE_WHOLE};
}

tsr_status tsr_eager_view(const tsr_computation *computation, const tsr_layout *layout, tsr_dtensor **out)
{
    tsr_tensor inputs[TSR_OP_MOST_OPERANDS];
    const tsr_dtensor *const parent = computation->operands[0];
    tsr_tensor local = tsr_dtensor_to_local(parent);
    bool fits = true;
    if (computation->inside) {
        const tsr_kernel_call call = describe_call(computation, inputs, &layout);
        local.ndim = tsr_layout_ndim(layout);
        TSR_TRY(tsr_layout_local(layout, computation->coordinate, local.shape, NULL));
        TSR_TRY(computation->c->op->view(&call, &local, &fits));
    }
    *out = NULL;
    return fits ? tsr_dtensor_view(parent, &local, layout, out) : TSR_OK;
}
