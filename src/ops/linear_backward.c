#include "ops/agreement.h"
#include "ops/gradients.h"
#include "ops/layer.h"
#include "ops/numbers.h"
#include "ops/rule.h"

#include <tessera/linear.h>
#include <tessera/sys/comm.h>
#include <tessera/values.h>

/* One of dx, dw and db. */
typedef struct gradient {
    bool asked;                       /* the caller wants it, in a new dtensor or in `to` */
    tsr_dtensor *to;                  /* the caller's dtensor; NULL: a new one is made */
    bool adds;                        /* the gradient is added to what `to` holds */
    const tsr_layout *of;             /* the layout of the operand whose gradient this is */
    const tsr_placement *placements;  /* those that the caller asks for; NULL: those of the gradient layout of `of`, or
                                         of  `to` */
    tsr_layout *own, *wanted;         /* the gradient's layout by its rule, and the one that the caller gets */
    bool moves;                       /* own and wanted are not equal */
    size_t own_bytes;                 /* bytes for `computed` in the call's memory; 0 if it does not move */
    tsr_dtensor *computed, *finished; /* `finished` is `to`, or what is added to it after a move */
} gradient;

static const char *const names[TSR_GRADIENTS] = {"dx", "dw", "db"};

/* One call. Its memory is one block: dy in the products' layout, if it moves; each gradient that
 * moves; then what the products need. */
typedef struct backward {
    const char *caller;
    tsr_comm *comm;
    tsr_context *context;
    tsr_device device;
    tsr_choice choice;
    bool inside;
    const tsr_dtensor *x, *w, *dy;
    /* y's layout by the forward rule, and its gradient layout, which the products take dy in */
    tsr_layout *y, *dy_layout;
    bool dy_moves;
    size_t dy_bytes;
    gradient gradients[TSR_GRADIENTS];
    void *memory;
    size_t bytes;
    tsr_matmul_needs needs;
    tsr_dtensor *aligned_dy;
} backward;

/* Checks a gradient of the caller against the layout that the rule gives, in `own`. */
static tsr_status check_given(const backward *call, int which, const gradient *g)
{
    const tsr_layout *own = g->own, *to = tsr_dtensor_layout(g->to);
    const tsr_tensor local = tsr_dtensor_to_local(g->to);
    TSR_TRY(tsr_rule_check_mesh(call->caller, "x", tsr_dtensor_layout(call->x), names[which], to));
    bool same = tsr_layout_ndim(own) == tsr_layout_ndim(to) && tsr_layout_dtype(own) == tsr_layout_dtype(to);
    for (int dim = 0; same && dim < tsr_layout_ndim(own); dim++)
        same = tsr_layout_shape(own)[dim] == tsr_layout_shape(to)[dim];
    if (!same)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: %s has not the shape of its operand and its dtype, or f32 for f16 and bf16",
                              call->caller, names[which]);
    if (local.device.driver != call->device.driver || local.device.index != call->device.index)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is on another device than x", call->caller, names[which]);
    if (tsr_tensor_overlaps(&local))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: by its strides elements of %s share memory, so that it can only be read",
                              call->caller, names[which]);
    return TSR_OK;
}

static tsr_status want_layout(const backward *call, int which, gradient *g)
{
    if (g->to) {
        TSR_TRY(check_given(call, which, g));
        g->wanted = tsr_layout_retain((tsr_layout *)tsr_dtensor_layout(g->to));
        return TSR_OK;
    }
    return g->placements ? tsr_layout_with(g->own, g->placements, &g->wanted) : tsr_layout_gradient(g->of, &g->wanted);
}

static tsr_status plan_gradient(const backward *call, int which, gradient *g)
{
    const tsr_layout *x = tsr_dtensor_layout(call->x), *w = tsr_dtensor_layout(call->w);
    const tsr_dtype dtype = tsr_gradient_dtype(tsr_layout_dtype(g->of), tsr_agreement_layout(g->to));
    TSR_TRY(tsr_gradient_check_device(call->caller, which, call->device, tsr_layout_dtype(call->y), tsr_layout_dtype(x),
                                      tsr_layout_dtype(w), dtype));
    TSR_TRY(tsr_gradient_propagate(call->caller, which, call->dy_layout, x, w, dtype, &g->own));
    TSR_TRY(want_layout(call, which, g));
    g->moves = !tsr_layout_equal(g->own, g->wanted);
    return TSR_OK;
}

