/* Gradients beside finite differences, on one rank in f64. */
#include "elements.h"
#include "place.h"

#include <tessera/sys/status.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DRAWS 6

/* Central differences over STEP and half of it. Offsets of values are 0.4 / 4099 apart, so that no
 * tie lies within a step. */
#define STEP 0x1p-15

typedef struct difference {
    proof p;
    whole dout;
    double direction[OPERANDS][ELEMENTS];
} difference;

/* A number from -1 to 1. */
static double draw_unit(draw *d)
{
    return (double)(draw_next(d) % 4001) / 2000 - 1;
}

static bool has_gradient(const proof *p, int operand)
{
    return !proof_is_integer(p, operand) && !(p->line->constants >> operand & 1);
}

/* Moves values of floats apart, by less than what lies between integers, and draws a direction. */
static void draw_point(difference *f)
{
    draw d = {f->p.seed, 0};
    for (int i = 0; i < f->p.operand_count; i++) {
        whole *const w = &f->p.operands[i];
        if (proof_is_integer(&f->p, i))
            continue;
        w->dtype = TSR_F64;
        for (int64_t k = 0; k < w->count; k++) {
            f->direction[i][k] = has_gradient(&f->p, i) ? draw_unit(&d) : 0;
            w->values[k] += 0.05 + 0.4 * (double)((k + ELEMENTS * i) * 1009 % 4099) / 4099;
        }
    }
}

/* <dout, f(x + step * direction)>, and the sum of sizes of its terms. */
static tsr_status evaluate(const difference *f, double step, double *out, double *size)
{
    static const tsr_placement replicated[TSR_MAX_DIMS];
    tsr_dtensor *operands[OPERANDS] = {NULL}, *memory[OPERANDS] = {NULL}, *results[TSR_OP_MOST_RESULTS] = {NULL};
    tsr_attribute attributes[TSR_OP_MOST_ATTRIBUTES];
    tsr_status status = TSR_OK;
    for (int i = 0; i < f->p.operand_count && status == TSR_OK; i++) {
        whole moved = f->p.operands[i];
        for (int64_t k = 0; k < moved.count && !proof_is_integer(&f->p, i); k++)
            moved.values[k] += step * f->direction[i][k];
        if (moved.dtype != TSR_DTYPE_NONE)
            status = place_whole(&f->p, f->p.alone, replicated, &moved, 0, &memory[i], &operands[i]);
    }
    if (status == TSR_OK)
        status = tsr_op_call(f->p.op, (size_t)f->p.attribute_count, attributes_on(&f->p, f->p.alone, attributes),
                             (const tsr_dtensor *const *)operands, results);
    *out = *size = 0;
    for (int64_t k = 0; status == TSR_OK && k < f->dout.count; k++) {
        const tsr_tensor y = tsr_dtensor_to_local(results[0]);
        const double term = f->dout.values[k] * element_get(y.data, y.dtype, element_place(&y, k));
        *out += term;
        *size += fabs(term);
    }
    for (int i = 0; i < TSR_OP_MOST_RESULTS; i++)
        tsr_dtensor_destroy(results[i]);
    for (int i = 0; i < OPERANDS; i++) {
        tsr_dtensor_destroy(operands[i]);
        tsr_dtensor_destroy(memory[i]);
    }
    return status;
}

/* <gradient, direction>, and the sum of sizes of its terms. */
static void project(const difference *f, tsr_dtensor *const *gradients, double *out, double *size)
{
    *out = *size = 0;
    for (int i = 0; i < f->p.operand_count; i++) {
        for (int64_t k = 0; gradients[i] && k < f->p.operands[i].count; k++) {
            const tsr_tensor g = tsr_dtensor_to_local(gradients[i]);
            const double term = f->direction[i][k] * element_get(g.data, g.dtype, element_place(&g, k));
            *out += term;
            *size += fabs(term);
        }
    }
}

/* Draws dout for the first result, whose layout is given. */
static void draw_dout(difference *f, const tsr_layout *layout)
{
    draw d = {f->p.seed + 1, 0};
    f->dout.dtype = TSR_F64;
    set_shape(&f->dout, tsr_layout_ndim(layout), tsr_layout_shape(layout));
    draw_values(&d, &f->dout);
    for (int64_t k = 0; k < f->dout.count; k++)
        f->dout.values[k] = draw_unit(&d);
}

