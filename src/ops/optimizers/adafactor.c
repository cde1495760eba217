/* Adafactor: the squares of gradients are kept as their means over rows and over columns. What
 * ranks sum is summed of all parameters at once, so that the moves share exchanges: first means and
 * norms of weights, then the mean of the rows' means, then norms of updates. */
#include "ops/optimizers/adafactor.h"

#include "ops/optimizers/values.h"

#include <tessera/program_ops.h>
#include <tessera/sys/memory.h>

#include <float.h>
#include <math.h>

/* A mean of squares over one dim, which is kept as a state. */
typedef struct factor {
    tsr_layout *layout;
    tsr_value sum, state, next;
} factor;

/* One parameter, on its way through the steps below. */
typedef struct adaptation {
    tsr_update *u;
    int ndim;
    double count; /* of elements */
    factor row, column;
    tsr_value weight_sum, row_sum, step, step_sum; /* sums of squares of the weight and of the step */
    tsr_value variance, next;                      /* the state of a vector */
} adaptation;

static double find_epsilon(const tsr_update *u)
{
    const double given = u->in->options->epsilon;
    return given != 0 ? given : tsr_layout_dtype(u->layout) == TSR_F64 ? DBL_EPSILON : FLT_EPSILON;
}

/* The layout of a parameter's tensor with one of the last two dims made 1, and with `both` the
 * other too; what cuts a dim that gets shorter is Replicate. */
static tsr_status shorten(const tsr_layout *layout, int dim, bool both, tsr_layout **out)
{
    tsr_placement placements[TSR_MAX_DIMS];
    int64_t shape[TSR_MAX_DIMS];
    const int ndim = tsr_layout_ndim(layout);
    for (int d = 0; d < ndim; d++)
        shape[d] = d == dim || (both && d >= ndim - 2) ? 1 : tsr_layout_shape(layout)[d];
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(layout)); k++) {
        placements[k] = tsr_layout_placements(layout)[k];
        const int cut = placements[k].kind == TSR_SHARD ? placements[k].dim : -1;
        if (cut >= 0 && shape[cut] != tsr_layout_shape(layout)[cut])
            placements[k] = tsr_replicate();
    }
    return tsr_layout_create(tsr_layout_mesh(layout), placements, ndim, shape, tsr_layout_dtype(layout), out);
}

/* The sum of all squares, an f64, in one pass. */
static tsr_value sum_squares(tsr_program *p, tsr_value x)
{
    return tsr_program_apply(p, "sum_squares", 0, NULL, (const tsr_value[]){x, TSR_NONE}, NULL);
}

/* The sums of squares along a dim, which stays, in f64. */
static tsr_value sum_squares_over(tsr_program *p, tsr_value x, int dim)
{
    const int64_t dims[] = {dim};
    const tsr_attribute attributes[] = {tsr_attribute_ints("dim", 1, dims), tsr_attribute_int("keep", 1)};
    return tsr_program_apply(p, "sum_squares", 2, attributes, (const tsr_value[]){x, TSR_NONE}, NULL);
}

static tsr_value sum_over(tsr_program *p, tsr_value x, int dim)
{
    const int64_t dims[] = {dim};
    return tsr_op_sum(p, x, 1, dims, 1);
}

static tsr_status open_adaptation(adaptation *a, tsr_update *u)
{
    a->u = u;
    tsr_update_begin(u);
    a->ndim = tsr_layout_ndim(u->layout);
    a->count = 1;
    for (int dim = 0; dim < a->ndim; dim++)
        a->count *= (double)tsr_layout_shape(u->layout)[dim];
    if (a->ndim < 2) {
        a->variance = tsr_update_state(u, "variance", u->layout);
        return TSR_OK;
    }
    TSR_TRY(shorten(u->layout, a->ndim - 1, false, &a->row.layout));
    TSR_TRY(shorten(u->layout, a->ndim - 2, false, &a->column.layout));
    a->row.state = tsr_update_state(u, "row_var", a->row.layout);
    a->column.state = tsr_update_state(u, "col_var", a->column.layout);
    return TSR_OK;
}

static void sum_gradient(adaptation *a)
{
    tsr_program *const p = a->u->program;
    a->weight_sum = sum_squares(p, a->u->old);
    if (a->ndim >= 2) {
        a->row.sum = sum_squares_over(p, a->u->gradient, a->ndim - 1);
        a->column.sum = sum_squares_over(p, a->u->gradient, a->ndim - 2);
    } else {
        a->next = tsr_op_square(p, a->u->gradient);
    }
}

static void move_sums(adaptation *a)
{
    tsr_program *const p = a->u->program;
    a->weight_sum = tsr_value_whole(p, a->weight_sum);
    if (a->ndim >= 2) {
        const tsr_dtype dtype = tsr_layout_dtype(a->u->layout);
        const tsr_value row = tsr_value_place(p, a->row.sum, tsr_layout_placements(a->row.layout));
        const tsr_value column = tsr_value_place(p, a->column.sum, tsr_layout_placements(a->column.layout));
        a->row.sum = tsr_program_records(p) ? tsr_value_cast(p, row, dtype) : TSR_NONE;
        a->column.sum = tsr_program_records(p) ? tsr_value_cast(p, column, dtype) : TSR_NONE;
    }
}

