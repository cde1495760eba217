#include "proof.h"

/* What is filled has a dtype of `dtypes`; attributes with defaults stay, but for the key. */
static void draw_random(draw *d, proof *p, const tsr_dtype *dtypes)
{
    whole *const x = &p->operands[0];
    draw_full(d, x);
    x->dtype = dtypes[draw_below(d, 2)];
    draw_values(d, x);
    proof_attribute(p, "generator")->words = draw_below(d, 2) ? "threefry" : "philox";
    proof_attribute(p, "key")->list[0] = draw_below(d, 1000);
    proof_attribute(p, "key")->list[1] = draw_below(d, 1000);
}

static void floats(draw *d, proof *p)
{
    draw_random(d, p, (const tsr_dtype[]){TSR_F32, TSR_F64});
}

static void bools(draw *d, proof *p)
{
    draw_random(d, p, (const tsr_dtype[]){TSR_BOOL, TSR_BOOL});
}

static void integers(draw *d, proof *p)
{
    draw_random(d, p, (const tsr_dtype[]){TSR_I32, TSR_I64});
}

static void range(draw *d, proof *p)
{
    integers(d, p);
    proof_attribute(p, "low")->integer = -3;
    proof_attribute(p, "high")->integer = 1000;
}

#define EXACT .exact = true, .exact_gradients = true

const proof_case proof_random[] = {
    {"uniform", floats, EXACT, .strict = STRICT_LIKE},          {"normal", floats, EXACT, .strict = STRICT_LIKE},
    {"truncated_normal", floats, EXACT, .strict = STRICT_LIKE}, {"bernoulli", bools, EXACT, .strict = STRICT_LIKE},
    {"bits", integers, EXACT, .strict = STRICT_LIKE},           {"randint", range, EXACT, .strict = STRICT_LIKE},
    {"dropout", floats, EXACT, .strict = STRICT_MONOTONE},      {NULL},
};
