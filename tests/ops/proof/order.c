#include "proof.h"

static const tsr_dtype dtypes[] = {TSR_F32, TSR_F64, TSR_F32, TSR_I32};

/* A dim of the operand: one of those it has, or -1 for the last. */
static int draw_dim(draw *d, proof *p, const whole *x)
{
    const int dim = draw_below(d, x->ndim + 1) - 1;
    proof_attribute(p, "dim")->integer = dim;
    return dim < 0 ? x->ndim - 1 : dim;
}

static void along(draw *d, proof *p)
{
    whole *const x = &p->operands[0];
    draw_full(d, x);
    draw_dim(d, p, x);
    x->dtype = dtypes[draw_below(d, 4)];
    draw_values(d, x);
}

static void sorted(draw *d, proof *p)
{
    along(d, p);
    proof_attribute(p, "descending")->integer = draw_below(d, 2);
}

static void top(draw *d, proof *p)
{
    along(d, p);
    const whole *const x = &p->operands[0];
    const int64_t dim = proof_attribute(p, "dim")->integer < 0 ? x->ndim - 1 : proof_attribute(p, "dim")->integer;
    proof_attribute(p, "k")->integer = x->ndim ? draw_below(d, (int)x->shape[dim] + 1) : 0;
}

/* Elements of which each line has some, and positions that differ along the dim. */
static void draw_placed(draw *d, proof *p, int dim, int64_t length, int64_t size)
{
    whole *const elements = &p->operands[0], *const positions = &p->operands[1];
    int64_t inner = 1;
    elements->dtype = dtypes[draw_below(d, 4)];
    if (elements->ndim)
        elements->shape[dim] = length;
    *positions = *elements;
    positions->dtype = TSR_I64;
    draw_values(d, elements);
    draw_values(d, positions);
    for (int k = dim + 1; k < elements->ndim; k++)
        inner *= elements->shape[k];
    const int turn = draw_below(d, 7);
    for (int64_t i = 0; i < positions->count && size > 0; i++)
        positions->values[i] = (double)((i / inner % length + turn) % size);
}

static void sort_placed(draw *d, proof *p)
{
    draw_full(d, &p->operands[0]);
    const int dim = draw_dim(d, p, &p->operands[0]);
    const int64_t size = dim < 0 ? 0 : p->operands[0].shape[dim];
    draw_placed(d, p, dim, size, size);
}

static void top_placed(draw *d, proof *p)
{
    whole *const like = &p->operands[2];
    draw_full(d, like);
    p->operands[0] = *like;
    const int dim = draw_dim(d, p, like);
    const int64_t size = dim < 0 ? 0 : like->shape[dim];
    draw_placed(d, p, dim, size ? draw_below(d, (int)size + 1) : 0, size);
    like->dtype = p->operands[0].dtype;
    draw_values(d, like);
}

#define EXACT .exact = true, .exact_gradients = true

const proof_case proof_order[] = {
    {"sort", sorted, EXACT, .strict = STRICT_VALUES},
    {"topk", top, EXACT, .strict = STRICT_VALUES},
    {"cumsum", along, EXACT, .strict = STRICT_MONOTONE},
    {"cumsum_reverse", along, EXACT, .strict = STRICT_MONOTONE},
    {"sort_gradient", sort_placed, EXACT, .strict = STRICT_LIKE},
    {"topk_gradient", top_placed, EXACT, .strict = STRICT_LIKE},
    {NULL},
};
