#include "ops/agreement.h"
#include "ops/gradients.h"
#include "ops/numbers.h"
#include "ops/plan_frame.h"

#include <tessera/linear.h>
#include <tessera/sys/comm.h>

#define CALLER "tsr_linear_backward_plan"

/* Each gradient's move has the gradient's number. */
enum { MOVE_DY = TSR_GRADIENTS };

/* The workspace has three parts: dy in the products' layout, if it moves; one gradient in its
 * rule's layout, if any gradient moves; and the workspace of products and moves. An execution that
 * accumulates has one more before the last: a gradient that has moved, which is then added to the
 * caller's. Gradients are made one after the other, so they share all parts but the first. */
struct tsr_linear_backward_plan {
    tsr_plan_frame frame;
    tsr_backward pass;
    tsr_local_form x, w, dy, wanted[TSR_GRADIENTS]; /* wanted: gradients as the caller gets them */
    size_t dy_bytes, own_bytes, moved_bytes;
};

/* The layouts that tsr_linear_backward_plan_create() is given; the operands are x, w and b. */
typedef struct request {
    const tsr_layout *operands[TSR_GRADIENTS], *dy, *gradients[TSR_GRADIENTS];
} request;

static tsr_status fill_dy(tsr_linear_backward_plan *plan, const request *r)
{
    const tsr_local_form *const taken = &plan->pass.dy;
    TSR_TRY(tsr_backward_begin(CALLER "_create", r->operands, r->dy, plan->frame.device, &plan->pass));
    TSR_TRY(tsr_local_form_retain(r->dy ? r->dy : taken->layout, &plan->dy));
    TSR_TRY(tsr_plan_frame_add_move(&plan->frame, CALLER "_create", MOVE_DY, plan->dy.layout, taken->layout));
    plan->dy_bytes = plan->frame.moves[MOVE_DY] ? tsr_local_form_bytes(taken) : 0;
    return TSR_OK;
}

/* Measures what the product of a gradient needs for any strides. Only a product whose gradient does
 * not move adds to the caller's. */
static tsr_status measure_gradient(tsr_linear_backward_plan *plan, int which)
{
    const tsr_device device = plan->frame.device;
    const tsr_gradient_sources from = {tsr_local_form_tensor(&plan->pass.dy, NULL, device),
                                       tsr_local_form_tensor(&plan->x, NULL, device),
                                       tsr_local_form_tensor(&plan->w, NULL, device)};
    TSR_TRY(tsr_backward_measure(&plan->pass, which, &from, NULL, false, true));
    return plan->frame.moves[which] ? TSR_OK : tsr_backward_measure(&plan->pass, which, &from, NULL, true, true);
}

static tsr_status fill_gradient(tsr_linear_backward_plan *plan, const request *r, int which)
{
    const tsr_local_form *const own = &plan->pass.own[which], *const wanted = &plan->wanted[which];
    TSR_TRY(tsr_backward_add(CALLER "_create", which, r->operands, r->gradients[which], &plan->pass));
    TSR_TRY(tsr_local_form_retain(r->gradients[which], &plan->wanted[which]));
    TSR_TRY(tsr_plan_frame_add_move(&plan->frame, CALLER "_create", which, own->layout, wanted->layout));
    if (plan->frame.moves[which]) {
        plan->own_bytes = tsr_larger_bytes(plan->own_bytes, tsr_local_form_bytes(own));
        plan->moved_bytes = tsr_larger_bytes(plan->moved_bytes, tsr_local_form_bytes(wanted));
    }
    return measure_gradient(plan, which);
}

static tsr_status fill_plan(tsr_linear_backward_plan *plan, const request *r)
{
    TSR_TRY(fill_dy(plan, r));
    TSR_TRY(tsr_local_form_retain(r->operands[TSR_DX], &plan->x));
    TSR_TRY(tsr_local_form_retain(r->operands[TSR_DW], &plan->w));
    for (int i = 0; i < TSR_GRADIENTS; i++) {
        if (r->gradients[i])
            TSR_TRY(fill_gradient(plan, r, i));
    }
    return TSR_OK;
}

static tsr_status check_request(const request *r, const void *out)
{
    const tsr_layout *const x = r->operands[TSR_DX], *const w = r->operands[TSR_DW];
    if (!x || !w || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALLER "_create: %s is NULL", !x ? "x" : !w ? "w" : "out");
    if (!r->gradients[TSR_DX] && !r->gradients[TSR_DW] && !r->gradients[TSR_DB])
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              CALLER "_create: dx, dw and db are all NULL; a backward has one of them at least");
    if (r->gradients[TSR_DB] && !r->operands[TSR_DB])
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALLER "_create: db is asked for, but b is NULL");
    return tsr_plan_frame_check_mesh(CALLER "_create", x);
}

/* This rank's own part of the creation. If `*out` is set, also after an error, the caller destroys
 * the plan. */
static tsr_status make_backward_plan(tsr_comm *comm, const request *r, tsr_device device,
                                     tsr_linear_backward_plan **out)
{
    tsr_plan_frame *frame;
    TSR_TRY(tsr_plan_frame_create(r->operands[TSR_DX], comm, device, sizeof **out, &frame));
    *out = (tsr_linear_backward_plan *)frame;
    return fill_plan(*out, r);
}

