#include "proof.h"

#include <math.h>
#include <string.h>

static tsr_dtype draw_dtype(draw *d)
{
    return draw_below(d, 2) ? TSR_F32 : TSR_F64;
}

/* Operands of one shape, and one of their dims. */
static void along_dim(draw *d, proof *p)
{
    whole full;
    draw_full(d, &full);
    proof_attribute(p, "dim")->integer = draw_below(d, full.ndim + 1) - 1;
    const tsr_dtype dtype = draw_dtype(d);
    for (int i = 0; i < p->operand_count; i++) {
        set_shape(&p->operands[i], full.ndim, full.shape);
        p->operands[i].dtype = dtype;
        draw_values(d, &p->operands[i]);
    }
}

/* x, and dims of it; a gradient has, around x, operands of the shape of a norm. */
static void over_dims(draw *d, proof *p)
{
    const bool gradient = p->operand_count == 3;
    whole *const x = &p->operands[gradient ? 1 : 0];
    tsr_attribute *const dims = proof_attribute(p, "dim");
    const bool keep = draw_below(d, 2);
    draw_full(d, x);
    x->dtype = draw_dtype(d);
    draw_values(d, x);
    dims->count = 0;
    for (int dim = x->ndim - 1; dim >= 0; dim--) {
        if (draw_below(d, 2))
            dims->list[dims->count++] = dim;
    }
    proof_attribute(p, "keep")->integer = keep;
    if (p->attribute_count == 3)
        proof_attribute(p, "p")->number = (const double[]){1, 2, (double)INFINITY}[draw_below(d, 3)];
    for (int i = 0; gradient && i < 3; i += 2) {
        whole *const w = &p->operands[i];
        w->dtype = x->dtype;
        w->ndim = 0;
        for (int dim = 0; dim < x->ndim; dim++) {
            bool listed = dims->count == 0;
            for (int j = 0; j < dims->count; j++)
                listed |= dims->list[j] == dim;
            if (!listed || keep)
                w->shape[w->ndim++] = listed ? 1 : x->shape[dim];
        }
        draw_positive(d, w);
    }
}

/* x, and in front of it dout of a gradient; behind it weight and bias, each of which may be left
 * out. */
static void normalized(draw *d, proof *p)
{
    whole full;
    do
        draw_full(d, &full);
    while (full.ndim == 0);
    const tsr_dtype dtype = draw_dtype(d);
    const int dims = 1 + draw_below(d, full.ndim > 1 ? 2 : 1);
    const int elements = strcmp(p->info.operands[0], "dout") == 0 ? 2 : 1;
    proof_attribute(p, "dims")->integer = dims;
    proof_attribute(p, "epsilon")->number = draw_below(d, 2) ? 0.5 : 1;
    for (int i = 0; i < p->operand_count; i++) {
        whole *const w = &p->operands[i];
        const int ndim = i < elements ? full.ndim : dims;
        w->dtype = i >= elements && draw_below(d, 4) == 0 ? TSR_DTYPE_NONE : dtype;
        if (w->dtype == TSR_DTYPE_NONE)
            continue;
        set_shape(w, ndim, full.shape + full.ndim - ndim);
        draw_values(d, w);
    }
}

const proof_case proof_norms[] = {
    {"softmax", along_dim, .inexact = true, .strict = STRICT_VALUES},
    {"log_softmax", along_dim, .inexact = true, .strict = STRICT_VALUES},
    {"logsumexp", over_dims, .inexact = true, .strict = STRICT_MONOTONE},
    {"norm", over_dims, .inexact = true, .strict = STRICT_VALUES},
    {"rms_norm", normalized, .inexact = true},
    {"layer_norm", normalized, .inexact = true},
    {"softmax_gradient", along_dim, .inexact = true, .strict = STRICT_VALUES},
    {"log_softmax_gradient", along_dim, .inexact = true, .strict = STRICT_VALUES},
    {"norm_gradient", over_dims, .inexact = true, .strict = STRICT_VALUES},
    {"rms_norm_gradient", normalized, .inexact = true, .strict = STRICT_VALUES},
    {"layer_norm_gradient", normalized, .inexact = true, .strict = STRICT_VALUES},
    {NULL},
};
