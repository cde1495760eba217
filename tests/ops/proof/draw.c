#include "draw.h"

#include <string.h>

uint64_t draw_next(draw *d)
{
    d->state = d->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t x = d->state ^ d->state >> 29;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ x >> 32;
}

int draw_below(draw *d, int bound)
{
    return (int)(draw_next(d) % (uint64_t)bound);
}

void set_shape(whole *out, int ndim, const int64_t *shape)
{
    out->ndim = ndim;
    if (ndim)
        memmove(out->shape, shape, (size_t)ndim * sizeof *shape);
}

void draw_full(draw *d, whole *full)
{
    full->ndim = draw_below(d, 4);
    for (int dim = 0; dim < full->ndim; dim++)
        full->shape[dim] = 1 + draw_below(d, 7);
    if (full->ndim && draw_below(d, 12) == 0)
        full->shape[draw_below(d, full->ndim)] = 0;
}

void draw_repeated(draw *d, const whole *full, bool same, whole *out)
{
    const int missing = same || draw_below(d, 2) ? 0 : draw_below(d, full->ndim + 1);
    out->ndim = full->ndim - missing;
    for (int dim = 0; dim < out->ndim; dim++)
        out->shape[dim] = !same && draw_below(d, 4) == 0 ? 1 : full->shape[missing + dim];
}

/* What draws the values of a tensor. */
static draw draw_stream(draw *d)
{
    return (draw){draw_next(d) ^ d->salt * UINT64_C(0x9e3779b97f4a7c15), 0};
}

static void count(whole *w)
{
    w->count = 1;
    for (int dim = 0; dim < w->ndim; dim++)
        w->count *= w->shape[dim];
}

void draw_values(draw *d, whole *w)
{
    draw values = draw_stream(d);
    count(w);
    for (int64_t i = 0; i < w->count; i++)
        w->values[i] = w->dtype == TSR_BOOL ? draw_below(&values, 2) : draw_below(&values, 9) - 4;
}

void draw_positive(draw *d, whole *w)
{
    static const double powers[] = {1, 2, 4, 0.5};
    draw values = draw_stream(d);
    count(w);
    for (int64_t i = 0; i < w->count; i++)
        w->values[i] = powers[draw_below(&values, w->dtype == TSR_I32 || w->dtype == TSR_I64 ? 3 : 4)];
}

void draw_ids(draw *d, whole *w, int64_t bound)
{
    draw values = draw_stream(d);
    count(w);
    for (int64_t i = 0; i < w->count; i++)
        w->values[i] = bound > 0 ? draw_below(&values, (int)bound) : 0;
}
