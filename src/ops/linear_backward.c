#include <tessera/linear.h>

#include "ops/agreement.h"
#include "ops/blas_guard.h"
#include "ops/layer.h"
#include "ops/rule.h"

#define CALLER "tsr_linear_backward"

static const tsr_rule dx_rule = {CALLER, "dx: b o, o k -> b k", {"dy", "w"}, 1};
static const tsr_rule dw_rule = {CALLER, "dw: b o, b k -> o k", {"dy", "x"}, 1};
static const tsr_rule db_rule = {CALLER, "db: b o -> o", {"dy"}, 0};

/* The local tensors that gradients are made from: dy is (.., o), x (.., k), w (o, k). */
typedef struct locals {
    tsr_tensor dy, x, w;
} locals;

/* One of dx, dw and db, if it is asked for (`out`). */
typedef struct gradient {
    tsr_dtensor **out;
    const tsr_rule *rule;
    const tsr_layout *other;         /* what the rule multiplies dy with; NULL for db */
    const tsr_layout *of;            /* the operand's layout */
    const tsr_placement *placements; /* asked for; NULL: the gradient layout of `of` */
    tsr_status (*compute)(const tsr_matmul_site *site, const locals *from, const tsr_tensor *to);
    tsr_layout *own, *wanted; /* as the rule leaves it, and as the caller gets it */
    bool moves;               /* these differ in more than what is written on mesh dims of size 1 */
    tsr_dtensor *computed, *finished;
} gradient;

typedef struct backward {
    tsr_comm *comm;
    bool inside;
    tsr_layout *y, *dy_layout; /* y as the forward rule leaves it, and its gradient layout */
    const tsr_dtensor *x, *w, *dy;
    gradient gradients[3];
} backward;

static tsr_status compute_dx(const tsr_matmul_site *site, const locals *from, const tsr_tensor *dx)
{
    const tsr_row_blocks blocks = tsr_row_blocks_of(&from->dy, dx);
    for (int64_t i = 0; i < blocks.count; i++) {
        tsr_matrix dy_rows, dx_rows;
        tsr_row_blocks_get(&blocks, i, &dy_rows, &dx_rows);
        TSR_TRY(tsr_matmul(site, dy_rows, tsr_matrix_of(&from->w), dx_rows, false));
    }
    return TSR_OK;
}

static tsr_status compute_dw(const tsr_matmul_site *site, const locals *from, const tsr_tensor *dw)
{
    const tsr_row_blocks blocks = tsr_row_blocks_of(&from->dy, &from->x);
    const tsr_matrix to = tsr_matrix_of(dw);
    for (int64_t i = 0; i < blocks.count; i++) {
        tsr_matrix dy_rows, x_rows;
        tsr_row_blocks_get(&blocks, i, &dy_rows, &x_rows);
        TSR_TRY(tsr_matmul(site, tsr_matrix_transpose(dy_rows), x_rows, to, i > 0));
    }
    return blocks.count > 0 ? TSR_OK : tsr_matrix_fill(site, to, 0);
}

/* Room for as many ones as dy has rows, aligned as what follows it wants to be. */
static size_t ones_bytes(const tsr_tensor *dy)
{
    int64_t rows = 1;
    for (int dim = 0; dim < dy->ndim - 1; dim++)
        rows *= dy->shape[dim];
    return ((size_t)rows * tsr_dtype_bytes(dy->dtype) + 63) / 64 * 64;
}

/* A row of ones times dy adds up its rows, in the same order whenever it is done. The ones lie at the front of the workspace. */
static tsr_status compute_db(const tsr_matmul_site *site, const locals *from, const tsr_tensor *db)
{
    const tsr_row_blocks blocks = tsr_row_blocks_of(&from->dy, &from->dy);
    const tsr_matrix to = tsr_matrix_of(db), ones = {site->workspace, 1, blocks.first.rows, blocks.first.rows, 1};
    if (blocks.count == 0)
        return tsr_matrix_fill(site, to, 0);
    tsr_matmul_site behind = *site;
    behind.workspace = (char *)site->workspace + ones_bytes(&from->dy);
    TSR_TRY(tsr_matrix_fill(site, ones, 1));
    for (int64_t i = 0; i < blocks.count; i++) {
        tsr_matrix dy_rows, same;
        tsr_row_blocks_get(&blocks, i, &dy_rows, &same);
        TSR_TRY(tsr_matmul(&behind, ones, dy_rows, to, i > 0));
    }
    return TSR_OK;
}

