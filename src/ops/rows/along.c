#include "ops/rows/along.h"

#include "ops/kernels/norms/norms.h"
#include "ops/kernels/pointwise.h"
#include "ops/rows/checks.h"

#include <tessera/sys/status.h>

#include <string.h>

/* The attribute `dim`, which such rows have. */
static const tsr_attribute *find_dim(const tsr_op_case *c)
{
    int i = 0;
    while (strcmp(c->attributes[i].name, "dim") != 0)
        i++;
    return &c->attributes[i];
}

int tsr_along_dim(const tsr_op_case *c)
{
    return tsr_softmax_dim(find_dim(c), tsr_layout_ndim(c->operands[0]));
}

tsr_status tsr_check_along(const tsr_op_case *c)
{
    TSR_TRY(tsr_check_takes(c, 0, TSR_POINTWISE_ADD));
    if (tsr_along_dim(c) >= 0)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: dim is %lld, but must be below %d, the dims of %s, or -1 for the last", c->caller,
                          (long long)find_dim(c)->integer, tsr_layout_ndim(c->operands[0]), c->op->operands[0]);
}

tsr_status tsr_check_position(const tsr_op_case *c, tsr_dtype *results)
{
    TSR_TRY(tsr_check_along(c));
    const int dim = tsr_along_dim(c);
    results[0] = TSR_I64;
    if (tsr_layout_shape(c->operands[0])[dim] > 0)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: dim is %d, along which %s is empty, so no element is the %s",
                          c->caller, dim, c->op->operands[0],
                          strcmp(c->op->name, "argmax") == 0 ? "largest" : "smallest");
}

tsr_status tsr_rule_along(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT])
{
    const int ndim = tsr_layout_ndim(c->operands[0]), dim = tsr_along_dim(c);
    bool behind = false, in_terms = true;
    for (const char *at = c->op->rule; *at; at++) {
        in_terms = in_terms && *at != '|';
        behind = behind && *at != ',' && *at != '>';
        if (!in_terms || strncmp(at, "...", 3) != 0) {
            *text++ = *at;
            continue;
        }
        for (int i = behind ? dim + 1 : 0; i < (behind ? ndim : dim); i++) {
            *text++ = (char)('a' + i);
            *text++ = ' ';
        }
        behind = true;
        at += 2;
    }
    *text = '\0';
    return TSR_OK;
}