/* `*out` is <gradient, direction>; NAN: the op has no gradient at these operands. */
static tsr_status differentiate(difference *f, tsr_dtensor *const *operands, double *out, double *size)
{
    static const tsr_placement replicated[TSR_MAX_DIMS];
    const size_t count = (size_t)f->p.attribute_count;
    const tsr_layout *layouts[OPERANDS] = {NULL};
    tsr_dtensor *gradients[OPERANDS] = {NULL}, **wanted[OPERANDS] = {NULL}, *dout = NULL, *memory = NULL;
    tsr_attribute attributes[TSR_OP_MOST_ATTRIBUTES];
    tsr_layout *layout;
    attributes_on(&f->p, f->p.alone, attributes);
    bool any = false;
    for (int i = 0; i < f->p.operand_count; i++) {
        layouts[i] = operands[i] ? tsr_dtensor_layout(operands[i]) : NULL;
        wanted[i] = has_gradient(&f->p, i) ? &gradients[i] : NULL;
        any |= wanted[i] != NULL;
    }
    *out = (double)NAN;
    if (!any || tsr_op_gradient_layout(f->p.op, count, attributes, layouts, &layout) != TSR_OK)
        return TSR_OK;
    const bool is_float = tsr_layout_dtype(layout) == TSR_F64;
    draw_dout(f, layout);
    tsr_layout_destroy(layout);
    if (!is_float)
        return TSR_OK;
    tsr_status status = place_whole(&f->p, f->p.alone, replicated, &f->dout, 0, &memory, &dout);
    if (status == TSR_OK)
        status = tsr_op_backward(f->p.op, count, attributes, (const tsr_dtensor *const *)operands, dout, wanted);
    if (status == TSR_OK)
        project(f, gradients, out, size);
    for (int i = 0; i < OPERANDS; i++)
        tsr_dtensor_destroy(gradients[i]);
    tsr_dtensor_destroy(dout);
    tsr_dtensor_destroy(memory);
    return status;
}

/* <gradient, direction> at the point. */
static tsr_status find_slope(difference *f, double *out, double *size)
{
    static const tsr_placement replicated[TSR_MAX_DIMS];
    tsr_dtensor *operands[OPERANDS] = {NULL}, *memory[OPERANDS] = {NULL};
    tsr_status status = TSR_OK;
    for (int i = 0; i < f->p.operand_count && status == TSR_OK; i++) {
        if (f->p.operands[i].dtype != TSR_DTYPE_NONE)
            status = place_whole(&f->p, f->p.alone, replicated, &f->p.operands[i], 0, &memory[i], &operands[i]);
    }
    if (status == TSR_OK)
        status = differentiate(f, operands, out, size);
    for (int i = 0; i < OPERANDS; i++) {
        tsr_dtensor_destroy(operands[i]);
        tsr_dtensor_destroy(memory[i]);
    }
    return status;
}

/* The error of the finer difference is a third of what it is apart from the coarser one, and the
 * rounding of values, of a few units each, over its step. */
static tsr_status compare_slopes(difference *f, int *differences)
{
    double slope = 0, slope_size = 0, value[4], size;
    TSR_TRY(find_slope(f, &slope, &slope_size));
    if (isnan(slope) && slope_size == 0)
        return TSR_OK;
    for (int i = 0; i < 4; i++)
        TSR_TRY(evaluate(f, (i & 1 ? -STEP : STEP) / (i < 2 ? 1 : 2), &value[i], &size));
    const double coarse = (value[0] - value[1]) / (2 * STEP), fine = (value[2] - value[3]) / STEP;
    const double rounding = 16 * DBL_EPSILON * (size / STEP + slope_size);
    /* Such as those of a max of nothing. */
    if (!isfinite(fine))
        return TSR_OK;
    ++*differences;
    if (fabs(fine - slope) <= fabs(coarse - fine) + rounding)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_INTERNAL, "%s: gradient along a direction is %.17g, and by differences %.17g (%.17g)",
                          f->p.info.name, slope, fine, coarse);
}

typedef struct assignment {
    const proof_case *lines;
    int times, differences;
} assignment;

static tsr_status prove_line(difference *f, assignment *a)
{
    draw d = {strlen(f->p.line->op), 0};
    TSR_TRY(tsr_op_find(NULL, f->p.line->op, &f->p.op));
    tsr_op_describe(f->p.op, &f->p.info);
    if (!f->p.info.has_gradient || f->p.line->no_differences)
        return TSR_OK;
    for (f->p.operand_count = 0; f->p.info.operands[f->p.operand_count];)
        f->p.operand_count++;
    for (int n = 0; n < DRAWS * a->times; n++) {
        f->p.seed = draw_next(&d);
        f->p.before.state = draw_next(&d);
        draw_case(&f->p, 0);
        bool floats = false;
        for (int i = 0; i < f->p.operand_count; i++)
            floats |= has_gradient(&f->p, i);
        draw_point(f);
        if (floats)
            TSR_TRY(compare_slopes(f, &a->differences));
    }
    return TSR_OK;
}

static tsr_status prove_all(tsr_comm *comm, void *arg)
{
    assignment *const a = arg;
    difference *const f = calloc(1, sizeof *f);
    if (!f)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for a proof");
    tsr_status status = tsr_mesh_parse(comm, NULL, "1", &f->p.mesh);
    f->p.alone = f->p.mesh;
    for (f->p.line = a->lines; f->p.line->op && status == TSR_OK; f->p.line++)
        status = prove_line(f, a);
    tsr_mesh_destroy(f->p.mesh);
    free(f);
    return status;
}

tsr_status prove_differences(const proof_case *lines, int times, proof_counts *counts)
{
    assignment a = {lines, times, 0};
    TSR_TRY(tsr_threads_run(1, prove_all, &a, NULL));
    counts->differences += a.differences;
    return TSR_OK;
}