static tsr_status create_backward_plan(tsr_comm *comm, const request *r, tsr_device device,
                                       tsr_linear_backward_plan **out)
{
    tsr_linear_backward_plan *plan = NULL;
    tsr_status status = check_request(r, out);
    if (status == TSR_OK)
        status = make_backward_plan(comm, r, device, &plan);
    status = tsr_plan_frame_agree(plan ? &plan->frame : NULL, plan ? &plan->pass.choice : NULL, comm, status);
    if (status == TSR_OK)
        *out = plan;
    else
        tsr_linear_backward_plan_destroy(plan);
    return status;
}

tsr_status tsr_linear_backward_plan_create(const tsr_layout *x, const tsr_layout *w, const tsr_layout *b,
                                           const tsr_layout *dy, const tsr_layout *dx, const tsr_layout *dw,
                                           const tsr_layout *db, tsr_device device, tsr_linear_backward_plan **out)
{
    const request r = {{x, w, b}, dy, {dx, dw, db}};
    const tsr_layout *const layouts[] = {x, w, b, dy, dx, dw, db};
    tsr_comm *const comm = tsr_agreement_comm(layouts, 7);
    if (!comm)
        return check_request(&r, out);
    TSR_TRY(tsr_comm_hold(comm, CALLER "_create"));
    return tsr_comm_let_go(comm, create_backward_plan(comm, &r, device, out));
}

void tsr_linear_backward_plan_destroy(tsr_linear_backward_plan *plan)
{
    if (!plan)
        return;
    tsr_local_form *const forms[] = {
        &plan->wanted[TSR_DB], &plan->wanted[TSR_DW], &plan->wanted[TSR_DX], &plan->w, &plan->x, &plan->dy};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        tsr_local_form_release(forms[i]);
    tsr_backward_release(&plan->pass);
    tsr_plan_frame_destroy(&plan->frame, &plan->pass.choice);
}

const tsr_layout *tsr_linear_backward_plan_source(const tsr_linear_backward_plan *plan)
{
    return plan->dy.layout;
}

/* Where the last part of the workspace begins, behind dy, one gradient and, if the execution adds
 * to some gradient, one that has moved. */
static size_t rest_offset(const tsr_linear_backward_plan *plan, bool adds)
{
    return plan->dy_bytes + plan->own_bytes + (adds ? plan->moved_bytes : 0);
}

static size_t workspace_bytes(const tsr_linear_backward_plan *plan, bool adds)
{
    return rest_offset(plan, adds) +
           tsr_larger_bytes(tsr_plan_frame_moving_bytes(&plan->frame), tsr_backward_needs_bytes(&plan->pass, adds));
}

size_t tsr_linear_backward_plan_workspace_bytes(const tsr_linear_backward_plan *plan)
{
    return workspace_bytes(plan, false);
}

size_t tsr_linear_backward_plan_accumulate_bytes(const tsr_linear_backward_plan *plan)
{
    return workspace_bytes(plan, true);
}

/* One execution; `status` is this rank's first failure. */
typedef struct execution {
    const char *caller;
    const tsr_linear_backward_plan *plan;
    unsigned adds; /* tsr_gradient_bits: the gradients that are added to */
    tsr_gradient_sources from;
    char *workspace;
    size_t bytes;
    tsr_stream stream;
    tsr_status status;
} execution;

static bool adds_to(const execution *e, int which)
{
    return e->adds >> which & 1;
}

/* Checks what is given for one gradient. */
static tsr_status check_result(const execution *e, int which, const tsr_tensor *result)
{
    const tsr_linear_backward_plan *plan = e->plan;
    const tsr_local_form *const wanted = &plan->wanted[which];
    TSR_TRY(tsr_local_form_check_result(wanted, e->caller, tsr_gradient_name(which), result, plan->frame.device));
    return adds_to(e, which) && plan->frame.moves[which] ? tsr_gradient_check_terms(e->caller, which, wanted->layout)
                                                         : TSR_OK;
}

static tsr_status check_execution(const execution *e, const tsr_tensor *x, const tsr_tensor *w, const tsr_tensor *dy,
                                  const tsr_tensor *const *results)
{
    const tsr_linear_backward_plan *plan = e->plan;
    const tsr_device device = plan->frame.device;
    TSR_TRY(tsr_local_form_check(&plan->dy, e->caller, "dy", dy, device));
    if (plan->wanted[TSR_DW].layout)
        TSR_TRY(tsr_local_form_check(&plan->x, e->caller, "x", x, device));
    if (plan->wanted[TSR_DX].layout)
        TSR_TRY(tsr_local_form_check(&plan->w, e->caller, "w", w, device));
    for (int i = 0; i < TSR_GRADIENTS; i++)
        TSR_TRY(check_result(e, i, results[i]));
    return tsr_plan_frame_check(&plan->frame, e->caller, e->workspace, e->bytes, workspace_bytes(plan, e->adds),
                                e->stream);
}