static tsr_status check_dy(const backward *call)
{
    const tsr_layout *dy = tsr_dtensor_layout(call->dy), *y = call->y;
    bool fits = tsr_layout_ndim(dy) == tsr_layout_ndim(y) && tsr_layout_dtype(dy) == tsr_layout_dtype(y) &&
                tsr_mesh_ndim(tsr_layout_mesh(dy)) == tsr_mesh_ndim(tsr_layout_mesh(y)) &&
                tsr_mesh_equal(tsr_layout_mesh(dy), tsr_layout_mesh(y));
    for (int dim = 0; fits && dim < tsr_layout_ndim(y); dim++)
        fits = tsr_layout_shape(dy)[dim] == tsr_layout_shape(y)[dim];
    if (!fits)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALLER ": dy is not like the y that x, w and b give; its mesh, dtype and shape must be");
    for (int dim = 0; dim < tsr_mesh_ndim(tsr_layout_mesh(y)); dim++) {
        if (tsr_layout_placements(dy)[dim].kind == TSR_PARTIAL)
            return tsr_status_set(TSR_ERROR_ARGUMENT, CALLER ": dy is Partial on mesh dim %d; a gradient layout has Replicate there", dim);
    }
    return TSR_OK;
}

static tsr_status plan_gradient(const backward *call, gradient *g)
{
    const tsr_layout *const operands[] = {call->dy_layout, g->other};
    TSR_TRY(tsr_rule_apply(g->rule, operands, &g->own));
    TSR_TRY(g->placements ? tsr_layout_with(g->own, g->placements, &g->wanted) : tsr_layout_gradient(g->of, &g->wanted));
    g->moves = !tsr_layout_equal(g->own, g->wanted);
    return TSR_OK;
}

static tsr_status plan_backward(backward *call, const tsr_dtensor *b)
{
    const tsr_layout *x = tsr_dtensor_layout(call->x), *w = tsr_dtensor_layout(call->w);
    TSR_TRY(tsr_linear_propagate(x, w, b ? tsr_dtensor_layout(b) : NULL, &call->y));
    TSR_TRY(tsr_layout_gradient(call->y, &call->dy_layout));
    TSR_TRY(check_dy(call));
    const tsr_tensor local_x = tsr_dtensor_to_local(call->x), local_w = tsr_dtensor_to_local(call->w),
                     local_dy = tsr_dtensor_to_local(call->dy);
    TSR_TRY(tsr_layer_check_devices(CALLER, (const tsr_tensor *[]){&local_x, &local_w, &local_dy}, (const char *[]){"x", "w", "dy"}, 3));
    for (int i = 0; i < 3; i++) {
        if (call->gradients[i].out)
            TSR_TRY(plan_gradient(call, &call->gradients[i]));
    }
    int64_t coordinate[TSR_MAX_DIMS];
    int inside;
    TSR_TRY(tsr_mesh_coordinate(tsr_layout_mesh(call->y), coordinate, &inside));
    call->inside = inside;
    return TSR_OK;
}

/* What any of the three products may want where an operand's strides are not those of a gemm, behind the ones of db. */
static size_t workspace_bytes(const locals *from)
{
    const size_t front = ones_bytes(&from->dy);
    if (tsr_tensor_is_contiguous(&from->dy) && tsr_tensor_is_contiguous(&from->x) && tsr_tensor_is_contiguous(&from->w))
        return front;
    const int64_t rows = (int64_t)(front / tsr_dtype_bytes(from->dy.dtype)), o = from->w.shape[0], k = from->w.shape[1];
    const size_t dx = tsr_matmul_workspace_bytes(from->dy.dtype, rows, k, o), dw = tsr_matmul_workspace_bytes(from->dy.dtype, o, k, rows);
    return front + (dx > dw ? dx : dw);
}

static tsr_status compute_gradient(const tsr_matmul_site *site, const locals *from, bool inside, gradient *g)
{
    TSR_TRY(tsr_dtensor_create(g->moves ? g->own : g->wanted, site->device, &g->computed));
    const tsr_tensor to = tsr_dtensor_to_local(g->computed);
    return inside ? g->compute(site, from, &to) : TSR_OK;
}

