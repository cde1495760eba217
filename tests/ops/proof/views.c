#include "proof.h"

#include <string.h>

static const tsr_dtype dtypes[] = {TSR_F32, TSR_F64, TSR_BOOL, TSR_I32};

/* An operand of a shape. */
static void draw_operand(draw *d, whole *x, int ndim, const int64_t *shape, tsr_dtype dtype)
{
    set_shape(x, ndim, shape);
    x->dtype = dtype;
    draw_values(d, x);
}

/* A tensor with a dim at least. */
static void draw_some(draw *d, whole *full, int least)
{
    do
        draw_full(d, full);
    while (full->ndim < least);
}

static void two_dims(draw *d, proof *p)
{
    whole full;
    draw_some(d, &full, 1);
    proof_attribute(p, "dim0")->integer = draw_below(d, full.ndim + 1) - 1;
    proof_attribute(p, "dim1")->integer = draw_below(d, full.ndim);
    draw_operand(d, &p->operands[0], full.ndim, full.shape, dtypes[draw_below(d, 4)]);
}

static void order(draw *d, proof *p)
{
    whole full;
    tsr_attribute *const dims = proof_attribute(p, "dims");
    draw_full(d, &full);
    dims->count = full.ndim;
    for (int dim = 0; dim < full.ndim; dim++) {
        const int other = draw_below(d, dim + 1);
        dims->list[dim] = dims->list[other];
        dims->list[other] = dim;
    }
    draw_operand(d, &p->operands[0], full.ndim, full.shape, dtypes[draw_below(d, 4)]);
}

/* Splits a number into factors at random. */
static int draw_factors(draw *d, int64_t count, int64_t *shape)
{
    int ndim = 0;
    while (count > 1 && ndim < 3) {
        int64_t factor = 1 + draw_below(d, (int)count);
        while (count % factor)
            factor--;
        shape[ndim++] = factor;
        count /= factor;
    }
    shape[ndim++] = count;
    return ndim;
}

static void shapes(draw *d, proof *p)
{
    static const int counts[] = {24, 16, 36, 30, 1, 64, 12};
    int64_t from[TSR_MAX_DIMS], to[TSR_MAX_DIMS];
    const int64_t count = counts[draw_below(d, 7)];
    int from_ndim = draw_factors(d, count, from), to_ndim = draw_factors(d, count, to);
    if (draw_below(d, 3) == 0) {
        /* An outer or an inner dim that both have. */
        from[from_ndim++] = to[to_ndim++] = 1 + draw_below(d, 4);
    }
    if (draw_below(d, 12) == 0)
        from[draw_below(d, from_ndim)] = to[draw_below(d, to_ndim)] = 0;
    const tsr_dtype dtype = dtypes[draw_below(d, 4)];
    draw_operand(d, &p->operands[0], from_ndim, from, dtype);
    if (p->operand_count > 1) {
        draw_operand(d, &p->operands[1], to_ndim, to, dtype);
        return;
    }
    tsr_attribute *const shape = proof_attribute(p, "shape");
    *shape = tsr_attribute_ints("shape", to_ndim, to);
    const int open = draw_below(d, to_ndim);
    if (draw_below(d, 2) && p->operands[0].count > 0)
        shape->list[open] = -1;
}

static void expand(draw *d, proof *p)
{
    whole full, *const x = &p->operands[0];
    draw_full(d, &full);
    draw_repeated(d, &full, false, x);
    *proof_attribute(p, "shape") = tsr_attribute_ints("shape", full.ndim, full.shape);
    x->dtype = dtypes[draw_below(d, 4)];
    draw_values(d, x);
}

static void squeeze(draw *d, proof *p)
{
    whole full;
    tsr_attribute *const dims = proof_attribute(p, "dim");
    draw_full(d, &full);
    dims->count = 0;
    for (int dim = 0; dim < full.ndim; dim++) {
        if (draw_below(d, 2)) {
            full.shape[dim] = 1;
            if (draw_below(d, 2))
                dims->list[dims->count++] = dim;
        }
    }
    draw_operand(d, &p->operands[0], full.ndim, full.shape, dtypes[draw_below(d, 4)]);
}

static void unsqueeze(draw *d, proof *p)
{
    whole full;
    draw_full(d, &full);
    proof_attribute(p, "dim")->integer = draw_below(d, full.ndim + 2) - 1;
    draw_operand(d, &p->operands[0], full.ndim, full.shape, dtypes[draw_below(d, 4)]);
}

