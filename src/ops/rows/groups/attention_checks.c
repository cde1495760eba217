#include "ops/rows/groups/attention_checks.h"

#include "ops/kernels/attention/attention.h"
#include "ops/kernels/attention/rope.h"

#include <tessera/sys/status.h>

#include <math.h>
#include <stdio.h>

/* q, k and v; the mask comes behind them. */
#define OPERANDS 3

#define FLOATS "f64, f32, f16 and bf16"

static bool is_taken(tsr_dtype dtype)
{
    return dtype == TSR_F64 || dtype == TSR_F32 || dtype == TSR_F16 || dtype == TSR_BF16;
}

static tsr_status check_operand(const tsr_op_case *c, int operand)
{
    const tsr_layout *const layout = c->operands[operand];
    const tsr_dtype dtype = tsr_layout_dtype(layout), first = tsr_layout_dtype(c->operands[0]);
    const char *const name = c->op->operands[operand];
    if (!is_taken(dtype))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is %s, but %s takes " FLOATS, c->caller, name,
                              tsr_dtype_name(dtype), c->op->name);
    if (dtype != first)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is %s but %s is %s; both must have one dtype, cast one",
                              c->caller, c->op->operands[0], tsr_dtype_name(first), name, tsr_dtype_name(dtype));
    if (tsr_layout_ndim(layout) < 3)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s has %d dims, but %s wants (.., heads, tokens, dim)",
                              c->caller, name, tsr_layout_ndim(layout), c->op->name);
    return TSR_OK;
}

static int64_t heads_of(const tsr_layout *layout)
{
    return tsr_layout_shape(layout)[tsr_layout_ndim(layout) - 3];
}

static tsr_status check_heads(const tsr_op_case *c)
{
    const int q = c->op->code;
    const int64_t heads = heads_of(c->operands[q]), shared = heads_of(c->operands[q + 1]);
    if (heads == shared || (shared > 0 && heads % shared == 0))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: q has %lld heads and k has %lld; q must have a multiple of k's heads", c->caller,
                          (long long)heads, (long long)shared);
}

static tsr_status check_mask(const tsr_op_case *c, const tsr_layout *mask)
{
    if (!mask)
        return TSR_OK;
    const tsr_dtype dtype = tsr_layout_dtype(mask), q = tsr_layout_dtype(c->operands[0]);
    if (dtype != TSR_BOOL && dtype != q)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: mask is %s, but must be bool, or %s as q is", c->caller,
                              tsr_dtype_name(dtype), tsr_dtype_name(q));
    if (tsr_layout_ndim(mask) < 2)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: mask has %d dims, but must be (.., heads, queries, keys)",
                              c->caller, tsr_layout_ndim(mask));
    return TSR_OK;
}

tsr_status tsr_check_attention(const tsr_op_case *c, tsr_dtype *results)
{
    const int64_t causal = c->attributes[TSR_ATTENTION_CAUSAL].integer;
    const int64_t window = c->attributes[TSR_ATTENTION_WINDOW].integer;
    const double scale = c->attributes[TSR_ATTENTION_SCALE].number;
    for (int i = 0; i < c->op->code + OPERANDS; i++)
        TSR_TRY(check_operand(c, i));
    TSR_TRY(check_heads(c));
    TSR_TRY(check_mask(c, c->operands[c->op->code + OPERANDS]));
    if (causal != 0 && causal != 1)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: causal is %lld, but must be 0 or 1", c->caller,
                              (long long)causal);
    if (window < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: window is %lld, but must be a number of keys, or 0 for all",
                              c->caller, (long long)window);
    if (!isfinite(scale))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: scale is %g, but must be finite; 0 is 1 / sqrt(dim)", c->caller,
                              scale);
    for (int i = 0; c->op->results[i]; i++)
        results[i] = tsr_layout_dtype(c->operands[0]);
    return TSR_OK;
}

/* True if a mask has size 1 in a dim, from the end, in which `other` is longer. */
static bool is_repeated(const tsr_layout *mask, const tsr_layout *other, int from_end, int other_from_end)
{
    return tsr_layout_shape(mask)[tsr_layout_ndim(mask) - from_end] == 1 &&
           tsr_layout_shape(other)[tsr_layout_ndim(other) - other_from_end] != 1;
}

