#include "ops/programs/typed/typed.h"

tsr_value tsr_op_cross_entropy(tsr_program *program, tsr_value logits, tsr_value targets,
                               const tsr_cross_entropy_options *options)
{
    tsr_cross_entropy_options o;
    BEGIN("cross_entropy");
    TRY(tsr_settings_loss(caller, options, &o));
    return tsr_program_apply(program, "cross_entropy", LOSS, VALUES(logits, targets), NULL);
}

tsr_value tsr_op_linear_cross_entropy(tsr_program *program, tsr_value x, tsr_value w, tsr_value targets,
                                      const tsr_cross_entropy_options *options)
{
    tsr_cross_entropy_options o;
    BEGIN("linear_cross_entropy");
    TRY(tsr_settings_loss(caller, options, &o));
    return tsr_program_apply(program, "linear_cross_entropy", LOSS, VALUES(x, w, targets), NULL);
}
