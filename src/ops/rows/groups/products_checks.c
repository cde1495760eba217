#include "ops/rows/groups/products_checks.h"

#include "ops/kernels/products/equation.h"
#include "ops/kernels/products/products.h"

#include <tessera/products.h>
#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

#define FLOATS "f64, f32, f16, bf16"

static bool is_mixed(tsr_dtype dtype)
{
    return dtype == TSR_F32 || dtype == TSR_F16 || dtype == TSR_BF16;
}

tsr_status tsr_check_floats(const tsr_op_case *c, unsigned skipped, tsr_dtype *joined)
{
    int first = -1;
    for (int i = 0; c->op->operands[i]; i++) {
        if (!c->operands[i] || skipped >> i & 1)
            continue;
        const tsr_dtype dtype = tsr_layout_dtype(c->operands[i]);
        first = first < 0 ? i : first;
        const tsr_dtype other = tsr_layout_dtype(c->operands[first]);
        if (!is_mixed(dtype) && dtype != TSR_F64)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is %s, but %s takes " FLOATS, c->caller,
                                  c->op->operands[i], tsr_dtype_name(dtype), c->op->name);
        if (dtype != other && (!is_mixed(dtype) || !is_mixed(other)))
            return tsr_status_set(
                TSR_ERROR_ARGUMENT,
                "%s: %s is %s but %s is %s; all operands must have one dtype, or each be f32, f16 or bf16", c->caller,
                c->op->operands[first], tsr_dtype_name(other), c->op->operands[i], tsr_dtype_name(dtype));
        *joined = i == first || dtype == *joined ? dtype : TSR_F32;
    }
    return TSR_OK;
}

static int gradient_of(const tsr_op_case *c)
{
    return c->op->code % TSR_PRODUCT_EINSUM - TSR_PRODUCT_GRADIENT;
}

static tsr_status read_equation(const tsr_op_case *c, tsr_equation *out)
{
    const int first = gradient_of(c) >= 0;
    int count = 0;
    if (c->op->code < TSR_PRODUCT_EINSUM)
        return tsr_equation_of_matmul(c->caller, c->operands + first, out);
    while (c->op->operands[first + count] && c->operands[first + count])
        count++;
    for (int i = first + count; c->op->operands[i]; i++) {
        if (c->operands[i])
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is given, but %s before it is NULL", c->caller,
                                  c->op->operands[i], c->op->operands[first + count]);
    }
    return tsr_equation_parse(c->caller, c->attributes[0].words, count, c->operands + first, out);
}

tsr_status tsr_check_product(const tsr_op_case *c, tsr_dtype *results)
{
    tsr_equation e;
    const int gradient = gradient_of(c);
    TSR_TRY(tsr_check_floats(c, 0, &results[0]));
    TSR_TRY(read_equation(c, &e));
    if (gradient >= e.operand_count)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL, so it has no gradient", c->caller,
                              c->op->operands[1 + gradient]);
    if (gradient >= 0)
        results[0] = tsr_layout_dtype(c->operands[1 + gradient]);
    return TSR_OK;
}

tsr_status tsr_take_dtype(const tsr_op_case *c, tsr_dtype *results)
{
    const tsr_dtype wanted = c->attributes[0].name ? (tsr_dtype)c->attributes[0].integer : TSR_DTYPE_NONE;
    if (wanted == TSR_DTYPE_NONE)
        return TSR_OK;
    if (wanted != results[0] && (!is_mixed(wanted) || !is_mixed(results[0])))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: dtype is %s, but a gradient of %s can be %s", c->caller,
                              tsr_dtype_name(wanted), tsr_dtype_name(results[0]),
                              results[0] == TSR_F64 ? "f64" : "f32, f16 or bf16");
    results[0] = wanted;
    return TSR_OK;
}

tsr_status tsr_check_linear(const tsr_op_case *c, tsr_dtype *results)
{
    TSR_TRY(tsr_check_floats(c, 0, &results[0]));
    return tsr_take_dtype(c, results);
}

static tsr_status check_dtype(const tsr_op_case *c, int operand, tsr_dtype wanted)
{
    const tsr_dtype own = tsr_layout_dtype(c->operands[operand]);
    if (own == wanted)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is %s, but %s takes %s", c->caller, c->op->operands[operand],
                          tsr_dtype_name(own), c->op->name, tsr_dtype_name(wanted));
}

tsr_status tsr_check_grouped(const tsr_op_case *c, tsr_dtype *results)
{
    TSR_TRY(tsr_check_floats(c, 1u << 2, &results[0]));
    TSR_TRY(check_dtype(c, 2, TSR_I64));
    return tsr_take_dtype(c, results);
}

