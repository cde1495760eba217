#include "proof.h"

#include <string.h>

/* Shapes of small attentions, in f64: q's heads are a multiple of k's, and queries and keys differ
 * in number. The row of the gradient has dout in front, and the gradient row of rope x. */
static void attend(draw *d, proof *p)
{
    static const int64_t groups[] = {1, 1, 1, 2, 3};
    const bool gradient = strcmp(p->line->op, "attention_gradient") == 0;
    const int64_t heads = 1 + draw_below(d, 3), group = groups[draw_below(d, 5)], batch = 1 + draw_below(d, 2);
    const int64_t queries = draw_below(d, 12) ? 1 + draw_below(d, 6) : 0,
                  keys = draw_below(d, 12) ? 1 + draw_below(d, 6) : 0;
    const int64_t dim = 1 + draw_below(d, 3), value_dim = 1 + draw_below(d, 3);
    const int ndim = 3 + draw_below(d, 2);
    whole *const q = &p->operands[gradient], *const k = q + 1, *const v = q + 2;
    set_shape(q, ndim, (int64_t[]){batch, heads * group, queries, dim} + (4 - ndim));
    set_shape(k, ndim, (int64_t[]){draw_below(d, 4) ? batch : 1, heads, keys, dim} + (4 - ndim));
    set_shape(v, ndim, (int64_t[]){batch, heads, keys, value_dim} + (4 - ndim));
    if (gradient)
        set_shape(&p->operands[0], ndim, (int64_t[]){batch, heads * group, queries, value_dim} + (4 - ndim));
    whole *const mask = v + 1;
    const int lacking = draw_below(d, 3);
    if (draw_below(d, 2)) {
        const int64_t of_queries = draw_below(d, 3) ? queries : 1, of_keys = draw_below(d, 3) ? keys : 1;
        const int64_t shape[] = {batch, draw_below(d, 2) ? heads * group : 1, of_queries, of_keys};
        set_shape(mask, 4 - lacking < ndim ? 4 - lacking : ndim, shape + (4 - lacking < ndim ? lacking : 4 - ndim));
        mask->dtype = TSR_BOOL;
        draw_values(d, mask);
    }
    for (int i = 0; i < p->operand_count - 1; i++) {
        p->operands[i].dtype = TSR_F64;
        draw_values(d, &p->operands[i]);
    }
    proof_attribute(p, "causal")->integer = draw_below(d, 2);
    proof_attribute(p, "window")->integer = draw_below(d, 3) ? 0 : 1 + draw_below(d, 4);
    proof_attribute(p, "scale")->number = draw_below(d, 2) ? 0 : 0.25;
}

static void rotate(draw *d, proof *p)
{
    whole *const x = &p->operands[0], *const positions = &p->operands[1];
    const int64_t shape[] = {1 + draw_below(d, 3), 1 + draw_below(d, 6), 1 + draw_below(d, 3),
                             2 + 2 * draw_below(d, 3)};
    set_shape(x, 4, shape);
    set_shape(positions, draw_below(d, 2) ? 2 : 1, shape);
    if (positions->ndim == 1)
        positions->shape[0] = shape[1];
    else if (draw_below(d, 3) == 0)
        positions->shape[0] = 1;
    x->dtype = draw_below(d, 2) ? TSR_F64 : TSR_F32;
    positions->dtype = draw_below(d, 2) ? TSR_I64 : TSR_I32;
    draw_values(d, x);
    draw_ids(d, positions, 1000);
    proof_attribute(p, "base")->number = 100;
}

const proof_case proof_attention[] = {
    {"attention", attend, .inexact = true, .draws = 14},
    {"attention_gradient", attend, .inexact = true, .draws = 14, .strict = STRICT_VALUES},
    {"rope", rotate, .strict = STRICT_VALUES},
    {"rope_gradient", rotate, .strict = STRICT_VALUES},
    {NULL},
};
