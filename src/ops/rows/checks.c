#include "ops/rows/checks.h"

#include "ops/kernels/pointwise.h"
#include "ops/kernels/reduce.h"
#include "ops/rows/rule_text.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

/* Bytes for a list of dtypes. */
#define TEXT 128

static const char *list_dtypes(int code, char text[TEXT])
{
    size_t length = 0;
    text[0] = '\0';
    for (int dtype = 1; dtype < TSR_DTYPE_END; dtype++) {
        if (tsr_pointwise_takes(code, (tsr_dtype)dtype))
            length += (size_t)snprintf(text + length, TEXT - length, "%s%s", length ? ", " : "",
                                       tsr_dtype_name((tsr_dtype)dtype));
    }
    return text;
}

tsr_status tsr_refuse_dtype(const tsr_op_case *c, int operand, const char *taken)
{
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is %s, but %s takes %s", c->caller, c->op->operands[operand],
                          tsr_dtype_name(tsr_layout_dtype(c->operands[operand])), c->op->name, taken);
}

tsr_status tsr_check_takes(const tsr_op_case *c, int operand, int code)
{
    char taken[TEXT];
    if (tsr_pointwise_takes(code, tsr_layout_dtype(c->operands[operand])))
        return TSR_OK;
    return tsr_refuse_dtype(c, operand, list_dtypes(code, taken));
}

/* Checks that operands from `first` on have one dtype. */
static tsr_status check_one_dtype(const tsr_op_case *c, int first)
{
    const tsr_dtype dtype = tsr_layout_dtype(c->operands[first]);
    for (int i = first + 1; c->op->operands[i]; i++) {
        if (tsr_layout_dtype(c->operands[i]) != dtype)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is %s but %s is %s; both must have one dtype, cast one",
                                  c->caller, c->op->operands[first], tsr_dtype_name(dtype), c->op->operands[i],
                                  tsr_dtype_name(tsr_layout_dtype(c->operands[i])));
    }
    return TSR_OK;
}

static tsr_status check_from(const tsr_op_case *c, int first, tsr_dtype *results)
{
    results[0] = tsr_layout_dtype(c->operands[first]);
    TSR_TRY(tsr_check_takes(c, first, c->op->code));
    return check_one_dtype(c, first);
}

tsr_status tsr_check_pointwise(const tsr_op_case *c, tsr_dtype *results)
{
    return check_from(c, 0, results);
}

tsr_status tsr_check_condition(const tsr_op_case *c, tsr_dtype *results)
{
    if (tsr_layout_dtype(c->operands[0]) != TSR_BOOL)
        return tsr_refuse_dtype(c, 0, "bool");
    return check_from(c, 1, results);
}

tsr_status tsr_check_test(const tsr_op_case *c, tsr_dtype *results)
{
    TSR_TRY(check_from(c, 0, results));
    results[0] = TSR_BOOL;
    return TSR_OK;
}

tsr_status tsr_check_fill(const tsr_op_case *c, tsr_dtype *results)
{
    results[0] = tsr_layout_dtype(c->operands[0]);
    TSR_TRY(tsr_check_takes(c, 0, c->op->code));
    return tsr_layout_dtype(c->operands[1]) == TSR_BOOL ? TSR_OK : tsr_refuse_dtype(c, 1, "bool");
}

tsr_status tsr_check_cast(const tsr_op_case *c, tsr_dtype *results)
{
    char taken[TEXT];
    list_dtypes(TSR_POINTWISE_COPY, taken);
    results[0] = (tsr_dtype)c->attributes[0].integer;
    if (!tsr_pointwise_takes(TSR_POINTWISE_COPY, tsr_layout_dtype(c->operands[0])))
        return tsr_refuse_dtype(c, 0, taken);
    if (tsr_pointwise_takes(TSR_POINTWISE_COPY, results[0]))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: dtype is %s, but cast makes %s", c->caller,
                          tsr_dtype_name(results[0]), taken);
}

/* Checks the attribute dims for a tensor of `ndim` dims. */
static tsr_status check_dims(const tsr_op_case *c, int ndim, bool marked[TSR_MAX_DIMS])
{
    const tsr_attribute *const dims = &c->attributes[0];
    if (tsr_reduce_mark(dims->count, dims->list, ndim, marked))
        return TSR_OK;
    char list[TEXT];
    size_t length = 0;
    for (int i = 0; i < dims->count; i++)
        length += (size_t)snprintf(list + length, TEXT - length, "%s%lld", i ? "," : "", (long long)dims->list[i]);
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: dims are %s, but they must differ and be below %d, the dims of the tensor", c->caller,
                          list, ndim);
}

/* Checks that the first operand's dtype has the op that a reduction is made of; a mean is made of
 * quotients. */