/* The gradient of a squeeze, and what was squeezed. */
static void squeeze_back(draw *d, proof *p)
{
    bool listed[TSR_MAX_DIMS] = {false};
    int64_t left[TSR_MAX_DIMS];
    int count = 0;
    squeeze(d, p);
    const whole x = p->operands[0];
    const tsr_attribute *const dims = proof_attribute(p, "dim");
    for (int i = 0; i < dims->count; i++)
        listed[dims->list[i]] = true;
    for (int dim = 0; dim < x.ndim; dim++) {
        if (x.shape[dim] != 1 || (dims->count > 0 && !listed[dim]))
            left[count++] = x.shape[dim];
    }
    draw_operand(d, &p->operands[1], x.ndim, x.shape, x.dtype);
    draw_operand(d, &p->operands[0], count, left, x.dtype);
}

/* The gradient of an unsqueeze. */
static void unsqueeze_back(draw *d, proof *p)
{
    whole full;
    draw_some(d, &full, 1);
    const int dim = draw_below(d, full.ndim);
    full.shape[dim] = 1;
    proof_attribute(p, "dim")->integer = dim == full.ndim - 1 && draw_below(d, 2) ? -1 : dim;
    draw_operand(d, &p->operands[0], full.ndim, full.shape, dtypes[draw_below(d, 4)]);
}

/* A dim, and a range of it. */
typedef struct range {
    whole full;
    int dim;
    int64_t start, end;
} range;

static void draw_range(draw *d, proof *p, range *out)
{
    draw_some(d, &out->full, 1);
    out->dim = draw_below(d, out->full.ndim);
    if (draw_below(d, 2))
        out->full.shape[out->dim] = 8;
    const int64_t size = out->full.shape[out->dim];
    out->start = draw_below(d, 2) ? 0 : draw_below(d, (int)size + 1);
    out->end = draw_below(d, 3) == 0 ? size : out->start + draw_below(d, (int)(size - out->start) + 1);
    tsr_attribute *const dim = proof_attribute(p, "dim");
    dim->integer = out->dim == out->full.ndim - 1 && draw_below(d, 2) ? -1 : out->dim;
}

/* Makes the dims of a range's tensor `most` at most, so that results have no more than ELEMENTS. */
static void bound_dims(range *r, int64_t most)
{
    for (int dim = 0; dim < r->full.ndim; dim++)
        r->full.shape[dim] = r->full.shape[dim] > most ? most : r->full.shape[dim];
}

static void slice(draw *d, proof *p)
{
    range r;
    draw_range(d, p, &r);
    const int64_t step = draw_below(d, 2) ? 1 : 1 + draw_below(d, 3);
    proof_attribute(p, "start")->integer = r.start;
    proof_attribute(p, "step")->integer = step;
    proof_attribute(p, "end")->integer = r.end == r.full.shape[r.dim] && draw_below(d, 2) ? INT64_MAX : r.end;
    const tsr_dtype dtype = dtypes[draw_below(d, 4)];
    whole *const last = &p->operands[p->operand_count - 1];
    draw_operand(d, last, r.full.ndim, r.full.shape, dtype);
    r.full.shape[r.dim] = (r.end - r.start + step - 1) / step;
    if (p->operand_count > 1)
        draw_operand(d, &p->operands[0], r.full.ndim, r.full.shape, dtype);
}

static void narrow(draw *d, proof *p)
{
    range r;
    draw_range(d, p, &r);
    proof_attribute(p, "start")->integer = r.start;
    proof_attribute(p, "length")->integer = r.end - r.start;
    const tsr_dtype dtype = dtypes[draw_below(d, 4)];
    draw_operand(d, &p->operands[p->operand_count - 1], r.full.ndim, r.full.shape, dtype);
    r.full.shape[r.dim] = r.end - r.start;
    if (p->operand_count > 1)
        draw_operand(d, &p->operands[0], r.full.ndim, r.full.shape, dtype);
}

/* A tensor, and another one that is as long as a part of it. */
static void draw_part(draw *d, proof *p, const char *start)
{
    range r;
    draw_range(d, p, &r);
    if (start)
        proof_attribute(p, start)->integer = r.start;
    const tsr_dtype dtype = dtypes[draw_below(d, 4)];
    draw_operand(d, &p->operands[0], r.full.ndim, r.full.shape, dtype);
    r.full.shape[r.dim] = r.end - r.start;
    draw_operand(d, &p->operands[1], r.full.ndim, r.full.shape, dtype);
}

static void slice_like(draw *d, proof *p)
{
    draw_part(d, p, "start");
}

