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

static void bools_over_dims(draw *d, proof *p)
{
    over_dims(d, p);
    p->operands[0].dtype = TSR_BOOL;
    draw_values(d, &p->operands[0]);
}

/* Floats, and a number that multiplies them, or none. */
static void scaled_over_dims(draw *d, proof *p)
{
    over_dims(d, p);
    p->operands[0].dtype = draw_below(d, 2) ? TSR_F32 : TSR_F64;
    if (p->operand_count == 1)
        return;
    set_shape(&p->operands[1], 0, NULL);
    p->operands[1].dtype = p->operands[0].dtype;
    draw_positive(d, &p->operands[1]);
    if (draw_below(d, 2))
        p->operands[1].dtype = TSR_DTYPE_NONE;
}

static void floats_over_dims(draw *d, proof *p)
{
    over_dims(d, p);
    p->operands[0].dtype = draw_below(d, 2) ? TSR_F32 : TSR_F64;
    proof_attribute(p, "correction")->number = draw_below(d, 2);
}

/* Values of which products are exact: mostly 1, with few zeros. */
static void draw_factors(draw *d, whole *x)
{
    static const double factors[] = {1, 1, 1, 1, -1, 2, 0.5, 1};
    draw_values(d, x);
    const bool is_float = x->dtype == TSR_F32 || x->dtype == TSR_F64;
    for (int64_t i = 0; i < x->count; i++)
        x->values[i] = draw_below(d, 40) == 0 ? 0 : factors[draw_below(d, is_float ? 8 : 6)];
}

static void factors_over_dims(draw *d, proof *p)
{
    over_dims(d, p);
    draw_factors(d, &p->operands[0]);
}

static void along_dim(draw *d, proof *p)
{
    whole *const x = &p->operands[0];
    draw_full(d, x);
    proof_attribute(p, "dim")->integer = draw_below(d, x->ndim + 1) - 1;
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

/* A reduction's gradient, which is a power of two so that shares are exact where few elements are
 * equal, and what is reduced. */
static void shares(draw *d, proof *p)
{
    spread(d, p);
    p->operands[0].dtype = p->operands[1].dtype = draw_below(d, 2) ? TSR_F32 : TSR_F64;
    draw_values(d, &p->operands[0]);
    draw_values(d, &p->operands[1]);
}

static void factor_shares(draw *d, proof *p)
{
    shares(d, p);
    draw_factors(d, &p->operands[1]);
}

#define EXACT .exact = true, .exact_gradients = true

const proof_case proof_reductions[] = {
    {"sum", over_dims, EXACT, .strict = STRICT_MONOTONE},
    {"mean", over_dims, .strict = STRICT_VALUES},
    {"max", over_dims, .exact = true, .strict = STRICT_VALUES},
    {"min", over_dims, .exact = true, .strict = STRICT_VALUES},
    {"prod", factors_over_dims, EXACT, .strict = STRICT_MONOTONE},
    {"any", bools_over_dims, EXACT, .strict = STRICT_VALUES},
    {"all", bools_over_dims, EXACT, .strict = STRICT_VALUES},
    {"sum_squares", scaled_over_dims, EXACT, .constants = 3, .strict = STRICT_VALUES},
    {"all_finite", scaled_over_dims, EXACT, .constants = 1, .strict = STRICT_VALUES},
    {"argmax", along_dim, EXACT, .strict = STRICT_VALUES},
    {"argmin", along_dim, EXACT, .strict = STRICT_VALUES},
    {"var", floats_over_dims, .inexact = true, .strict = STRICT_VALUES},
    {"std", floats_over_dims, .inexact = true, .strict = STRICT_VALUES},
    {"var_gradient", shares, .inexact = true, .strict = STRICT_VALUES},
    {"std_gradient", shares, .inexact = true, .strict = STRICT_VALUES},
    {"max_gradient", shares, .strict = STRICT_VALUES},
    {"min_gradient", shares, .strict = STRICT_VALUES},
    {"prod_gradient", factor_shares, .exact = true, .strict = STRICT_VALUES},
    {"sum_to", to_shape, EXACT, .strict = STRICT_MONOTONE},
    {"spread", spread, EXACT, .strict = STRICT_LIKE},
    {"spread_mean", spread, .strict = STRICT_LIKE},
    {NULL},
};
