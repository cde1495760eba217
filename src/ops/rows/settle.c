/* Layouts of operands under a policy. */
#include "ops/rows/table.h"

#include <tessera/sys/status.h>

#include <string.h>

/* The given layouts, each with a reference of its own. */
static void retain_all(const tsr_op *op, const tsr_layout *const *operands, tsr_layout **out)
{
    memset(out, 0, TSR_OP_MOST_OPERANDS * sizeof *out);
    for (int i = 0; op->operands[i]; i++)
        out[i] = operands[i] ? tsr_layout_retain((tsr_layout *)operands[i]) : NULL;
}

tsr_status tsr_op_settle(const tsr_op *op, size_t count, const tsr_attribute *attributes,
                         const tsr_layout *const *operands, tsr_policy policy, int64_t bytes, tsr_layout **out)
{
    tsr_op_case c;
    tsr_op_inferred inferred;
    if (!op || !operands || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_op_settle: %s is NULL",
                              !op        ? "op"
                              : operands ? "out"
                                         : "operands");
    (void)policy;
    (void)bytes;
    TSR_TRY(tsr_op_begin(op->name, op, count, attributes, operands, &c));
    TSR_TRY(tsr_op_infer(&c, &inferred));
    tsr_op_inferred_clear(&inferred);
    retain_all(op, operands, out);
    return TSR_OK;
}
