#include "ops/agreement.h"
#include "ops/gradients.h"
#include "ops/layer.h"
#include "ops/layer_rule.h"

#include <tessera/linear.h>
#include <tessera/sys/comm.h>
#include <tessera/values.h>

/* One of dx, dw and db. */
typedef struct gradient {
    bool asked;                       /* the caller wants it, in a new dtensor or in `to` */
    tsr_dtensor *to;                  /* the caller's dtensor; NULL: a new one is made */
    bool adds;                        /* the gradient is added to what `to` holds */
    const tsr_placement *placements;  /* those that the caller asks for; NULL: those of `to`, or of the gradient layout
                                         of the operand */
    tsr_layout *wanted;               /* the layout that the caller gets */
    bool moves;                       /* it is not the rule's */
    tsr_dtensor *computed, *finished; /* `finished` is `to`, or what is added to it after a move */
} gradient;

/* One call. Its memory is one block: dy in the products' layout, if it moves; each gradient that
 * moves, as ranks agree after all products; then what the products need. */
typedef struct backward {
    const char *caller;
    tsr_comm *comm;
    const tsr_dtensor *x, *w, *dy;
    const tsr_layout *operands[TSR_GRADIENTS]; /* the layouts of x, w and b; NULL: the operand is NULL */
    tsr_backward pass;
    bool dy_moves;
    gradient gradients[TSR_GRADIENTS];
    void *memory;
    size_t bytes;
    tsr_dtensor *aligned_dy;
} backward;

/* Checks a gradient of the caller against the layout that the rule gives. */
static tsr_status check_given(const backward *call, int which)
{
    const tsr_dtensor *const given = call->gradients[which].to;
    const tsr_layout *const own = call->pass.own[which].layout, *const to = tsr_dtensor_layout(given);
    const tsr_tensor local = tsr_dtensor_to_local(given);
    const tsr_device device = call->pass.device;
    if (!tsr_layer_same_shape(own, to) || tsr_layout_dtype(own) != tsr_layout_dtype(to))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: %s has not the shape of its operand and its dtype, or f32 for f16 and bf16",
                              call->caller, tsr_gradient_name(which));
    if (local.device.driver != device.driver || local.device.index != device.index)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is on another device than x", call->caller,
                              tsr_gradient_name(which));
    if (tsr_tensor_overlaps(&local))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: by its strides elements of %s share memory, so that it can only be read",
                              call->caller, tsr_gradient_name(which));
    return TSR_OK;
}

static tsr_status want_layout(const backward *call, int which, gradient *g)
{
    if (g->to) {
        TSR_TRY(check_given(call, which));
        g->wanted = tsr_layout_retain((tsr_layout *)tsr_dtensor_layout(g->to));
        return TSR_OK;
    }
    return g->placements ? tsr_layout_with(call->pass.own[which].layout, g->placements, &g->wanted)
                         : tsr_layout_gradient(call->operands[which], &g->wanted);
}

static tsr_status plan_gradient(backward *call, int which)
{
    gradient *const g = &call->gradients[which];
    TSR_TRY(tsr_backward_add(call->caller, which, call->operands, tsr_agreement_layout(g->to), &call->pass));
    TSR_TRY(want_layout(call, which, g));
    g->moves = !tsr_layout_equal(call->pass.own[which].layout, g->wanted);
    return g->adds && g->moves ? tsr_gradient_check_terms(call->caller, which, g->wanted) : TSR_OK;
}

static tsr_status check_pointers(const backward *call)
{
    if (!call->x || !call->w || !call->dy)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", call->caller,
                              !call->x   ? "x"
                              : !call->w ? "w"
                                         : "dy");
    if (call->gradients[TSR_DB].asked && !call->operands[TSR_DB])
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: db is asked for, but b is NULL", call->caller);
    return TSR_OK;
}

/* The local tensors of the operands and of `dy`. */
static tsr_gradient_sources sources_of(const backward *call, const tsr_dtensor *dy)
{
    return (tsr_gradient_sources){tsr_dtensor_to_local(dy), tsr_dtensor_to_local(call->x),
                                  tsr_dtensor_to_local(call->w)};
}

static tsr_status plan_backward(backward *call)
{
    TSR_TRY(check_pointers(call));
    const tsr_layout *const dy = tsr_dtensor_layout(call->dy);
    const tsr_gradient_sources locals = sources_of(call, call->dy);
    TSR_TRY(tsr_backward_begin(call->caller, call->operands, dy, locals.x.device, &call->pass));
    TSR_TRY(tsr_layer_check_devices(call->caller, (const tsr_tensor *[]){&locals.x, &locals.w, &locals.dy},
                                    (const char *[]){"x", "w", "dy"}, 3));
    call->dy_moves = !tsr_layout_equal(dy, call->pass.dy.layout);
    for (int i = 0; i < TSR_GRADIENTS; i++) {
        if (call->gradients[i].asked)
            TSR_TRY(plan_gradient(call, i));
    }
    return TSR_OK;
}

static tsr_context *context_of(const backward *call)
{
    return tsr_mesh_context(tsr_layout_mesh(call->operands[TSR_DX]));
}

/* True if the product itself adds to what the caller's dtensor holds. */
static bool adds_by_product(const gradient *g)
{
    return g->adds && !g->moves;
}

static tsr_status measure_products(backward *call)
{
    tsr_gradient_sources from = sources_of(call, call->dy);
    if (call->dy_moves)
        from.dy = tsr_local_form_tensor(&call->pass.dy, NULL, call->pass.device);
    for (int i = 0; i < TSR_GRADIENTS; i++) {
        const gradient *const g = &call->gradients[i];
        tsr_tensor given;
        if (!g->asked)
            continue;
        if (g->to)
            given = tsr_dtensor_to_local(g->to);
        TSR_TRY(
            tsr_backward_measure(&call->pass, i, &from, g->to && !g->moves ? &given : NULL, adds_by_product(g), false));
    }
    return TSR_OK;
}

