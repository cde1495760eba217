#include "proof.h"

#include <string.h>

static const tsr_dtype dtypes[] = {TSR_F32, TSR_F64, TSR_F32, TSR_I32};

static void draw_dims(draw *d, proof *p, const whole *full)
{
    tsr_attribute *const dims = proof_attribute(p, "dim");
    dims->count = 0;
    for (int dim = full->ndim - 1; dim >= 0; dim--) {
        if (draw_below(d, 2))
            dims->list[dims->count++] = dim;
    }
    proof_attribute(p, "keep")->integer = draw_below(d, 2);
}

static void over_dims(draw *d, proof *p)
{
    whole *const x = &p->operands[0];
    draw_full(d, x);
    draw_dims(d, p, x);
    x->dtype = dtypes[draw_below(d, 4)];
    draw_values(d, x);
}

static void to_shape(draw *d, proof *p)
{
    whole small, *const x = &p->operands[0];
    draw_full(d, x);
    draw_repeated(d, x, false, &small);
    *proof_attribute(p, "shape") = tsr_attribute_ints("shape", small.ndim, small.shape);
    x->dtype = dtypes[draw_below(d, 4)];
    draw_values(d, x);
}

/* The first operand has the shape of a sum of the second. */
static void spread(draw *d, proof *p)
{
    whole *const x = &p->operands[0], *const like = &p->operands[1];
    draw_full(d, like);
    draw_dims(d, p, like);
    const tsr_attribute *const dims = proof_attribute(p, "dim");
    x->ndim = 0;
    for (int dim = 0; dim < like->ndim; dim++) {
        bool listed = dims->count == 0;
        for (int i = 0; i < dims->count; i++)
            listed |= dims->list[i] == dim;
        if (!listed || proof_attribute(p, "keep")->integer)
            x->shape[x->ndim++] = listed ? 1 : like->shape[dim];
    }
    x->dtype = like->dtype = dtypes[draw_below(d, 4)];
    draw_values(d, x);
    draw_values(d, like);
}

#define EXACT .exact = true, .exact_gradients = true

const proof_case proof_reductions[] = {
    {"sum", over_dims, EXACT}, {"mean", over_dims},     {"sum_to", to_shape, EXACT},
    {"spread", spread, EXACT}, {"spread_mean", spread}, {NULL},
};
