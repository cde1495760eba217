#include "proof.h"

#include <string.h>

/* Operands of experts, of which the gradient has dout in front; how many ids are beyond, and any
 * capacity, by `beyond` and `overflow`. */
static void draw_experts(draw *d, proof *p, const char *activation)
{
    static const char *const beyonds[] = {"fail", "fail", "zero", "identity"};
    const bool gradient = p->operand_count == 5;
    const int beyond = draw_below(d, 4);
    const int64_t t = draw_below(d, 9), s = 1 + draw_below(d, 3), k = 1 + draw_below(d, 4), e = 1 + draw_below(d, 5),
                  i = 1 + draw_below(d, 5), h = beyond == 3 ? k : 1 + draw_below(d, 4);
    const tsr_dtype dtype = draw_below(d, 3) ? TSR_F32 : TSR_F64;
    whole *const x = &p->operands[gradient], *const ids = x + 1, *const gate_up = x + 2, *const down = x + 3;
    set_shape(x, 2, (const int64_t[]){t, k});
    set_shape(ids, 2, (const int64_t[]){t, s});
    set_shape(gate_up, 3, (const int64_t[]){e, 2 * i, k});
    set_shape(down, 3, (const int64_t[]){e, h, i});
    if (gradient)
        set_shape(&p->operands[0], 3, (const int64_t[]){t, s, h});
    for (int operand = 0; operand < p->operand_count; operand++) {
        p->operands[operand].dtype = dtype;
        if (&p->operands[operand] != ids)
            draw_values(d, &p->operands[operand]);
    }
    ids->dtype = draw_below(d, 2) ? TSR_I64 : TSR_I32;
    draw_ids(d, ids, beyond > 1 ? e + 2 : e);
    proof_attribute(p, "activation")->words = activation;
    proof_attribute(p, "beyond")->words = beyonds[beyond];
    proof_attribute(p, "overflow")->words = "drop";
    proof_attribute(p, "capacity")->integer = draw_below(d, 4) ? 0 : 1 + draw_below(d, 4);
}

static void exact_experts(draw *d, proof *p)
{
    draw_experts(d, p, "relu");
}

static void smooth_experts(draw *d, proof *p)
{
    static const char *const activations[] = {"silu", "gelu", "gelu_tanh"};
    draw_experts(d, p, activations[draw_below(d, 3)]);
}

/* y (t, s, h), weights (t, s) and dout (t, h); those of `order`. */
static void draw_combine(draw *d, proof *p, const char *order)
{
    const int64_t t = draw_below(d, 8), s = draw_below(d, 12) ? 1 + draw_below(d, 4) : 0, h = 1 + draw_below(d, 6);
    const tsr_dtype dtype = draw_below(d, 3) ? TSR_F32 : TSR_F64;
    for (int i = 0; i < 2; i++) {
        whole *const w = &p->operands[i];
        if (order[i] == 'y')
            set_shape(w, 3, (const int64_t[]){t, s, h});
        else
            set_shape(w, 2, (const int64_t[]){t, order[i] == 'w' ? s : h});
        w->dtype = dtype;
        draw_values(d, w);
    }
}

static void combine(draw *d, proof *p)
{
    draw_combine(d, p, "yw");
}

static void combine_gradient_y(draw *d, proof *p)
{
    draw_combine(d, p, "dw");
}

static void combine_gradient_weights(draw *d, proof *p)
{
    draw_combine(d, p, "dy");
}

#define EXACT .exact = true, .exact_gradients = true

const proof_case proof_mixture[] = {
    {"experts", exact_experts, EXACT, .draws = 12, .strict = STRICT_VALUES},
    {"experts", smooth_experts, .inexact = true, .draws = 4, .strict = STRICT_VALUES},
    {"experts_gradient", exact_experts, EXACT, .draws = 6, .strict = STRICT_LIKE},
    {"combine", combine, EXACT, .draws = 10, .strict = STRICT_VALUES},
    {"combine_gradient_y", combine_gradient_y, EXACT, .draws = 6, .strict = STRICT_LIKE},
    {"combine_gradient_weights", combine_gradient_weights, EXACT, .draws = 6, .strict = STRICT_LIKE},
    {NULL},
};
