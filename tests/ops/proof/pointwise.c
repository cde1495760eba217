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

/* Operands that are repeated along one another. */
static void draw_operands(draw *d, proof *p, bool positive)
{
    whole full;
    draw_full(d, &full);
    set_attributes(d, p);
    const tsr_dtype dtype = dtypes[draw_below(d, 4)];
    const int kept = draw_below(d, p->operand_count), last = p->operand_count - 1;
    for (int i = 0; i <= last; i++) {
        whole *const w = &p->operands[i];
        draw_repeated(d, &full, i == kept, w);
        w->dtype = strcmp(p->info.operands[i], "condition") == 0 ? TSR_BOOL : dtype;
        if (positive && i == last)
            draw_positive(d, w);
        else
            draw_values(d, w);
    }
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
    {"share_max", any, EXACT},
    {"share_min", any, EXACT},
    {"sign", any, EXACT},
    {"tanh_gradient", any},
    {"sigmoid_gradient", any},
    {"silu_gradient", any},
    {"relu_gradient", any, EXACT},
    {"gelu_gradient", any},
    {"keep", any, EXACT},
    {"drop", any, EXACT},
    {NULL},
};
