#include "ops/eager/settle.h"

#include <tessera/sys/log.h>
#include <tessera/sys/status.h>

#include <string.h>

/* Tells the log of a move that nobody wrote. */
static void warn(const tsr_op_case *c, int operand, const tsr_layout *to)
{
    char ours[256], theirs[256];
    tsr_context *const context = tsr_mesh_context(tsr_layout_mesh(c->operands[operand]));
    if (tsr_context_policy(context, NULL) != TSR_POLICY_WARN)
        return;
    tsr_layout_print(c->operands[operand], ours, sizeof ours);
    tsr_layout_print(to, theirs, sizeof theirs);
    tsr_log(context, TSR_LOG_WARN, "%s: %s is redistributed from \"%s\" to \"%s\"", c->caller, c->op->operands[operand],
            ours, theirs);
}

tsr_status tsr_eager_settle(const tsr_op_case *c, const tsr_eager_answer *answer, const tsr_dtensor *const *operands,
                            tsr_eager_settled *out)
{
    tsr_status status = TSR_OK;
    memset(out, 0, sizeof *out);
    /* The answer may be gone after the first move. */
    tsr_layout *fitted[TSR_OP_MOST_OPERANDS] = {NULL};
    for (int i = 0; c->op->operands[i]; i++)
        fitted[i] = answer->fitted[i] ? tsr_layout_retain(answer->fitted[i]) : NULL;
    for (int i = 0; c->op->operands[i] && status == TSR_OK; i++) {
        if (!operands[i])
            continue;
        if (!fitted[i]) {
            out->operands[i] = tsr_dtensor_retain((tsr_dtensor *)operands[i]);
            continue;
        }
        warn(c, i, fitted[i]);
        status = tsr_redistribute(operands[i], tsr_layout_placements(fitted[i]), &out->operands[i]);
    }
    for (int i = 0; c->op->operands[i]; i++)
        tsr_layout_destroy(fitted[i]);
    if (status != TSR_OK)
        tsr_eager_settled_clear(out);
    return status;
}

void tsr_eager_settled_clear(tsr_eager_settled *settled)
{
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++) {
        tsr_dtensor_destroy(settled->operands[i]);
        settled->operands[i] = NULL;
    }
}

tsr_status tsr_eager_unsettle(const tsr_dtensor *operand, const tsr_dtensor *settled, tsr_dtensor **gradient)
{
    tsr_layout *wanted;
    tsr_dtensor *moved;
    if (operand == settled)
        return TSR_OK;
    TSR_TRY(tsr_layout_gradient(tsr_dtensor_layout(operand), &wanted));
    const tsr_status status = tsr_redistribute(*gradient, tsr_layout_placements(wanted), &moved);
    tsr_layout_destroy(wanted);
    TSR_TRY(status);
    tsr_dtensor_destroy(*gradient);
    *gradient = moved;
    return TSR_OK;
}