/* A state, moved towards a value by 1 - beta2 of this step. */
static tsr_value advance(const tsr_update *u, tsr_value state, tsr_value value)
{
    tsr_program *const p = u->program;
    const tsr_value part = tsr_op_pow(p, u->in->step, tsr_update_wide_constant(u, u->in->options->beta2_decay));
    return tsr_op_add(p, state, tsr_op_mul(p, tsr_op_sub(p, value, state), tsr_update_number(u, part)));
}

static void advance_states(adaptation *a)
{
    const tsr_update *const u = a->u;
    if (a->ndim < 2) {
        a->next = advance(u, a->variance, a->next);
        return;
    }
    const int64_t *const shape = tsr_layout_shape(u->layout);
    const double columns = (double)shape[a->ndim - 1], rows = (double)shape[a->ndim - 2];
    tsr_program *const p = u->program;
    a->row.next = advance(u, a->row.state, tsr_op_scale(p, a->row.sum, 1 / columns));
    a->column.next = advance(u, a->column.state, tsr_op_scale(p, a->column.sum, 1 / rows));
    a->row_sum = sum_over(p, a->row.next, a->ndim - 2);
}

static tsr_status move_row_sum(adaptation *a)
{
    tsr_layout *layout;
    if (a->ndim < 2)
        return TSR_OK;
    TSR_TRY(shorten(a->u->layout, -1, true, &layout));
    a->row_sum = tsr_value_place(a->u->program, a->row_sum, tsr_layout_placements(layout));
    tsr_layout_destroy(layout);
    return TSR_OK;
}

/* The gradient over the root of its estimated mean square. */
static void find_step(adaptation *a)
{
    tsr_program *const p = a->u->program;
    const double epsilon = find_epsilon(a->u);
    tsr_value estimate = a->next;
    if (a->ndim >= 2) {
        const double rows = (double)tsr_layout_shape(a->u->layout)[a->ndim - 2];
        const tsr_value mean = tsr_op_clamp(p, tsr_op_scale(p, a->row_sum, 1 / rows), epsilon, INFINITY);
        estimate = tsr_op_mul(p, tsr_op_div(p, a->row.next, mean), a->column.next);
    }
    const tsr_value root = tsr_op_rsqrt(p, tsr_op_clamp(p, estimate, epsilon * epsilon, INFINITY));
    a->step = tsr_op_mul(p, root, a->u->gradient);
    a->step_sum = sum_squares(p, a->step);
}

/* The root of a mean of squares, an f64. */
static tsr_value find_root_mean(const adaptation *a, tsr_value sum)
{
    tsr_program *const p = a->u->program;
    return tsr_op_sqrt(p, tsr_op_scale(p, tsr_scalar_on(p, sum, tsr_value_layout(p, a->u->in->rate)), 1 / a->count));
}

static void finish(adaptation *a)
{
    const tsr_update *const u = a->u;
    const tsr_optimizer_options *const o = u->in->options;
    tsr_program *const p = u->program;
    const tsr_value one = tsr_update_wide_constant(u, 1);
    const tsr_value most = tsr_op_minimum(p, u->in->rate, tsr_op_div(p, one, tsr_op_sqrt(p, u->in->step)));
    const tsr_value scale = tsr_op_clamp(p, find_root_mean(a, a->weight_sum), o->least_scale, INFINITY);
    const tsr_value excess = tsr_op_scale(p, find_root_mean(a, a->step_sum), 1 / o->threshold);
    const tsr_value rate = tsr_op_div(p, tsr_op_mul(p, scale, most), tsr_op_clamp(p, excess, 1, INFINITY));
    const tsr_value change = tsr_op_mul(p, a->step, tsr_update_number(u, rate));
    const tsr_value made = tsr_op_sub(p, tsr_update_decayed(u), change);
    if (a->ndim >= 2) {
        tsr_update_store(u, a->row.state, a->row.next);
        tsr_update_store(u, a->column.state, a->column.next);
    } else {
        tsr_update_store(u, a->variance, a->next);
    }
    tsr_update_finish(a->u, made);
}

static tsr_status record_all(adaptation *all, tsr_update *updates, size_t count)
{
    for (size_t i = 0; i < count; i++)
        TSR_TRY(open_adaptation(&all[i], &updates[i]));
    for (size_t i = 0; i < count; i++)
        sum_gradient(&all[i]);
    for (size_t i = 0; i < count; i++)
        move_sums(&all[i]);
    for (size_t i = 0; i < count; i++)
        advance_states(&all[i]);
    for (size_t i = 0; i < count; i++)
        TSR_TRY(move_row_sum(&all[i]));
    for (size_t i = 0; i < count; i++)
        find_step(&all[i]);
    for (size_t i = 0; i < count; i++)
        all[i].step_sum = tsr_value_whole(updates[i].program, all[i].step_sum);
    for (size_t i = 0; i < count; i++)
        finish(&all[i]);
    return TSR_OK;
}

tsr_status tsr_update_adafactor(tsr_update *updates, size_t count)
{
    void *room;
    tsr_context *const context = updates[0].program->context;
    TSR_TRY(tsr_program_array(context, count, sizeof(adaptation), &room));
    adaptation *const all = room;
    const tsr_status status = record_all(all, updates, count);
    for (size_t i = 0; i < count; i++) {
        tsr_layout_destroy(all[i].row.layout);
        tsr_layout_destroy(all[i].column.layout);
    }
    tsr_release(context, room);
    return status;
}
