#include "proof.h"

#include <string.h>

static const tsr_dtype dtypes[] = {TSR_F32, TSR_F64, TSR_F32, TSR_I32};

static void set_attributes(draw *d, proof *p)
{
    for (int i = 0; i < p->attribute_count; i++) {
        tsr_attribute *const a = &p->attributes[i];
        if (a->kind == TSR_ATTRIBUTE_FLOAT)
            a->number = draw_below(d, 2) ? -2 : 0.5;
        else if (a->kind == TSR_ATTRIBUTE_DTYPE)
            a->integer = (const tsr_dtype[]){TSR_F64, TSR_I32, TSR_F32, TSR_BOOL}[draw_below(d, 4)];
        else if (a->kind == TSR_ATTRIBUTE_WORD)
            a->words = draw_below(d, 2) ? "none" : "tanh";
    }
}

static bool is_condition(const char *operand)
{
    return strcmp(operand, "condition") == 0 || strcmp(operand, "mask") == 0;
}

/* Operands that are repeated along one another, of which the last may be positive. */
static void draw_typed(draw *d, proof *p, tsr_dtype dtype, bool positive)
{
    whole full;
    draw_full(d, &full);
    set_attributes(d, p);
    const int kept = draw_below(d, p->operand_count), last = p->operand_count - 1;
    for (int i = 0; i <= last; i++) {
        whole *const w = &p->operands[i];
        draw_repeated(d, &full, i == kept, w);
        w->dtype = is_condition(p->info.operands[i]) ? TSR_BOOL : dtype;
        if (positive && i == last)
            draw_positive(d, w);
        else
            draw_values(d, w);
    }
}

static void draw_operands(draw *d, proof *p, bool positive)
{
    draw_typed(d, p, dtypes[draw_below(d, 4)], positive);
}

static void truths(draw *d, proof *p)
{
    draw_typed(d, p, TSR_BOOL, false);
}

static void integers(draw *d, proof *p)
{
    draw_typed(d, p, draw_below(d, 2) ? TSR_I32 : TSR_I64, false);
}

/* Powers of positive numbers. */
static void powers(draw *d, proof *p)
{
    draw_operands(d, p, false);
    const int base = p->operand_count - 2;
    draw_positive(d, &p->operands[base]);
}

static void any(draw *d, proof *p)
{
    draw_operands(d, p, false);
}

/* The last operand is a power of two, as a divisor or below a root. */
static void positive(draw *d, proof *p)
{
    draw_operands(d, p, true);
}

/* Draws of ops that go the ways of others. */
#define FEW   6
#define EXACT .exact = true, .exact_gradients = true