/* The dims of the mask: 1 where it is repeated. */
static void write_mask(const tsr_op_case *c, const char *heads, char *text, size_t capacity)
{
    const tsr_layout *const q = c->operands[c->op->code], *const k = c->operands[c->op->code + 1];
    const tsr_layout *const mask = c->operands[c->op->code + OPERANDS];
    if (!mask || tsr_layout_ndim(mask) < 3)
        heads = "";
    else if (is_repeated(mask, q, 3, 3))
        heads = "1";
    snprintf(text, capacity, "%s%s %s %s", *heads ? "... " : "", heads, mask && is_repeated(mask, q, 2, 2) ? "1" : "q",
             mask && is_repeated(mask, k, 1, 2) ? "1" : "t");
}

/* With groups, heads of q are a product. Without, they are those of k. */
tsr_status tsr_rule_of_attention(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT])
{
    char mask[32];
    const int q = c->op->code;
    const bool grouped = heads_of(c->operands[q]) != heads_of(c->operands[q + 1]);
    const char *const h = grouped ? "(h g)" : "h";
    write_mask(c, h, mask, sizeof mask);
    if (c->op->code)
        snprintf(
            text, TSR_OP_RULE_TEXT,
            "... %s q e, ... %s q d, ... h t d, ... h t e, %s -> ... %s q d, ... h t d, ... h t e | d whole | q sum "
            "positional | e sum | t exchange sum positional%s | linear {0}",
            h, h, mask, h, grouped ? " | g sum | (h g) positional" : "");
    else
        snprintf(
            text, TSR_OP_RULE_TEXT,
            "... %s q d, ... h t d, ... h t e, %s -> ... %s q e | d whole | t exchange positional | q positional%s", h,
            mask, h, grouped ? " | (h g) positional" : "");
    return TSR_OK;
}

static tsr_status check_rope_operands(const tsr_op_case *c)
{
    const tsr_dtype x = tsr_layout_dtype(c->operands[0]), positions = tsr_layout_dtype(c->operands[1]);
    const int ndim = tsr_layout_ndim(c->operands[0]);
    if (!is_taken(x))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is %s, but %s takes " FLOATS, c->caller, c->op->operands[0],
                              tsr_dtype_name(x), c->op->name);
    if (positions != TSR_I64 && positions != TSR_I32)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: positions is %s, but must be i64 or i32", c->caller,
                              tsr_dtype_name(positions));
    if (ndim < 3)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s has %d dims, but %s wants (.., tokens, heads, dim)",
                              c->caller, c->op->operands[0], ndim, c->op->name);
    if (tsr_layout_ndim(c->operands[1]) > ndim - 2)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: positions has %d dims, but %s has %d before heads and dim",
                              c->caller, tsr_layout_ndim(c->operands[1]), c->op->operands[0], ndim - 2);
    if (tsr_layout_shape(c->operands[0])[ndim - 1] % 2 != 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: dim %d of %s has size %lld, but must be even", c->caller,
                              ndim - 1, c->op->operands[0], (long long)tsr_layout_shape(c->operands[0])[ndim - 1]);
    return TSR_OK;
}

tsr_status tsr_check_rope(const tsr_op_case *c, tsr_dtype *results)
{
    const tsr_attribute *const a = c->attributes;
    TSR_TRY(check_rope_operands(c));
    for (int i = TSR_ROPE_BASE; i <= TSR_ROPE_HIGH; i++) {
        if (!isfinite(a[i].number) || a[i].number <= 0)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is %g, but must be more than 0", c->caller, a[i].name,
                                  a[i].number);
    }
    if (a[TSR_ROPE_ORIGINAL].integer < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: original_max_position is %lld, but must be 0 or more", c->caller,
                              (long long)a[TSR_ROPE_ORIGINAL].integer);
    if (a[TSR_ROPE_ORIGINAL].integer && a[TSR_ROPE_HIGH].number <= a[TSR_ROPE_LOW].number)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: high_freq_factor is %g, but must be more than low_freq_factor, %g", c->caller,
                              a[TSR_ROPE_HIGH].number, a[TSR_ROPE_LOW].number);
    results[0] = tsr_layout_dtype(c->operands[0]);
    return TSR_OK;
}
