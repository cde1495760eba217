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
    {"pow", powers, .draws = FEW},
    {"clamp", any, EXACT, .draws = FEW},
    {"masked_fill", any, EXACT, .draws = FEW},
    {"reciprocal", positive, .draws = FEW},
    {"square", any, EXACT, .draws = FEW},
    {"sign", any, EXACT, .draws = FEW},
    {"floor", any, EXACT, .draws = FEW},
    {"ceil", any, EXACT, .draws = FEW},
    {"round", any, EXACT, .draws = FEW},
    {"expm1", any, .draws = FEW},
    {"log1p", positive, .draws = FEW},
    {"softplus", any, .draws = FEW},
    {"sin", any, .draws = FEW},
    {"cos", any, .draws = FEW},
    {"erf", any, .draws = FEW},
    {"leaky_relu", any, EXACT, .draws = FEW},
    {"elu", any, .draws = FEW},
    {"floor_divide", integers, EXACT, .draws = FEW},
    {"remainder", integers, EXACT, .draws = FEW},
    {"eq", any, EXACT, .draws = FEW},
    {"ne", any, EXACT, .draws = FEW},
    {"lt", any, EXACT, .draws = FEW},
    {"le", any, EXACT, .draws = FEW},
    {"gt", any, EXACT, .draws = FEW},
    {"ge", any, EXACT, .draws = FEW},
    {"isnan", any, EXACT, .draws = FEW},
    {"isinf", any, EXACT, .draws = FEW},
    {"isfinite", any, EXACT, .draws = FEW},
    {"logical_and", truths, EXACT, .draws = FEW},
    {"logical_or", truths, EXACT, .draws = FEW},
    {"logical_not", truths, EXACT, .draws = FEW},
    {"pow_gradient", powers, .draws = FEW},
    {"pow_exponent_gradient", powers, .draws = FEW},
    {"clamp_gradient", any, EXACT, .draws = FEW},
    {"log1p_gradient", positive, .draws = FEW},
    {"erf_gradient", any, .draws = FEW},
    {"leaky_relu_gradient", any, EXACT, .draws = FEW},
    {"elu_gradient", any, .draws = FEW},
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
