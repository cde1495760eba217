#include "ops/rows/groups/losses_checks.h"

#include "ops/kernels/losses/losses.h"
#include "ops/rows/checks.h"

#include <tessera/sys/status.h>

#include <stdio.h>

static bool is_float(tsr_dtype dtype)
{
    return dtype == TSR_F64 || dtype == TSR_F32 || dtype == TSR_F16 || dtype == TSR_BF16;
}

tsr_status tsr_check_loss(const tsr_op_case *c, tsr_dtype *results)
{
    const int targets = tsr_loss_place_of(c->op->code)->targets;
    const tsr_dtype dtype = tsr_layout_dtype(c->operands[0]), ids = tsr_layout_dtype(c->operands[targets]);
    const double smoothing = c->attributes[TSR_LOSS_LABEL_SMOOTHING].number;
    if (!is_float(dtype))
        return tsr_refuse_dtype(c, 0, "f64, f32, f16 and bf16");
    if (ids != TSR_I64 && ids != TSR_I32)
        return tsr_refuse_dtype(c, targets, "i64 and i32");
    for (int i = 1; i < targets; i++) {
        if (tsr_layout_dtype(c->operands[i]) != dtype)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is %s but %s is %s; both must have one dtype, cast one",
                                  c->caller, c->op->operands[0], tsr_dtype_name(dtype), c->op->operands[i],
                                  tsr_dtype_name(tsr_layout_dtype(c->operands[i])));
    }
    for (int i = 0; c->op->results[i]; i++)
        results[i] = dtype;
    if (smoothing >= 0 && smoothing <= 1)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: label_smoothing is %g, but must be from 0 to 1", c->caller,
                          smoothing);
}

/* The factors of rows: a letter each, with a space behind it. */
static void write_rows(char *text, size_t capacity, int count)
{
    size_t length = 0;
    text[0] = '\0';
    for (int dim = 0; dim < count; dim++)
        length += (size_t)snprintf(text + length, capacity - length, "%c ", 'a' + dim);
}

tsr_status tsr_rule_of_loss(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT])
{
    const int code = c->op->code, targets = tsr_loss_place_of(code)->targets;
    const bool fused = code == TSR_LINEAR_CROSS_ENTROPY || code == TSR_LINEAR_CROSS_ENTROPY_GRADIENT;
    const bool backward = code == TSR_CROSS_ENTROPY_GRADIENT || code == TSR_LINEAR_CROSS_ENTROPY_GRADIENT;
    const bool each = c->attributes[TSR_LOSS_REDUCTION].integer == TSR_LOSS_NONE;
    const bool counts = tsr_loss_counts(c->attributes);
    const int row_dims = tsr_layout_ndim(c->operands[targets - 1 - fused]) - 1;
    char rows[TSR_MAX_DIMS * 2 + 1], operands[96], results[64], marks[64] = "";
    write_rows(rows, sizeof rows, row_dims);
    const int dout = backward && each && row_dims > 0 ? 2 * row_dims - 1 : 0; /* characters, without the last space */
    const bool sums_rows = backward ? fused : !each && !counts, sums_classes = backward ? fused : sums_rows;
    snprintf(operands, sizeof operands, fused ? "%.*s%s%sk, v k, %s" : "%.*s%s%sv, %s", dout, rows,
             backward ? ", " : "", rows, rows);
    snprintf(results, sizeof results, !backward ? "%s" : fused ? "%sk, v k " : "%sv ", backward || each ? rows : "");
    if (row_dims > 0 && (sums_rows || counts))
        snprintf(marks, sizeof marks, "| %s%s%s", rows, sums_rows ? "sum " : "", counts ? "exchange " : "");
    snprintf(text, TSR_OP_RULE_TEXT, "%s-> %s%s%s| v %sexchange positional%s", operands, results, marks,
             fused ? "| k whole " : "", sums_classes ? "sum " : "", backward ? " | linear {0}" : "");
    return TSR_OK;
}

unsigned tsr_loss_meets(const tsr_op_case *c, int stage, unsigned exchanged)
{
    const tsr_loss_place *const place = tsr_loss_place_of(c->op->code);
    const unsigned classes = exchanged & tsr_loss_cuts(c->operands[place->operand], place->first);
    const bool backward = c->op->code == TSR_CROSS_ENTROPY_GRADIENT || c->op->code == TSR_LINEAR_CROSS_ENTROPY_GRADIENT;
    if (stage == 0)
        return classes;
    return !tsr_loss_counts(c->attributes) ? 0 : backward ? exchanged & ~classes : exchanged;
}