static void pad_gradient(draw *d, proof *p)
{
    draw_part(d, p, "before");
}

static void rest(draw *d, proof *p)
{
    draw_part(d, p, NULL);
    if (draw_below(d, 8) == 0)
        p->operands[1].dtype = TSR_DTYPE_NONE;
}

static void concat(draw *d, proof *p)
{
    range r;
    draw_range(d, p, &r);
    const tsr_dtype dtype = dtypes[draw_below(d, 4)];
    const int count = 1 + draw_below(d, draw_below(d, 4) ? 3 : p->operand_count);
    const int64_t size = draw_below(d, 2) ? draw_below(d, 7) : -1;
    bound_dims(&r, 3);
    for (int i = 0; i < p->operand_count; i++) {
        r.full.shape[r.dim] = size >= 0 ? size : draw_below(d, 7);
        draw_operand(d, &p->operands[i], r.full.ndim, r.full.shape, dtype);
        if (i >= count || (i > 0 && i + 1 < count && draw_below(d, 8) == 0))
            p->operands[i].dtype = TSR_DTYPE_NONE;
    }
}

static void pad(draw *d, proof *p)
{
    range r;
    draw_range(d, p, &r);
    proof_attribute(p, "before")->integer = draw_below(d, 2) ? 0 : draw_below(d, 4);
    proof_attribute(p, "after")->integer = draw_below(d, 4);
    proof_attribute(p, "value")->number = draw_below(d, 2);
    bound_dims(&r, 6);
    draw_operand(d, &p->operands[0], r.full.ndim, r.full.shape, dtypes[draw_below(d, 4)]);
}

static void flip(draw *d, proof *p)
{
    whole full;
    tsr_attribute *const dims = proof_attribute(p, "dim");
    draw_full(d, &full);
    dims->count = 0;
    for (int dim = full.ndim - 1; dim >= 0; dim--) {
        if (draw_below(d, 3) == 0)
            dims->list[dims->count++] = dim;
    }
    draw_operand(d, &p->operands[0], full.ndim, full.shape, dtypes[draw_below(d, 4)]);
}

static void roll(draw *d, proof *p)
{
    range r;
    draw_range(d, p, &r);
    proof_attribute(p, "shift")->integer = draw_below(d, 21) - 10;
    draw_operand(d, &p->operands[0], r.full.ndim, r.full.shape, dtypes[draw_below(d, 4)]);
}

static void mask(draw *d, proof *p)
{
    whole full;
    draw_some(d, &full, 2);
    proof_attribute(p, "diagonal")->integer = draw_below(d, 7) - 3;
    draw_operand(d, &p->operands[0], full.ndim, full.shape, dtypes[draw_below(d, 4)]);
}

#define EXACT .exact = true, .exact_gradients = true

const proof_case proof_views[] = {
    {"reshape", shapes, EXACT},
    {"transpose", two_dims, EXACT},
    {"permute", order, EXACT},
    {"expand", expand, EXACT},
    {"squeeze", squeeze, EXACT},
    {"unsqueeze", unsqueeze, EXACT},
    {"slice", slice, EXACT, .strict = STRICT_VALUES},
    {"narrow", narrow, EXACT, .strict = STRICT_VALUES},
    {"concat", concat, EXACT, .strict = STRICT_VALUES},
    {"pad", pad, EXACT, .strict = STRICT_MONOTONE},
    {"flip", flip, EXACT, .strict = STRICT_VALUES},
    {"roll", roll, EXACT, .strict = STRICT_VALUES},
    {"tril", mask, EXACT, .strict = STRICT_VALUES},
    {"triu", mask, EXACT, .strict = STRICT_VALUES},
    {"reshape_like", shapes, EXACT, .strict = STRICT_LIKE},
    {"squeeze_back", squeeze_back, EXACT, .strict = STRICT_LIKE},
    {"unsqueeze_back", unsqueeze_back, EXACT, .strict = STRICT_LIKE},
    {"permute_back", order, EXACT, .strict = STRICT_LIKE},
    {"roll_back", roll, EXACT, .strict = STRICT_LIKE},
    {"slice_gradient", slice, EXACT, .strict = STRICT_LIKE},
    {"narrow_gradient", narrow, EXACT, .strict = STRICT_LIKE},
    {"slice_like", slice_like, EXACT, .strict = STRICT_LIKE},
    {"pad_gradient", pad_gradient, EXACT, .strict = STRICT_LIKE},
    {"rest", rest, EXACT, .strict = STRICT_LIKE},
    {NULL},
};