static tsr_status check_summed(const tsr_op_case *c, tsr_dtype *results)
{
    static const int loops[] = {[TSR_REDUCE_SUM] = TSR_POINTWISE_ADD,
                                [TSR_REDUCE_MEAN] = TSR_POINTWISE_DIV,
                                [TSR_REDUCE_MAX] = TSR_POINTWISE_MAXIMUM,
                                [TSR_REDUCE_MIN] = TSR_POINTWISE_MINIMUM,
                                [TSR_REDUCE_PROD] = TSR_POINTWISE_MUL};
    if (c->op->code == TSR_REDUCE_ANY || c->op->code == TSR_REDUCE_ALL) {
        results[0] = TSR_BOOL;
        return tsr_layout_dtype(c->operands[0]) == TSR_BOOL ? TSR_OK : tsr_refuse_dtype(c, 0, "bool");
    }
    results[0] = tsr_layout_dtype(c->operands[0]);
    return tsr_check_takes(c, 0, loops[c->op->code]);
}

tsr_status tsr_check_squares(const tsr_op_case *c, tsr_dtype *results)
{
    bool marked[TSR_MAX_DIMS];
    const tsr_layout *const scale = c->op->operands[1] ? c->operands[1] : NULL;
    const tsr_dtype computed = tsr_pointwise_computes_in(tsr_layout_dtype(c->operands[0]));
    results[0] = c->op->code == TSR_REDUCE_SQUARES ? TSR_F64 : TSR_BOOL;
    TSR_TRY(tsr_check_takes(c, 0, TSR_POINTWISE_ISFINITE));
    if (scale && tsr_layout_dtype(scale) != computed)
        return tsr_refuse_dtype(c, 1, tsr_dtype_name(computed));
    if (scale && tsr_layout_ndim(scale) != 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s has %d dims, but must have none", c->caller,
                              c->op->operands[1], tsr_layout_ndim(scale));
    return check_dims(c, tsr_layout_ndim(c->operands[0]), marked);
}

tsr_status tsr_check_sum(const tsr_op_case *c, tsr_dtype *results)
{
    bool marked[TSR_MAX_DIMS];
    TSR_TRY(check_summed(c, results));
    return check_dims(c, tsr_layout_ndim(c->operands[0]), marked);
}

tsr_status tsr_check_sum_to(const tsr_op_case *c, tsr_dtype *results)
{
    const tsr_attribute *const shape = &c->attributes[0];
    const int missing = tsr_layout_ndim(c->operands[0]) - shape->count;
    TSR_TRY(check_summed(c, results));
    bool fits = missing >= 0;
    for (int i = 0; i < shape->count && fits; i++)
        fits = shape->list[i] == 1 || shape->list[i] == tsr_layout_shape(c->operands[0])[missing + i];
    return fits
               ? TSR_OK
               : tsr_status_set(TSR_ERROR_ARGUMENT, "%s: repeating a tensor of the shape does not give the shape of %s",
                                c->caller, c->op->operands[0]);
}

tsr_status tsr_check_spread(const tsr_op_case *c, tsr_dtype *results)
{
    bool marked[TSR_MAX_DIMS];
    TSR_TRY(check_summed(c, results));
    TSR_TRY(check_one_dtype(c, 0));
    return check_dims(c, tsr_layout_ndim(c->operands[1]), marked);
}

tsr_status tsr_check_moments(const tsr_op_case *c, tsr_dtype *results)
{
    bool marked[TSR_MAX_DIMS];
    results[0] = tsr_layout_dtype(c->operands[0]);
    TSR_TRY(tsr_check_takes(c, 0, TSR_POINTWISE_EXP));
    return check_dims(c, tsr_layout_ndim(c->operands[0]), marked);
}

tsr_status tsr_check_shares(const tsr_op_case *c, tsr_dtype *results)
{
    bool marked[TSR_MAX_DIMS];
    TSR_TRY(tsr_check_takes(c, 0, TSR_POINTWISE_EXP));
    results[0] = tsr_layout_dtype(c->operands[0]);
    TSR_TRY(check_one_dtype(c, 0));
    return check_dims(c, tsr_layout_ndim(c->operands[1]), marked);
}

/* True if every value of `from` is one of `to`. */
static bool loses_nothing(tsr_dtype from, tsr_dtype to)
{
    const bool narrow = from == TSR_F16 || from == TSR_BF16;
    return from == to || (from == TSR_I32 && (to == TSR_I64 || to == TSR_F64)) || (from == TSR_F32 && to == TSR_F64) ||
           (narrow && (to == TSR_F32 || to == TSR_F64));
}

