#include "ops/eager/typed/typed.h"

#include <tessera/mixture.h>
#include <tessera/sys/status.h>

BINARY(combine, y, weights)

tsr_status tsr_expert_mlp(const tsr_dtensor *x, const tsr_dtensor *ids, const tsr_dtensor *gate_up,
                          const tsr_dtensor *down, const tsr_expert_mlp_options *options, tsr_dtensor **out)
{
    tsr_expert_mlp_options o;
    TSR_TRY(tsr_settings_experts("tsr_expert_mlp", options, &o));
    return tsr_eager_run("tsr_expert_mlp", row_by("experts", x), EXPERTS, OPERANDS(x, ids, gate_up, down), out);
}

tsr_status tsr_expert_mlp_into(const tsr_dtensor *x, const tsr_dtensor *ids, const tsr_dtensor *gate_up,
                               const tsr_dtensor *down, const tsr_expert_mlp_options *options, tsr_dtensor *out)
{
    tsr_expert_mlp_options o;
    TSR_TRY(tsr_settings_experts("tsr_expert_mlp_into", options, &o));
    return tsr_eager_run_into("tsr_expert_mlp_into", row_by("experts", x), EXPERTS, OPERANDS(x, ids, gate_up, down),
                              &out);
}

tsr_status tsr_expert_mlp_backward(const tsr_dtensor *x, const tsr_dtensor *ids, const tsr_dtensor *gate_up,
                                   const tsr_dtensor *down, const tsr_expert_mlp_options *options,
                                   const tsr_dtensor *dout, tsr_dtensor **dx, tsr_dtensor **dgate_up,
                                   tsr_dtensor **ddown)
{
    tsr_expert_mlp_options o;
    TSR_TRY(tsr_settings_experts("tsr_expert_mlp_backward", options, &o));
    return tsr_eager_backward("tsr_expert_mlp_backward", row_by("experts", x), EXPERTS, OPERANDS(x, ids, gate_up, down),
                              dout, WANTED(dx, NULL, dgate_up, ddown));
}
