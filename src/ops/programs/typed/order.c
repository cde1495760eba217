#include "ops/programs/typed/typed.h"

UNARY_WITH(cumsum, "cumsum", DIM_SETTING, DIM)

/* Records an op of values and indices. */
static tsr_value record_pair(tsr_program *program, const char *op, size_t count, const tsr_attribute *attributes,
                             tsr_value x, tsr_value *indices)
{
    tsr_value made[TSR_OP_MOST_RESULTS];
    const tsr_value values = tsr_program_apply(program, op, count, attributes, &x, made);
    if (indices)
        *indices = made[1];
    return values;
}

tsr_value tsr_op_sort(tsr_program *program, tsr_value x SORT_SETTING, tsr_value *indices)
{
    return record_pair(program, "sort", SORT, x, indices);
}

tsr_value tsr_op_argsort(tsr_program *program, tsr_value x SORT_SETTING)
{
    tsr_value indices;
    (void)record_pair(program, "sort", SORT, x, &indices);
    return indices;
}

tsr_value tsr_op_topk(tsr_program *program, tsr_value x TOP_SETTING, tsr_value *indices)
{
    return record_pair(program, "topk", TOP, x, indices);
}