static tsr_status check_pointers(const backward *call, const tsr_dtensor *b)
{
    if (!call->x || !call->w || !call->dy)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", call->caller,
                              !call->x   ? "x"
                              : !call->w ? "w"
                                         : "dy");
    if (call->gradients[TSR_DB].asked && !b)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: db is asked for, but b is NULL", call->caller);
    return TSR_OK;
}

static tsr_status plan_backward(backward *call, const tsr_dtensor *b)
{
    TSR_TRY(check_pointers(call, b));
    call->context = tsr_mesh_context(tsr_layout_mesh(tsr_dtensor_layout(call->x)));
    const tsr_layout *x = tsr_dtensor_layout(call->x), *w = tsr_dtensor_layout(call->w),
                     *dy = tsr_dtensor_layout(call->dy);
    TSR_TRY(tsr_layer_propagate(call->caller, x, w, b ? tsr_dtensor_layout(b) : NULL, &call->y));
    TSR_TRY(tsr_layout_gradient(call->y, &call->dy_layout));
    TSR_TRY(tsr_gradient_check_dy(call->caller, call->y, dy));
    const tsr_tensor local_x = tsr_dtensor_to_local(call->x), local_w = tsr_dtensor_to_local(call->w),
                     local_dy = tsr_dtensor_to_local(call->dy);
    TSR_TRY(tsr_layer_check_devices(call->caller, (const tsr_tensor *[]){&local_x, &local_w, &local_dy},
                                    (const char *[]){"x", "w", "dy"}, 3));
    call->device = local_x.device;
    call->dy_moves = !tsr_layout_equal(dy, call->dy_layout);
    for (int i = 0; i < TSR_GRADIENTS; i++) {
        if (call->gradients[i].asked)
            TSR_TRY(plan_gradient(call, i, &call->gradients[i]));
    }
    int64_t coordinate[TSR_MAX_DIMS];
    int inside;
    TSR_TRY(tsr_mesh_coordinate(tsr_layout_mesh(call->y), coordinate, &inside));
    call->inside = inside;
    return TSR_OK;
}

/* A contiguous local tensor of a layout without data, for measuring. */
static tsr_status describe_local(const tsr_layout *layout, tsr_tensor *out)
{
    int64_t shape[TSR_MAX_DIMS];
    TSR_TRY(tsr_layout_local(layout, NULL, shape, NULL));
    *out = tsr_tensor_contiguous(NULL, tsr_layout_dtype(layout), tsr_layout_ndim(layout), shape);
    return TSR_OK;
}

static tsr_status measure_backward(backward *call)
{
    const tsr_matmul_site site = {.device = call->device, .needs = &call->needs};
    tsr_gradient_sources from = {tsr_dtensor_to_local(call->dy), tsr_dtensor_to_local(call->x),
                                 tsr_dtensor_to_local(call->w)};
    if (call->dy_moves)
        TSR_TRY(describe_local(call->dy_layout, &from.dy));
    for (int i = 0; i < TSR_GRADIENTS; i++) {
        const gradient *g = &call->gradients[i];
        tsr_tensor to;
        if (!g->asked)
            continue;
        if (g->to && !g->moves)
            to = tsr_dtensor_to_local(g->to);
        else
            TSR_TRY(describe_local(g->own, &to));
        TSR_TRY(tsr_gradient_compute(i, &site, &from, &to, g->adds && !g->moves));
    }
    return TSR_OK;
}

static tsr_status measure_moving(const tsr_layout *layout, bool moves, size_t *bytes)
{
    *bytes = 0;
    if (moves)
        TSR_TRY(tsr_layout_local_bytes(layout, NULL, bytes));
    *bytes = tsr_aligned_bytes(*bytes);
    return TSR_OK;
}