/* Bytes of the call's memory for a tensor that moves; 0 if it does not. */
static size_t moving_bytes(const tsr_local_form *form, bool moves)
{
    return moves ? tsr_local_form_bytes(form) : 0;
}

static tsr_status allocate_memory(backward *call)
{
    TSR_TRY(measure_products(call));
    call->bytes = moving_bytes(&call->pass.dy, call->dy_moves) + tsr_backward_needs_bytes(&call->pass, true);
    for (int i = 0; i < TSR_GRADIENTS; i++)
        call->bytes += moving_bytes(&call->pass.own[i], call->gradients[i].moves);
    return tsr_layer_workspace_create(context_of(call), call->pass.device, call->bytes, &call->memory);
}

/* Makes a tensor that moves in the next part of the call's memory, which begins at `*at`, or NULL;
 * else retains `stays`. */
static tsr_status make_moving(const backward *call, const tsr_local_form *form, bool moves, tsr_dtensor *stays,
                              char **at, tsr_dtensor **out)
{
    char *const part = *at;
    if (!moves) {
        *out = tsr_dtensor_retain(stays);
        return TSR_OK;
    }
    *at = part ? part + tsr_local_form_bytes(form) : NULL;
    return tsr_local_form_borrow(form, call->pass.inside, part, call->pass.device, out);
}

/* Allocates everything that this call needs; `*rest` is the products' part. */
static tsr_status acquire_backward(backward *call, void **rest)
{
    TSR_TRY(allocate_memory(call));
    char *at = call->memory;
    TSR_TRY(make_moving(call, &call->pass.dy, call->dy_moves, (tsr_dtensor *)call->dy, &at, &call->aligned_dy));
    for (int i = 0; i < TSR_GRADIENTS; i++) {
        gradient *const g = &call->gradients[i];
        if (!g->asked)
            continue;
        if (g->to && !(g->adds && g->moves))
            g->finished = tsr_dtensor_retain(g->to);
        else
            TSR_TRY(tsr_dtensor_create(g->wanted, call->pass.device, &g->finished));
        TSR_TRY(make_moving(call, &call->pass.own[i], g->moves, g->finished, &at, &g->computed));
    }
    *rest = at;
    return TSR_OK;
}

/* A rank outside the mesh computes nothing: its gradients are empty. */
static tsr_status compute_gradients(backward *call, void *rest)
{
    const tsr_gradient_sources from = sources_of(call, call->aligned_dy);
    tsr_status status = TSR_OK;
    tsr_choice_hold(&call->pass.choice);
    for (int i = 0; i < TSR_GRADIENTS && status == TSR_OK && call->pass.inside; i++) {
        const gradient *const g = &call->gradients[i];
        if (!g->asked)
            continue;
        const tsr_tensor to = tsr_dtensor_to_local(g->computed);
        status = tsr_backward_compute(&call->pass, i, &from, &to, adds_by_product(g), rest, NULL);
    }
    tsr_choice_release(&call->pass.choice);
    return status;
}

/* Adds gradients that had to move to those of the caller. */
static tsr_status add_moved(const backward *call)
{
    for (int i = 0; i < TSR_GRADIENTS; i++) {
        const gradient *const g = &call->gradients[i];
        if (g->asked && g->adds && g->moves)
            TSR_TRY(tsr_dtensor_accumulate(g->finished, g->to, NULL));
    }
    return TSR_OK;
}

static unsigned moves_of(const backward *call)
{
    unsigned moves = 0;
    for (int i = 0; i < TSR_GRADIENTS; i++)
        moves |= (call->gradients[i].moves ? 1U : 0) << i;
    return moves;
}

/* All ranks go through the same agreements and redistributions, whatever happens on one of them. */
static tsr_status run_backward(backward *call, tsr_status planned)
{
    void *rest = NULL;
    if (planned == TSR_OK)
        planned = acquire_backward(call, &rest);
    TSR_TRY(tsr_agree_on_provider(call->comm, planned, &call->pass.choice));
    /* The reverse of the redistribution at the end of tsr_linear(), if there was one. */
    if (call->dy_moves)
        TSR_TRY(tsr_redistribute_into(call->dy, call->aligned_dy, NULL));
    TSR_TRY(tsr_agree_on_moves(call->comm, compute_gradients(call, rest), moves_of(call)));
    for (int i = 0; i < TSR_GRADIENTS; i++) {
        const gradient *const g = &call->gradients[i];
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
    }
    tsr_dtensor_destroy(call->aligned_dy);
    if (call->memory)
        tsr_layer_workspace_destroy(context_of(call), call->pass.device, call->memory, call->bytes);
    tsr_backward_release(&call->pass);
}

/* `b` may be NULL. On success the gradients are in call->gradients; the caller cleans up. */
static tsr_status make_backward(backward *call, const tsr_dtensor *b)
{
    const tsr_layout *const layouts[] = {tsr_agreement_layout(call->x), tsr_agreement_layout(call->w),
                                         tsr_agreement_layout(b), tsr_agreement_layout(call->dy)};
    for (int i = 0; i < TSR_GRADIENTS; i++)
        call->operands[i] = layouts[i];
    call->comm = tsr_agreement_comm(layouts, 4);
    if (!call->comm)
        return check_pointers(call);
    TSR_TRY(tsr_comm_hold(call->comm, call->caller));
    return tsr_comm_let_go(call->comm, run_backward(call, plan_backward(call)));
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
