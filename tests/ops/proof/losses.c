#include "proof.h"

#include <string.h>

/* Draws reduction, ignore_index and label_smoothing. */
static void draw_attributes(draw *d, proof *p)
{
    static const char *const reductions[] = {"mean", "sum", "none"};
    proof_attribute(p, "reduction")->words = reductions[draw_below(d, 3)];
    proof_attribute(p, "ignore_index")->integer = draw_below(d, 2) ? -100 : TSR_IGNORE_NONE;
    proof_attribute(p, "label_smoothing")->number = draw_below(d, 3) ? 0 : 0.25;
}

/* Draws targets of rows whose dims are those of `rows`; some are ignored if they may be. */
static void draw_targets(draw *d, proof *p, const whole *rows, int64_t classes, whole *targets)
{
    set_shape(targets, rows->ndim, rows->shape);
    targets->dtype = draw_below(d, 2) ? TSR_I64 : TSR_I32;
    draw_ids(d, targets, classes);
    for (int64_t i = 0; proof_attribute(p, "ignore_index")->integer == -100 && i < targets->count; i++)
        targets->values[i] = draw_below(d, 4) ? targets->values[i] : -100;
}

/* Draws up to two dims of rows. */
static void draw_rows(draw *d, whole *rows)
{
    do
        draw_full(d, rows);
    while (rows->ndim > 2);
}

/* A tensor of these rows, with a last dim of `size`. */
static void draw_vectors(draw *d, const whole *rows, int64_t size, tsr_dtype dtype, whole *out)
{
    set_shape(out, rows->ndim, rows->shape);
    out->shape[out->ndim++] = size;
    out->dtype = dtype;
    draw_values(d, out);
}

/* The gradient of a result: a number, or one for each row. */
static void draw_dout(draw *d, const proof *p, const whole *rows, tsr_dtype dtype, whole *out)
{
    set_shape(out, 0, NULL);
    for (int i = 0; p->attributes[i].name; i++) {
        if (strcmp(p->attributes[i].name, "reduction") == 0 && strcmp(p->attributes[i].words, "none") == 0)
            set_shape(out, rows->ndim, rows->shape);
    }
    out->dtype = dtype;
    draw_values(d, out);
}

static void logits(draw *d, proof *p)
{
    whole rows;
    const int64_t classes = 1 + draw_below(d, 9);
    const tsr_dtype dtype = draw_below(d, 2) ? TSR_F32 : TSR_F64;
    const int first = p->operand_count - 2;
    draw_attributes(d, p);
    draw_rows(d, &rows);
    draw_vectors(d, &rows, classes, dtype, &p->operands[first]);
    draw_targets(d, p, &rows, classes, &p->operands[first + 1]);
    if (first)
        draw_dout(d, p, &rows, dtype, &p->operands[0]);
}

static void products(draw *d, proof *p)
{
    whole rows;
    const int64_t classes = 1 + draw_below(d, 9), features = draw_below(d, 5);
    const int64_t weights[] = {classes, features};
    const tsr_dtype dtype = draw_below(d, 2) ? TSR_F32 : TSR_F64;
    const int first = p->operand_count - 3;
    draw_attributes(d, p);
    draw_rows(d, &rows);
    draw_vectors(d, &rows, features, dtype, &p->operands[first]);
    set_shape(&p->operands[first + 1], 2, weights);
    p->operands[first + 1].dtype = dtype;
    draw_values(d, &p->operands[first + 1]);
    draw_targets(d, p, &rows, classes, &p->operands[first + 2]);
    if (first)
        draw_dout(d, p, &rows, dtype, &p->operands[0]);
}

const proof_case proof_losses[] = {
    {"cross_entropy", logits, .inexact = true},
    {"cross_entropy_gradient", logits, .inexact = true, .strict = STRICT_VALUES},
    {"linear_cross_entropy", products, .inexact = true},
    {"linear_cross_entropy_gradient", products, .inexact = true, .strict = STRICT_VALUES},
    {NULL},
};
