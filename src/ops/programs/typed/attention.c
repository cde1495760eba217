#include "ops/programs/typed/typed.h"

tsr_value tsr_op_attention(tsr_program *program, tsr_value q, tsr_value k, tsr_value v, tsr_value mask,
                           const tsr_attention_options *options)
{
    tsr_attention_options o;
    BEGIN("attention");
    TRY(tsr_settings_attention(caller, options, &o));
    return tsr_program_apply(program, "attention", ATTENTION, VALUES(q, k, v, mask), NULL);
}

tsr_value tsr_op_rope(tsr_program *program, tsr_value x, tsr_value positions, const tsr_rope_options *options)
{
    tsr_rope_options o;
    BEGIN("rope");
    TRY(tsr_settings_rope(caller, options, &o));
    return tsr_program_apply(program, "rope", ROPE, VALUES(x, positions), NULL);
}
