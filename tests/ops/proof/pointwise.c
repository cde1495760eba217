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

#define EXACT .exact = true, .exact_gradients = true

const proof_case proof_pointwise[] = {
    {"add", any, EXACT},
    {"sub", any, EXACT},
    {"mul", any, EXACT},
    {"div", positive},
    {"maximum", any, EXACT},
    {"minimum", any, EXACT},
    {"neg", any, EXACT},
    {"abs", any, EXACT},
    {"exp", any},
    {"log", positive},
    {"sqrt", positive},
    {"rsqrt", positive},
    {"tanh", any},
    {"sigmoid", any},
    {"silu", any},
    {"relu", any, EXACT},
    {"gelu", any},
    {"silu_mul", any},
    {"scale", any, EXACT},
    {"where", any, EXACT},
    {"cast", any, EXACT},
    {"pow", powers},
    {"clamp", any, EXACT},
    {"masked_fill", any, EXACT},
    {"reciprocal", positive},
    {"square", any, EXACT},
    {"sign", any, EXACT},
    {"floor", any, EXACT},
    {"ceil", any, EXACT},
    {"round", any, EXACT},
    {"expm1", any},
    {"log1p", positive},
    {"softplus", any},
    {"leaky_relu", any, EXACT},
    {"elu", any},
    {"floor_divide", integers, EXACT},
    {"remainder", integers, EXACT},
    {"eq", any, EXACT},
    {"ne", any, EXACT},
    {"lt", any, EXACT},
    {"le", any, EXACT},
    {"gt", any, EXACT},
    {"ge", any, EXACT},
    {"isnan", any, EXACT},
    {"isinf", any, EXACT},
    {"isfinite", any, EXACT},
    {"logical_and", truths, EXACT},
    {"logical_or", truths, EXACT},
    {"logical_not", truths, EXACT},
    {"pow_gradient", powers},
    {"pow_exponent_gradient", powers},
    {"clamp_gradient", any, EXACT},
    {"log1p_gradient", positive},
    {"leaky_relu_gradient", any, EXACT},
    {"elu_gradient", any},
    {"share_max", any, EXACT},
    {"share_min", any, EXACT},
    {"tanh_gradient", any},
    {"sigmoid_gradient", any},
    {"silu_gradient", any},
    {"relu_gradient", any, EXACT},
    {"gelu_gradient", any},
    {"keep", any, EXACT},
    {"drop", any, EXACT},
    {NULL},
};