/* `dy` is in call->dy_layout. A rank outside the mesh has gradients too, empty ones. */
static tsr_status compute_gradients(backward *call, const tsr_dtensor *dy)
{
    const locals from = {tsr_dtensor_to_local(dy), tsr_dtensor_to_local(call->x), tsr_dtensor_to_local(call->w)};
    tsr_context *context = tsr_mesh_context(tsr_layout_mesh(call->y));
    const size_t bytes = call->inside ? workspace_bytes(&from) : 0;
    tsr_matmul_site site = {.device = from.x.device, .dtype = tsr_layout_dtype(call->y)};
    TSR_TRY(tsr_layer_workspace_create(context, site.device, bytes, &site.workspace));
    tsr_status status = TSR_OK;
    tsr_blas_hold();
    for (int i = 0; i < 3 && status == TSR_OK; i++) {
        if (call->gradients[i].out)
            status = compute_gradient(&site, &from, call->inside, &call->gradients[i]);
    }
    tsr_blas_release();
    tsr_layer_workspace_destroy(context, site.device, site.workspace, bytes);
    return status;
}

/* dy as the products want it: the mirror of the redistribution with which tsr_linear() ended, if there was one. */
static tsr_status align_dy(const backward *call, tsr_dtensor **out)
{
    if (!tsr_layout_equal(tsr_dtensor_layout(call->dy), call->dy_layout))
        return tsr_redistribute(call->dy, tsr_layout_placements(call->dy_layout), out);
    *out = tsr_dtensor_retain((tsr_dtensor *)call->dy);
    return TSR_OK;
}

static tsr_status finish_gradient(gradient *g)
{
    if (g->moves)
        return tsr_redistribute(g->computed, tsr_layout_placements(g->wanted), &g->finished);
    g->finished = tsr_dtensor_retain(g->computed);
    return TSR_OK;
}

/* All ranks go through the same agreements and redistributions, whatever happens on one of them. */
static tsr_status run(backward *call, tsr_status planned)
{
    TSR_TRY(tsr_agree(call->comm, CALLER, planned));
    tsr_dtensor *dy;
    TSR_TRY(align_dy(call, &dy));
    const tsr_status computed = compute_gradients(call, dy);
    tsr_dtensor_destroy(dy);
    TSR_TRY(tsr_agree(call->comm, CALLER, computed));
    for (int i = 0; i < 3; i++) {
        if (call->gradients[i].out)
            TSR_TRY(finish_gradient(&call->gradients[i]));
    }
    return TSR_OK;
}

static void clean_up(backward *call)
{
    for (int i = 0; i < 3; i++) {
        tsr_dtensor_destroy(call->gradients[i].finished);
        tsr_dtensor_destroy(call->gradients[i].computed);
        tsr_layout_destroy(call->gradients[i].wanted);
        tsr_layout_destroy(call->gradients[i].own);
    }
    tsr_layout_destroy(call->dy_layout);
    tsr_layout_destroy(call->y);
}

tsr_status tsr_linear_backward(const tsr_dtensor *x, const tsr_dtensor *w, const tsr_dtensor *b, const tsr_dtensor *dy,
                               const tsr_placement *dx_placements, const tsr_placement *dw_placements, const tsr_placement *db_placements,
                               tsr_dtensor **dx, tsr_dtensor **dw, tsr_dtensor **db)
{
    if (!x || !w || !dy)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALLER ": %s is NULL", !x ? "x" : !w ? "w" : "dy");
    if (db && !b)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALLER ": db is asked for, but b is NULL");
    const tsr_layout *x_layout = tsr_dtensor_layout(x), *w_layout = tsr_dtensor_layout(w);
    backward call = {.comm = tsr_mesh_comm(tsr_layout_mesh(x_layout)), .x = x, .w = w, .dy = dy};
    call.gradients[0] =
        (gradient){.out = dx, .rule = &dx_rule, .other = w_layout, .of = x_layout, .placements = dx_placements, .compute = compute_dx};
    call.gradients[1] =
        (gradient){.out = dw, .rule = &dw_rule, .other = x_layout, .of = w_layout, .placements = dw_placements, .compute = compute_dw};
    call.gradients[2] = (gradient){.out = db, .rule = &db_rule, .placements = db_placements, .compute = compute_db};
    call.gradients[2].of = b ? tsr_dtensor_layout(b) : NULL;
    tsr_status status = plan_backward(&call, b);
    if (!tsr_is_shared_fault(status))
        status = run(&call, status);
    for (int i = 0; i < 3 && status == TSR_OK; i++) {
        if (call.gradients[i].out)
            *call.gradients[i].out = tsr_dtensor_retain(call.gradients[i].finished);
    }
    clean_up(&call);
    return status;
}
