#include "ops/rows/groups/norms_checks.h"

#include "ops/kernels/norms/norms.h"
#include "ops/kernels/reduce.h"
#include "ops/rows/rule_text.h"

#include <tessera/sys/status.h>

#include <math.h>
#include <stdio.h>

/* Appends the letters of `count` dims, from `first` on; those that are marked as 1 if `ones` is
 * set, else not at all. `marked` NULL: none is. */
static void append_dims(tsr_rule_text *rule, char first, int count, const bool *marked, bool ones)
{
    for (int dim = 0; dim < count; dim++) {
        const char letter[] = {(char)(first + dim), ' ', '\0'};
        if (!marked || !marked[dim])
            tsr_rule_append(rule, letter);
        else if (ones)
            tsr_rule_append(rule, "1 ");
    }
}

/* Appends that marked dims are exchanged. */
static void append_exchange(tsr_rule_text *rule, char first, int count, const bool *marked)
{
    bool some = false;
    for (int dim = 0; dim < count; dim++) {
        const char letter[] = {(char)(first + dim), ' ', '\0'};
        if (marked && !marked[dim])
            continue;
        tsr_rule_append(rule, some ? "" : "| ");
        tsr_rule_append(rule, letter);
        some = true;
    }
    tsr_rule_append(rule, some ? "exchange " : "");
}

/* Checks that operands are floats of one dtype. */
static tsr_status check_floats(const tsr_op_case *c)
{
    const tsr_dtype dtype = tsr_layout_dtype(c->operands[0]);
    if (dtype != TSR_F64 && dtype != TSR_F32 && dtype != TSR_F16 && dtype != TSR_BF16)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is %s, but %s takes f64, f32, f16, bf16", c->caller,
                              c->op->operands[0], tsr_dtype_name(dtype), c->op->name);
    for (int i = 1; c->op->operands[i]; i++) {
        if (c->operands[i] && tsr_layout_dtype(c->operands[i]) != dtype)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is %s but %s is %s; both must have one dtype, cast one",
                                  c->caller, c->op->operands[0], tsr_dtype_name(dtype), c->op->operands[i],
                                  tsr_dtype_name(tsr_layout_dtype(c->operands[i])));
    }
    return TSR_OK;
}

tsr_status tsr_check_softmax(const tsr_op_case *c, tsr_dtype *results)
{
    const int ndim = tsr_layout_ndim(c->operands[0]);
    TSR_TRY(check_floats(c));
    results[0] = tsr_layout_dtype(c->operands[0]);
    if (tsr_softmax_dim(&c->attributes[0], ndim) >= 0)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: dim is %lld, but must be below %d, the dims of %s, or -1 for the last", c->caller,
                          (long long)c->attributes[0].integer, ndim, c->op->operands[0]);
}

/* The operand whose dims are reduced: x, which a gradient has behind dout. */
static const tsr_layout *reduced_operand(const tsr_op_case *c)
{
    return c->operands[c->op->operands[1] ? 1 : 0];
}

tsr_status tsr_check_norm(const tsr_op_case *c, tsr_dtype *results)
{
    bool marked[TSR_MAX_DIMS];
    const tsr_attribute *const dims = &c->attributes[0], *const p = &c->attributes[2];
    const int ndim = tsr_layout_ndim(reduced_operand(c));
    TSR_TRY(check_floats(c));
    results[0] = tsr_layout_dtype(c->operands[0]);
    if (p->name && tsr_norm_power(p->number) < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: p is %g, but %s has p 1, 2 and infinity", c->caller, p->number,
                              c->op->name);
    if (tsr_reduce_mark(dims->count, dims->list, ndim, marked))
        return TSR_OK;
    char list[128];
    size_t length = 0;
    for (int i = 0; i < dims->count; i++)
        length +=
            (size_t)snprintf(list + length, sizeof list - length, "%s%lld", i ? "," : "", (long long)dims->list[i]);
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: dims are %s, but they must differ and be below %d, the dims of the tensor", c->caller,
                          list, ndim);
}

tsr_status tsr_check_normalized(const tsr_op_case *c, tsr_dtype *results)
{
    const double epsilon = c->attributes[0].number;
    const int64_t dims = c->attributes[1].integer;
    const int ndim = tsr_layout_ndim(c->operands[0]);
    TSR_TRY(check_floats(c));
    for (int i = 0; c->op->results[i]; i++)
        results[i] = tsr_layout_dtype(c->operands[0]);
    if (!(epsilon >= 0) || isinf(epsilon))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: epsilon is %g, but must be 0 or a positive number", c->caller,
                              epsilon);
    if (dims >= 1 && dims <= ndim)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: dims is %lld, but must be from 1 to %d, the dims of %s", c->caller,
                          (long long)dims, ndim, c->op->operands[0]);
}