/* NULL also after a failure: the workspace may then be too small. */
static void *part_at(const execution *e, size_t offset)
{
    return e->workspace && e->status == TSR_OK ? e->workspace + offset : NULL;
}

/* All ranks go through the same moves, whatever happens on one of them. */
static void move_tensor(execution *e, int which, const tsr_tensor *from, const tsr_tensor *to)
{
    const size_t rest = rest_offset(e->plan, e->adds);
    e->status =
        tsr_plan_frame_move(&e->plan->frame, which, e->status, from, to, part_at(e, rest), e->bytes - rest, e->stream);
}

static void align_dy(execution *e, const tsr_tensor *dy)
{
    const tsr_linear_backward_plan *plan = e->plan;
    if (!plan->frame.moves[MOVE_DY]) {
        e->from.dy = e->status == TSR_OK ? *dy : e->from.dy;
        return;
    }
    e->from.dy = tsr_local_form_tensor(&plan->pass.dy, e->workspace, plan->frame.device);
    move_tensor(e, MOVE_DY, dy, &e->from.dy);
}

/* Moves a gradient into `result`, or to the workspace, from where it is added to `result`. */
static void finish_gradient(execution *e, int which, const tsr_tensor *own, const tsr_tensor *result)
{
    const tsr_linear_backward_plan *plan = e->plan;
    if (!adds_to(e, which)) {
        move_tensor(e, which, own, result);
        return;
    }
    const tsr_tensor moved =
        tsr_local_form_tensor(&plan->wanted[which], part_at(e, plan->dy_bytes + plan->own_bytes), plan->frame.device);
    move_tensor(e, which, own, &moved);
    if (e->status == TSR_OK)
        e->status = tsr_gradient_add(&moved, result, e->stream);
}

static void make_gradient(execution *e, int which, const tsr_tensor *result)
{
    const tsr_linear_backward_plan *plan = e->plan;
    const bool moves = plan->frame.moves[which];
    tsr_tensor own = tsr_local_form_tensor(&plan->pass.own[which], part_at(e, plan->dy_bytes), plan->frame.device);
    if (e->status == TSR_OK) {
        own = moves ? own : *result;
        e->status = tsr_backward_compute(&plan->pass, which, &e->from, &own, adds_to(e, which) && !moves,
                                         part_at(e, rest_offset(plan, e->adds)), e->stream);
    }
    if (moves)
        finish_gradient(e, which, &own, result);
}

static tsr_status execute_backward_plan(execution *e, const tsr_tensor *x, const tsr_tensor *w, const tsr_tensor *dy,
                                        const tsr_tensor *const *results)
{
    const tsr_linear_backward_plan *plan = e->plan;
    e->status = check_execution(e, x, w, dy, results);
    if (e->status == TSR_OK && plan->wanted[TSR_DW].layout)
        e->from.x = *x;
    if (e->status == TSR_OK && plan->wanted[TSR_DX].layout)
        e->from.w = *w;
    align_dy(e, dy);
    for (int i = 0; i < TSR_GRADIENTS; i++) {
        if (plan->wanted[i].layout)
            make_gradient(e, i, results[i]);
    }
    return e->status;
}

static tsr_status run_backward_plan(execution *e, const tsr_tensor *x, const tsr_tensor *w, const tsr_tensor *dy,
                                    const tsr_tensor *const *results)
{
    if (!e->plan)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: plan is NULL", e->caller);
    if (!e->plan->pass.inside)
        return TSR_OK;
    TSR_TRY(tsr_plan_frame_hold(&e->plan->frame, e->caller));
    return tsr_plan_frame_let_go(&e->plan->frame, execute_backward_plan(e, x, w, dy, results));
}

tsr_status tsr_linear_backward_plan_execute(const tsr_linear_backward_plan *plan, const tsr_tensor *x,
                                            const tsr_tensor *w, const tsr_tensor *dy, const tsr_tensor *dx,
                                            const tsr_tensor *dw, const tsr_tensor *db, void *workspace, size_t bytes,
                                            tsr_stream stream)
{
    const tsr_tensor *const results[TSR_GRADIENTS] = {dx, dw, db};
    execution e = {.caller = CALLER "_execute", .plan = plan, .workspace = workspace, .bytes = bytes, .stream = stream};
    return run_backward_plan(&e, x, w, dy, results);
}

tsr_status tsr_linear_backward_plan_accumulate(const tsr_linear_backward_plan *plan, unsigned adds, const tsr_tensor *x,
                                               const tsr_tensor *w, const tsr_tensor *dy, const tsr_tensor *dx,
                                               const tsr_tensor *dw, const tsr_tensor *db, void *workspace,
                                               size_t bytes, tsr_stream stream)
{
    const tsr_tensor *const results[TSR_GRADIENTS] = {dx, dw, db};
    execution e = {.caller = CALLER "_accumulate",
                   .plan = plan,
                   .adds = adds,
                   .workspace = workspace,
                   .bytes = bytes,
                   .stream = stream};
    return run_backward_plan(&e, x, w, dy, results);
}
