#include "ops/rows/groups/mixture_checks.h"

#include "ops/kernels/mixture/combine.h"
#include "ops/kernels/mixture/slots.h"
#include "ops/rows/checks.h"
#include "ops/rows/groups/products_checks.h"

#include <tessera/sys/status.h>

#include <stdio.h>

/* The operand x of experts or its gradient; ids, gate_up and down are behind it. */
static int first_of(const tsr_op_case *c)
{
    return c->op->code;
}

/* The size of a dim; -1: the operand has another number of dims than the rule says. */
static int64_t size_of(const tsr_op_case *c, int operand, int ndim, int dim)
{
    const tsr_layout *const layout = c->operands[operand];
    return tsr_layout_ndim(layout) == ndim ? tsr_layout_shape(layout)[dim] : -1;
}

/* gate_up has a gate and an up for each hidden value that down reads. */
static tsr_status check_halves(const tsr_op_case *c)
{
    const int64_t both = size_of(c, first_of(c) + 2, 3, 1), inner = size_of(c, first_of(c) + 3, 3, 2);
    if (both < 0 || inner < 0 || (both == 2 * inner && inner > 0))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: gate_up has %lld rows and down %lld columns, but each of 1 column or more has a row of "
                          "gates and, behind all gates, one of ups",
                          c->caller, (long long)both, (long long)inner);
}

static tsr_status check_attributes(const tsr_op_case *c)
{
    const int64_t length = size_of(c, first_of(c), 2, 1), made = size_of(c, first_of(c) + 3, 3, 1);
    if (c->attributes[TSR_MIXTURE_CAPACITY].integer < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: capacity is %lld, but must be 0, for no limit, or more",
                              c->caller, (long long)c->attributes[TSR_MIXTURE_CAPACITY].integer);
    if (c->attributes[TSR_MIXTURE_BEYOND].integer != TSR_MIXTURE_IDENTITY || length < 0 || made < 0 || length == made)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: beyond is \"identity\", but tokens of x have %lld elements, and down makes %lld",
                          c->caller, (long long)length, (long long)made);
}

tsr_status tsr_check_experts(const tsr_op_case *c, tsr_dtype *results)
{
    const int x = first_of(c);
    const tsr_dtype ids = tsr_layout_dtype(c->operands[x + 1]);
    TSR_TRY(tsr_check_floats(c, 1u << (x + 1), &results[0]));
    if (ids != TSR_I64 && ids != TSR_I32)
        return tsr_refuse_dtype(c, x + 1, "i64 and i32");
    if (x > 0) {
        results[0] = tsr_layout_dtype(c->operands[x]);
        results[1] = tsr_layout_dtype(c->operands[x + 2]);
        results[2] = tsr_layout_dtype(c->operands[x + 3]);
    }
    TSR_TRY(check_halves(c));
    return check_attributes(c);
}

tsr_status tsr_rule_of_experts(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT])
{
    const bool capacity = c->attributes[TSR_MIXTURE_CAPACITY].integer > 0,
               passes = c->attributes[TSR_MIXTURE_BEYOND].integer == TSR_MIXTURE_IDENTITY;
    const char h = passes ? 'k' : 'h', *const whole = capacity ? "k u t s" : "k u";
    if (first_of(c) == 0)
        snprintf(text, TSR_OP_RULE_TEXT, "t k, t s, e (u i) k, e %c i -> t s %c | %s whole | e sum positional | i sum",
                 h, h, whole);
    else
        snprintf(text, TSR_OP_RULE_TEXT,
                 "t s %c, t k, t s, e (u i) k, e %c i -> t k, e (u i) k, e %c i | %s whole%s%s | e sum positional | "
                 "i sum | linear {0}",
                 h, h, h, whole, capacity ? "" : " | t s sum", passes ? "" : " | h sum");
    return TSR_OK;
}

tsr_status tsr_check_combine(const tsr_op_case *c, tsr_dtype *results)
{
    TSR_TRY(tsr_check_floats(c, 0, &results[0]));
    if (c->op->code != TSR_COMBINE)
        return tsr_take_dtype(c, results);
    results[0] = tsr_layout_dtype(c->operands[0]);
    return TSR_OK;
}