/* Sets the bytes of the parts of the call's memory, and of the whole. */
static tsr_status size_memory(backward *call)
{
    TSR_TRY(measure_moving(call->dy_layout, call->dy_moves, &call->dy_bytes));
    call->bytes = call->dy_bytes + tsr_layer_needs_bytes(&call->needs);
    for (int i = 0; i < TSR_GRADIENTS; i++) {
        gradient *g = &call->gradients[i];
        if (g->asked)
            TSR_TRY(measure_moving(g->own, g->moves, &g->own_bytes));
        call->bytes += g->own_bytes;
    }
    return TSR_OK;
}

/* Makes the dtensors of a gradient: `finished`, and `computed`, which lies in `memory` if the
 * gradient moves. */
static tsr_status acquire_gradient(const backward *call, gradient *g, void *memory)
{
    if (g->to && !(g->adds && g->moves))
        g->finished = tsr_dtensor_retain(g->to);
    else
        TSR_TRY(tsr_dtensor_create(g->wanted, call->device, &g->finished));
    if (g->moves)
        return tsr_layer_borrow(g->own, call->device, memory, &g->computed);
    g->computed = tsr_dtensor_retain(g->finished);
    return TSR_OK;
}

/* Allocates everything that this call needs, and gives the site its part. */
static tsr_status acquire_backward(backward *call, tsr_matmul_site *site)
{
    if (call->inside)
        TSR_TRY(measure_backward(call));
    TSR_TRY(size_memory(call));
    TSR_TRY(tsr_layer_workspace_create(call->context, call->device, call->bytes, &call->memory));
    char *at = call->memory;
    if (call->dy_moves)
        TSR_TRY(tsr_layer_borrow(call->dy_layout, call->device, at, &call->aligned_dy));
    else
        call->aligned_dy = tsr_dtensor_retain((tsr_dtensor *)call->dy);
    at = at ? at + call->dy_bytes : NULL;
    for (int i = 0; i < TSR_GRADIENTS; i++) {
        if (call->gradients[i].asked)
            TSR_TRY(acquire_gradient(call, &call->gradients[i], at));
        at = at ? at + call->gradients[i].own_bytes : NULL;
    }
    tsr_layer_place(site, &call->needs, at);
    return TSR_OK;
}

/* A rank outside the mesh computes nothing: its gradients are empty. */
static tsr_status compute_gradients(backward *call, const tsr_matmul_site *site)
{
    const tsr_gradient_sources from = {tsr_dtensor_to_local(call->aligned_dy), tsr_dtensor_to_local(call->x),
                                       tsr_dtensor_to_local(call->w)};
    tsr_status status = TSR_OK;
    tsr_choice_hold(&call->choice);
    for (int i = 0; i < TSR_GRADIENTS && status == TSR_OK && call->inside; i++) {
        const gradient *g = &call->gradients[i];
        if (!g->asked)
            continue;
        const tsr_tensor to = tsr_dtensor_to_local(g->computed);
        status = tsr_gradient_compute(i, site, &from, &to, g->adds && !g->moves);
    }
    tsr_choice_release(&call->choice);
    return status;
}

/* Adds gradients that had to move to those of the caller. */
static tsr_status add_moved(const backward *call)
{
    for (int i = 0; i < TSR_GRADIENTS; i++) {
        const gradient *g = &call->gradients[i];
        if (g->asked && g->adds && g->moves)
            TSR_TRY(tsr_dtensor_accumulate(g->finished, g->to, NULL));
    }
    return TSR_OK;
}