const proof_case proof_pointwise[] = {
    {"add", any, EXACT, .strict = STRICT_MONOTONE},
    {"sub", any, EXACT, .strict = STRICT_MONOTONE},
    {"mul", any, EXACT, .strict = STRICT_MONOTONE},
    {"div", positive, .strict = STRICT_MONOTONE},
    {"maximum", any, EXACT, .strict = STRICT_MONOTONE},
    {"minimum", any, EXACT, .strict = STRICT_MONOTONE},
    {"neg", any, EXACT},
    {"abs", any, EXACT, .strict = STRICT_VALUES},
    {"exp", any, .strict = STRICT_MONOTONE},
    {"log", positive, .strict = STRICT_MONOTONE},
    {"sqrt", positive, .strict = STRICT_MONOTONE},
    {"rsqrt", positive, .strict = STRICT_MONOTONE},
    {"tanh", any, .strict = STRICT_MONOTONE},
    {"sigmoid", any, .strict = STRICT_MONOTONE},
    {"silu", any, .strict = STRICT_MONOTONE},
    {"relu", any, EXACT, .strict = STRICT_MONOTONE},
    {"gelu", any, .strict = STRICT_MONOTONE},
    {"silu_mul", any, .strict = STRICT_MONOTONE},
    {"scale", any, EXACT, .strict = STRICT_MONOTONE},
    {"where", any, EXACT, .strict = STRICT_MONOTONE},
    {"cast", any, EXACT, .strict = STRICT_VALUES},
    {"pow", powers, .draws = FEW, .strict = STRICT_MONOTONE},
    {"clamp", any, EXACT, .draws = FEW, .strict = STRICT_MONOTONE},
    {"masked_fill", any, EXACT, .draws = FEW, .strict = STRICT_MONOTONE},
    {"reciprocal", positive, .draws = FEW, .strict = STRICT_MONOTONE},
    {"square", any, EXACT, .draws = FEW, .strict = STRICT_MONOTONE},
    {"sign", any, EXACT, .draws = FEW, .strict = STRICT_VALUES},
    {"floor", any, EXACT, .draws = FEW, .strict = STRICT_VALUES},
    {"ceil", any, EXACT, .draws = FEW, .strict = STRICT_VALUES},
    {"round", any, EXACT, .draws = FEW, .strict = STRICT_VALUES},
    {"expm1", any, .draws = FEW, .strict = STRICT_MONOTONE},
    {"log1p", positive, .draws = FEW, .strict = STRICT_MONOTONE},
    {"softplus", any, .draws = FEW, .strict = STRICT_MONOTONE},
    {"sin", any, .draws = FEW, .strict = STRICT_VALUES},
    {"cos", any, .draws = FEW, .strict = STRICT_VALUES},
    {"erf", any, .draws = FEW, .strict = STRICT_MONOTONE},
    {"leaky_relu", any, EXACT, .draws = FEW, .strict = STRICT_MONOTONE},
    {"elu", any, .draws = FEW, .strict = STRICT_MONOTONE},
    {"floor_divide", integers, EXACT, .draws = FEW, .strict = STRICT_VALUES},
    {"remainder", integers, EXACT, .draws = FEW, .strict = STRICT_VALUES},
    {"eq", any, EXACT, .draws = FEW, .strict = STRICT_VALUES},
    {"ne", any, EXACT, .draws = FEW, .strict = STRICT_VALUES},
    {"lt", any, EXACT, .draws = FEW, .strict = STRICT_MONOTONE},
    {"le", any, EXACT, .draws = FEW, .strict = STRICT_MONOTONE},
    {"gt", any, EXACT, .draws = FEW, .strict = STRICT_MONOTONE},
    {"ge", any, EXACT, .draws = FEW, .strict = STRICT_MONOTONE},
    {"isnan", any, EXACT, .draws = FEW, .strict = STRICT_VALUES},
    {"isinf", any, EXACT, .draws = FEW, .strict = STRICT_VALUES},
    {"isfinite", any, EXACT, .draws = FEW, .strict = STRICT_VALUES},
    {"logical_and", truths, EXACT, .draws = FEW, .strict = STRICT_VALUES},
    {"logical_or", truths, EXACT, .draws = FEW, .strict = STRICT_VALUES},
    {"logical_not", truths, EXACT, .draws = FEW, .strict = STRICT_VALUES},
    {"pow_gradient", powers, .draws = FEW, .strict = STRICT_VALUES},
    {"pow_exponent_gradient", powers, .draws = FEW, .strict = STRICT_VALUES},
    {"clamp_gradient", any, EXACT, .draws = FEW, .strict = STRICT_VALUES},
    {"log1p_gradient", positive, .draws = FEW, .strict = STRICT_VALUES},
    {"erf_gradient", any, .draws = FEW, .strict = STRICT_VALUES},
    {"leaky_relu_gradient", any, EXACT, .draws = FEW, .strict = STRICT_VALUES},
    {"elu_gradient", any, .draws = FEW, .strict = STRICT_VALUES},
    {"share_max", any, EXACT, .strict = STRICT_MONOTONE},
    {"share_min", any, EXACT, .strict = STRICT_MONOTONE},
    {"tanh_gradient", any, .strict = STRICT_MONOTONE},
    {"sigmoid_gradient", any, .strict = STRICT_MONOTONE},
    {"silu_gradient", any, .strict = STRICT_VALUES},
    {"relu_gradient", any, EXACT, .strict = STRICT_VALUES},
    {"gelu_gradient", any, .strict = STRICT_VALUES},
    {"keep", any, EXACT, .strict = STRICT_MONOTONE},
    {"drop", any, EXACT, .strict = STRICT_MONOTONE},
    {NULL},
};
