#include "ops/programs/typed/typed.h"

/* The most operands of einsum. */
#define EINSUM_OPERANDS 4

BINARY(matmul, a, b)
TERNARY(linear, x, w, b)
TERNARY(grouped_matmul, x, w, sizes)

tsr_value tsr_op_linear_q8(tsr_program *program, tsr_value x, tsr_value w, tsr_value scales, tsr_value b)
{
    return tsr_program_apply(program, "linear_q8", NO_ATTRIBUTES, VALUES(x, w, scales, b), NULL);
}

tsr_value tsr_op_einsum(tsr_program *program, const char *equation, int count, const tsr_value *operands)
{
    BEGIN("einsum");
    TRY(tsr_settings_check_count(caller, count, EINSUM_OPERANDS, "operands", operands));
    tsr_value all[EINSUM_OPERANDS];
    for (int i = 0; i < EINSUM_OPERANDS; i++)
        all[i] = i < count ? operands[i] : TSR_NONE;
    return tsr_program_apply(program, "einsum", EQUATION, all, NULL);
}