tsr_status tsr_rule_of_softmax(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT])
{
    tsr_rule_text rule = {text, 0};
    bool marked[TSR_MAX_DIMS] = {false};
    const int ndim = tsr_layout_ndim(c->operands[0]);
    marked[tsr_softmax_dim(&c->attributes[0], ndim)] = true;
    for (int i = 0; c->op->operands[i]; i++) {
        tsr_rule_append(&rule, i ? ", " : "");
        append_dims(&rule, 'a', ndim, NULL, false);
    }
    tsr_rule_append(&rule, "-> ");
    append_dims(&rule, 'a', ndim, NULL, false);
    append_exchange(&rule, 'a', ndim, marked);
    tsr_rule_append(&rule, c->op->operands[1] ? "| linear {0}" : "");
    return TSR_OK;
}

tsr_status tsr_rule_of_norm(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT])
{
    tsr_rule_text rule = {text, 0};
    bool marked[TSR_MAX_DIMS];
    const int ndim = tsr_layout_ndim(c->operands[0]);
    tsr_reduce_mark(c->attributes[0].count, c->attributes[0].list, ndim, marked);
    append_dims(&rule, 'a', ndim, NULL, false);
    tsr_rule_append(&rule, "-> ");
    append_dims(&rule, 'a', ndim, marked, c->attributes[1].integer != 0);
    append_exchange(&rule, 'a', ndim, marked);
    return TSR_OK;
}

tsr_status tsr_rule_of_norm_gradient(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT])
{
    tsr_rule_text rule = {text, 0};
    bool marked[TSR_MAX_DIMS];
    const int ndim = tsr_layout_ndim(c->operands[1]);
    const bool keep = c->attributes[1].integer != 0;
    tsr_reduce_mark(c->attributes[0].count, c->attributes[0].list, ndim, marked);
    append_dims(&rule, 'a', ndim, marked, keep);
    tsr_rule_append(&rule, ", ");
    append_dims(&rule, 'a', ndim, NULL, false);
    tsr_rule_append(&rule, ", ");
    append_dims(&rule, 'a', ndim, marked, keep);
    tsr_rule_append(&rule, "-> ");
    append_dims(&rule, 'a', ndim, NULL, false);
    if (tsr_norm_power(c->attributes[2].number) == 2)
        append_exchange(&rule, 'a', ndim, marked);
    tsr_rule_append(&rule, "| linear {0}");
    return TSR_OK;
}

/* Appends `count` terms of the normalized dims, with leading ones or without. */
static void append_terms(tsr_rule_text *rule, int count, const char *leading, int dims)
{
    for (int i = 0; i < count; i++) {
        tsr_rule_append(rule, i ? ", " : "");
        tsr_rule_append(rule, leading);
        append_dims(rule, 'h', dims, NULL, false);
    }
}

/* A Partial weight passes, with a Partial bias if there is one: without a weight the result has a
 * term beside bias. */
tsr_status tsr_rule_of_normalized(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT])
{
    tsr_rule_text rule = {text, 0};
    const int dims = (int)c->attributes[1].integer;
    const bool has_bias = c->op->operands[2] != NULL;
    append_terms(&rule, 1, "... ", dims);
    tsr_rule_append(&rule, ", ");
    append_terms(&rule, has_bias ? 2 : 1, "", dims);
    tsr_rule_append(&rule, "-> ");
    append_terms(&rule, 1, "... ", dims);
    append_exchange(&rule, 'h', dims, NULL);
    if (c->operands[1])
        tsr_rule_append(&rule, has_bias ? "| linear {1 2}" : "| linear {1}");
    return TSR_OK;
}

tsr_status tsr_rule_of_normalized_gradient(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT])
{
    tsr_rule_text rule = {text, 0};
    const int dims = (int)c->attributes[1].integer;
    append_terms(&rule, 2, "... ", dims);
    tsr_rule_append(&rule, ", ");
    append_terms(&rule, 1, "", dims);
    tsr_rule_append(&rule, "-> ");
    append_terms(&rule, 1, "... ", dims);
    tsr_rule_append(&rule, ", ");
    append_terms(&rule, c->op->results[2] ? 2 : 1, "", dims);
    append_exchange(&rule, 'h', dims, NULL);
    tsr_rule_append(&rule, "| ... sum | linear {0}{2}");
    return TSR_OK;
}
