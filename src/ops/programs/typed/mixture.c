#include "ops/programs/typed/typed.h"

BINARY(combine, y, weights)

tsr_value tsr_op_experts(tsr_program *program, tsr_value x, tsr_value ids, tsr_value gate_up, tsr_value down,
                         const tsr_expert_mlp_options *options)
{
    tsr_expert_mlp_options o;
    BEGIN("experts");
    TRY(tsr_settings_experts(caller, options, &o));
    return tsr_program_apply(program, "experts", EXPERTS, VALUES(x, ids, gate_up, down), NULL);
}