tsr_status tsr_rule_of_cast(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT])
{
    const tsr_dtype from = tsr_layout_dtype(c->operands[0]), to = (tsr_dtype)c->attributes[0].integer;
    const bool rises = loses_nothing(from, to) || from == TSR_BOOL || tsr_dtype_get(to)->kind == TSR_CLASS_FLOAT;
    snprintf(text, TSR_OP_RULE_TEXT, "... -> ...%s%s", loses_nothing(from, to) ? " | linear {0}" : "",
             rises ? " | monotone {0}" : "");
    return TSR_OK;
}

/* Appends the factor of a dim, a letter, and the text behind it. */
static void append_factor(tsr_rule_text *rule, int dim, const char *behind)
{
    const char letter[] = {(char)('a' + dim), '\0'};
    tsr_rule_append(rule, letter);
    tsr_rule_append(rule, behind);
}

/* Appends factors a, b, .. of `ndim` dims; those that are marked as 1 if `ones` is set, else not at
 * all. */
static void append_kept(tsr_rule_text *rule, int ndim, const bool *marked, bool ones)
{
    for (int dim = 0; dim < ndim; dim++) {
        if (!marked || !marked[dim])
            append_factor(rule, dim, " ");
        else if (ones)
            tsr_rule_append(rule, "1 ");
    }
}

/* Appends the marks of reduced factors; `kind` stands between spaces. */
static void append_reductions(tsr_rule_text *rule, int ndim, const bool *marked, const char *kind)
{
    for (int dim = 0; dim < ndim; dim++) {
        if (marked[dim]) {
            tsr_rule_append(rule, "| ");
            append_factor(rule, dim, kind);
        }
    }
}

tsr_status tsr_rule_of_sum(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT])
{
    static const struct {
        const char *kind, *group;
    } kinds[] = {[TSR_REDUCE_SUM] = {" sum ", "| linear {0}"},
                 [TSR_REDUCE_MEAN] = {" sum ", "| linear {0}"},
                 [TSR_REDUCE_MAX] = {" max ", "| monotone {0}"},
                 [TSR_REDUCE_MIN] = {" min ", "| monotone {0}"},
                 [TSR_REDUCE_PROD] = {" prod ", ""},
                 [TSR_REDUCE_ANY] = {" max ", "| monotone {0}"},
                 [TSR_REDUCE_ALL] = {" min ", "| monotone {0}"},
                 [TSR_REDUCE_SQUARES] = {" sum ", ""},
                 [TSR_REDUCE_FINITE] = {" min ", ""}};
    bool marked[TSR_MAX_DIMS];
    tsr_rule_text rule = {text, 0};
    const int ndim = tsr_layout_ndim(c->operands[0]);
    tsr_reduce_mark(c->attributes[0].count, c->attributes[0].list, ndim, marked);
    append_kept(&rule, ndim, NULL, false);
    tsr_rule_append(&rule, c->op->operands[1] ? ", -> " : "-> ");
    append_kept(&rule, ndim, marked, c->attributes[1].integer);
    append_reductions(&rule, ndim, marked, c->op->exchanges ? " exchange " : kinds[c->op->code].kind);
    tsr_rule_append(&rule, c->op->exchanges ? "" : kinds[c->op->code].group);
    return TSR_OK;
}

tsr_status tsr_rule_of_sum_to(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT])
{
    bool marked[TSR_MAX_DIMS];
    tsr_rule_text rule = {text, 0};
    const tsr_attribute *const shape = &c->attributes[0];
    const int ndim = tsr_layout_ndim(c->operands[0]), missing = ndim - shape->count;
    append_kept(&rule, ndim, NULL, false);
    tsr_rule_append(&rule, "-> ");
    for (int dim = 0; dim < ndim; dim++) {
        marked[dim] = dim < missing || (shape->list[dim - missing] == 1 && tsr_layout_shape(c->operands[0])[dim] != 1);
        if (dim >= missing && marked[dim])
            tsr_rule_append(&rule, "1 ");
        else if (dim >= missing)
            append_factor(&rule, dim, " ");
    }
    append_reductions(&rule, ndim, marked, " sum ");
    tsr_rule_append(&rule, "| linear {0}");
    return TSR_OK;
}

tsr_status tsr_rule_of_spread(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT])
{
    bool marked[TSR_MAX_DIMS];
    tsr_rule_text rule = {text, 0};
    const int ndim = tsr_layout_ndim(c->operands[1]);
    tsr_reduce_mark(c->attributes[0].count, c->attributes[0].list, ndim, marked);
    append_kept(&rule, ndim, marked, c->attributes[1].integer);
    tsr_rule_append(&rule, ", ");
    append_kept(&rule, ndim, NULL, false);
    tsr_rule_append(&rule, "-> ");
    append_kept(&rule, ndim, NULL, false);
    if (c->op->exchanges)
        append_reductions(&rule, ndim, marked, " exchange ");
    tsr_rule_append(&rule, "| linear {0}");
    return TSR_OK;
}