tsr_status tsr_check_q8(const tsr_op_case *c, tsr_dtype *results)
{
    const int w = tsr_layout_ndim(c->operands[1]), scales = tsr_layout_ndim(c->operands[2]);
    TSR_TRY(tsr_check_floats(c, 1u << 1 | 1u << 2, &results[0]));
    TSR_TRY(check_dtype(c, 1, TSR_I8));
    TSR_TRY(check_dtype(c, 2, TSR_F32));
    if (results[0] == TSR_F64)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is f64, but %s takes f32, f16, bf16", c->caller,
                              c->op->operands[0], c->op->name);
    if (w == 2 && scales == 2 &&
        tsr_layout_shape(c->operands[1])[1] != TSR_Q8_SCALED * tsr_layout_shape(c->operands[2])[1])
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: w has %lld columns and scales %lld, but a scale is that of %d weights", c->caller,
                              (long long)tsr_layout_shape(c->operands[1])[1],
                              (long long)tsr_layout_shape(c->operands[2])[1], TSR_Q8_SCALED);
    return tsr_take_dtype(c, results);
}

/* Text of a rule, which has room for all equations. */
typedef struct rule_text {
    char *text;
    size_t length;
    const tsr_equation *equation;
} rule_text;

/* Appends a word, behind a space unless it is the first, a comma or a group behind a group. */
static void append(rule_text *rule, const char *word)
{
    const char last = rule->length ? rule->text[rule->length - 1] : '\0';
    const char *const space = last == '\0' || *word == ',' || (*word == '{' && last == '}') ? "" : " ";
    rule->length += (size_t)snprintf(rule->text + rule->length, TSR_OP_RULE_TEXT - rule->length, "%s%s", space, word);
}

static void append_name(rule_text *rule, int factor)
{
    char name[TSR_EQUATION_NAME];
    append(rule, factor == TSR_EQUATION_ONE ? "1" : tsr_equation_name(rule->equation, factor, name));
}

/* Appends a term, with "..." in place of its dims if `open`. */
static void append_term(rule_text *rule, const tsr_equation_term *term, bool open)
{
    bool is_written = false;
    for (int dim = 0; dim < term->ndim; dim++) {
        if (!open || term->factor[dim] >= TSR_MAX_DIMS)
            append_name(rule, term->factor[dim]);
        else if (!is_written)
            append(rule, "...");
        is_written |= term->factor[dim] < TSR_MAX_DIMS;
    }
}

/* Appends the marks: factors of `all` that `kept` lacks are summed, and the product is linear in
 * each of `count` operands but `gradient`. */
static void append_marks(rule_text *rule, unsigned all, unsigned kept, bool open, int count, int gradient)
{
    const unsigned leading = (1u << TSR_MAX_DIMS) - 1, summed = all & ~kept;
    if (summed)
        append(rule, "|");
    if (open && (summed & leading))
        append(rule, "...");
    for (int factor = open ? TSR_MAX_DIMS : 0; factor < TSR_EQUATION_FACTORS; factor++) {
        if (summed >> factor & 1)
            append_name(rule, factor);
    }
    append(rule, summed ? "sum | linear" : "| linear");
    for (int i = 0; i < count; i++) {
        const char group[] = {'{', (char)('0' + i), '}', '\0'};
        if (i != gradient)
            append(rule, group);
    }
}

/* The rule of the op itself, with "..." as the equation has it. */
static void write_forward(rule_text *rule)
{
    const tsr_equation *const e = rule->equation;
    unsigned all = 0;
    for (int i = 0; i < e->operand_count; i++) {
        if (i)
            append(rule, ",");
        append_term(rule, &e->operands[i], true);
        all |= tsr_equation_bits(&e->operands[i]);
    }
    append(rule, "->");
    append_term(rule, &e->result, true);
    append_marks(rule, all, tsr_equation_bits(&e->result), true, e->operand_count, -1);
}

/* The rule of the gradient of an operand, whose dims of "..." have names: sums over those that the
 * operand repeats are part of the product. */
static void write_gradient(rule_text *rule, int gradient)
{
    const tsr_equation *const e = rule->equation;
    unsigned all = tsr_equation_bits(&e->result);
    append_term(rule, &e->result, false);
    for (int i = 0; i < e->operand_count; i++) {
        append(rule, ",");
        append_term(rule, &e->operands[i], false);
        all |= tsr_equation_bits(&e->operands[i]);
    }
    append(rule, "->");
    append_term(rule, &e->operands[gradient], false);
    append_marks(rule, all, tsr_equation_bits(&e->operands[gradient]), false, e->operand_count + 1, gradient + 1);
}

tsr_status tsr_rule_of_product(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT])
{
    tsr_equation e;
    const int gradient = gradient_of(c);
    rule_text rule = {.text = text, .equation = &e};
    text[0] = '\0';
    TSR_TRY(read_equation(c, &e));
    if (gradient >= 0)
        write_gradient(&rule, gradient);
    else
        write_forward(&rule);
    return TSR_OK;
}