/* All ranks go through the same agreements and redistributions, whatever happens on one of them. */
static tsr_status run_backward(backward *call, tsr_status planned)
{
    tsr_matmul_site site = tsr_layer_site(call->device, &call->choice, NULL);
    if (planned == TSR_OK)
        planned = acquire_backward(call, &site);
    if (planned == TSR_OK)
        planned = tsr_layer_choose(call->context, call->device, &call->choice);
    TSR_TRY(tsr_agree_on_provider(call->comm, planned, &call->choice));
    /* The reverse of the redistribution at the end of tsr_linear(), if there was one. */
    if (call->dy_moves)
        TSR_TRY(tsr_redistribute_into(call->dy, call->aligned_dy, NULL));
    TSR_TRY(tsr_agree(call->comm, compute_gradients(call, &site)));
    for (int i = 0; i < TSR_GRADIENTS; i++) {
        const gradient *g = &call->gradients[i];
        if (g->asked && g->moves)
            TSR_TRY(tsr_redistribute_into(g->computed, g->finished, NULL));
    }
    return add_moved(call);
}

static void clean_up(backward *call)
{
    for (int i = 0; i < TSR_GRADIENTS; i++) {
        tsr_dtensor_destroy(call->gradients[i].finished);
        tsr_dtensor_destroy(call->gradients[i].computed);
        tsr_layout_destroy(call->gradients[i].wanted);
        tsr_layout_destroy(call->gradients[i].own);
    }
    tsr_dtensor_destroy(call->aligned_dy);
    if (call->memory)
        tsr_layer_workspace_destroy(call->context, call->device, call->memory, call->bytes);
    tsr_layout_destroy(call->dy_layout);
    tsr_layout_destroy(call->y);
}

/* `b` may be NULL. On success the gradients are in call->gradients; the caller cleans up. */
static tsr_status make_backward(backward *call, const tsr_dtensor *b)
{
    const tsr_layout *const layouts[] = {tsr_agreement_layout(call->x), tsr_agreement_layout(call->w),
                                         tsr_agreement_layout(b), tsr_agreement_layout(call->dy)};
    for (int i = 0; i < TSR_GRADIENTS; i++)
        call->gradients[i].of = layouts[i];
    call->comm = tsr_agreement_comm(layouts, 4);
    if (!call->comm)
        return check_pointers(call, b);
    TSR_TRY(tsr_comm_hold(call->comm, call->caller));
    return tsr_comm_let_go(call->comm, run_backward(call, plan_backward(call, b)));
}

tsr_status tsr_linear_backward(const tsr_dtensor *x, const tsr_dtensor *w, const tsr_dtensor *b, const tsr_dtensor *dy,
                               const tsr_placement *dx_placements, const tsr_placement *dw_placements,
                               const tsr_placement *db_placements, tsr_dtensor **dx, tsr_dtensor **dw, tsr_dtensor **db)
{
    backward call = {.caller = "tsr_linear_backward", .x = x, .w = w, .dy = dy};
    tsr_dtensor **const outs[TSR_GRADIENTS] = {dx, dw, db};
    call.gradients[TSR_DX] = (gradient){.asked = dx != NULL, .placements = dx_placements};
    call.gradients[TSR_DW] = (gradient){.asked = dw != NULL, .placements = dw_placements};
    call.gradients[TSR_DB] = (gradient){.asked = db != NULL, .placements = db_placements};
    const tsr_status status = make_backward(&call, b);
    for (int i = 0; i < TSR_GRADIENTS && status == TSR_OK; i++) {
        if (outs[i])
            *outs[i] = tsr_dtensor_retain(call.gradients[i].finished);
    }
    clean_up(&call);
    return status;
}

tsr_status tsr_linear_backward_into(const tsr_dtensor *x, const tsr_dtensor *w, const tsr_dtensor *b,
                                    const tsr_dtensor *dy, unsigned adds, tsr_dtensor *dx, tsr_dtensor *dw,
                                    tsr_dtensor *db)
{
    backward call = {.caller = "tsr_linear_backward_into", .x = x, .w = w, .dy = dy};
    tsr_dtensor *const given[TSR_GRADIENTS] = {dx, dw, db};
    for (int i = 0; i < TSR_GRADIENTS; i++)
        call.gradients[i] = (gradient){.asked = given[i] != NULL, .to = given[i], .adds = adds >> i & 1};
    const tsr_status status = make_backward(&call, b);
    clean_up(&call);
    return status;
}
