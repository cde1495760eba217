#include "ops/programs/typed/typed.h"
#include "ops/rows/views_functions.h"

#include <tessera/sys/status.h>

tsr_value tsr_op_concat(tsr_program *program, int count, const tsr_value *x, int dim)
{
    BEGIN("concat");
    TRY(tsr_settings_check_count(caller, count, TSR_OP_MOST_OPERANDS, "x", x));
    tsr_value all[TSR_OP_MOST_OPERANDS];
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++)
        all[i] = i < count ? x[i] : TSR_NONE;
    return tsr_program_apply(program, "concat", DIM, all, NULL);
}

tsr_value tsr_op_stack(tsr_program *program, int count, const tsr_value *x, int dim)
{
    BEGIN("stack");
    TRY(tsr_settings_check_count(caller, count, TSR_OP_MOST_OPERANDS, "x", x));
    tsr_value parts[TSR_OP_MOST_OPERANDS];
    for (int i = 0; i < count; i++)
        parts[i] = tsr_op_unsqueeze(program, x[i], dim);
    return tsr_op_concat(program, count, parts, dim);
}

/* Records the parts of a value. */
static tsr_value split(tsr_program *program, tsr_value x, int dim, int count, const int64_t *sizes, tsr_value *out)
{
    BEGIN("split");
    const tsr_layout *const layout = tsr_value_layout(program, x);
    if (!layout || !out)
        return tsr_program_fail(program,
                                tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s", caller,
                                               layout ? "out is NULL" : "x is not one of the program's values"));
    TRY(tsr_settings_check_sizes(caller, layout, &dim, count, sizes));
    int64_t start = 0;
    for (int i = 0; i < count; i++) {
        out[i] = tsr_op_narrow(program, x, dim, start, sizes[i]);
        start += sizes[i];
    }
    return out[0];
}

void tsr_op_split(tsr_program *program, tsr_value x, int dim, int count, const int64_t *sizes, tsr_value *out)
{
    for (int i = 0; out && i < count; i++)
        out[i] = TSR_NONE;
    (void)split(program, x, dim, count, sizes, out);
}
