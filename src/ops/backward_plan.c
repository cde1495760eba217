#include "ops/agreement.h"
#include "ops/gradients.h"
#include "ops/layer.h"
#include "ops/local_form.h"
#include "ops/numbers.h"
#include "ops/rule.h"

#include <tessera/sys/comm.h>
#include <tessera/sys/memory.h>

#include <string.h>

#define CALLER "tsr_linear_backward_plan"

static const char *const names[TSR_GRADIENTS] = {"dx", "dw", "db"};

/* dx, dw or db; not `present`: the plan does not have it. */
typedef struct gradient {
    bool present;
    tsr_local_form own, wanted; /* the gradient in its rule's layout, and in the layout that the caller wants */
    tsr_plan *move;             /* own to wanted; NULL if they are equal */
} gradient;

/* The workspace has three parts: dy in the products' layout, if it moves; one gradient in its
 * rule's layout, if any gradient moves; and the workspace of products and moves. An execution that
 * accumulates has one more before the last: a gradient that has moved, which is then added to the
 * caller's. Gradients are made one after the other, so they share all parts but the first. */
struct tsr_linear_backward_plan {
    tsr_context *context;
    tsr_comm *comm;
    tsr_device device;
    tsr_choice choice;
    tsr_local_form x, w, dy, aligned; /* aligned: dy in the products' layout */
    tsr_plan *align;                  /* dy to aligned; NULL if they are equal */
    gradient gradients[TSR_GRADIENTS];
    bool inside;
    size_t dy_bytes, own_bytes, moved_bytes, moving_bytes;
    tsr_matmul_needs needs[2]; /* of products that write, and of products that add */
};

/* The layouts that tsr_linear_backward_plan_create() is given. */
typedef struct request {
    const tsr_layout *x, *w, *b, *dy, *gradients[TSR_GRADIENTS];
} request;

static tsr_status plan_move(const tsr_local_form *from, const tsr_local_form *to, tsr_plan **out)
{
    return tsr_layer_plan_move(CALLER "_create", from->layout, to->layout, out);
}

static tsr_status fill_dy(tsr_linear_backward_plan *plan, const request *r)
{
    tsr_layout *y, *aligned;
    TSR_TRY(tsr_layer_propagate(CALLER "_create", r->x, r->w, r->b, &y));
    tsr_status status = r->dy ? tsr_gradient_check_dy(CALLER "_create", y, r->dy) : TSR_OK;
    if (status == TSR_OK)
        status = tsr_layout_gradient(y, &aligned);
    tsr_layout_destroy(y);
    TSR_TRY(status);
    TSR_TRY(tsr_local_form_take(aligned, &plan->aligned));
    TSR_TRY(tsr_local_form_retain(r->dy ? r->dy : aligned, &plan->dy));
    return plan_move(&plan->dy, &plan->aligned, &plan->align);
}

static tsr_status fill_gradient(tsr_linear_backward_plan *plan, const request *r, int which)
{
    gradient *g = &plan->gradients[which];
    tsr_layout *own;
    g->present = r->gradients[which] != NULL;
    if (!g->present)
        return TSR_OK;
    if (r->gradients[which])
        TSR_TRY(tsr_rule_check_mesh(CALLER "_create", "x", r->x, names[which], r->gradients[which]));
    const tsr_layout *const of = (const tsr_layout *const[]){r->x, r->w, r->b}[which];
    const tsr_dtype dtype = tsr_gradient_dtype(tsr_layout_dtype(of), r->gradients[which]);
    TSR_TRY(tsr_gradient_propagate(CALLER "_create", which, plan->aligned.layout, r->x, r->w, dtype, &own));
    TSR_TRY(tsr_local_form_take(own, &g->own));
    TSR_TRY(tsr_local_form_retain(r->gradients[which], &g->wanted));
    return plan_move(&g->own, &g->wanted, &g->move);
}

static tsr_status fill_plan(tsr_linear_backward_plan *plan, const request *r)
{
    TSR_TRY(fill_dy(plan, r));
    TSR_TRY(tsr_local_form_retain(r->x, &plan->x));
    TSR_TRY(tsr_local_form_retain(r->w, &plan->w));
    for (int i = 0; i < TSR_GRADIENTS; i++)
        TSR_TRY(fill_gradient(plan, r, i));
    return TSR_OK;
}

/* Measures the packing and workspace that this rank's products need for any strides of the
 * operands. */
static tsr_status measure_products(tsr_linear_backward_plan *plan, bool adds)
{
    const tsr_matmul_site site = {.device = plan->device, .needs = &plan->needs[adds], .any_strides = true};
    const tsr_gradient_sources from = {tsr_local_form_tensor(&plan->aligned, NULL, plan->device),
                                       tsr_local_form_tensor(&plan->x, NULL, plan->device),
                                       tsr_local_form_tensor(&plan->w, NULL, plan->device)};
    for (int i = 0; i < TSR_GRADIENTS; i++) {
        if (!plan->gradients[i].present)
            continue;
        const tsr_tensor to = tsr_local_form_tensor(&plan->gradients[i].own, NULL, plan->device);
        TSR_TRY(tsr_gradient_compute(i, &site, &from, &to, adds && !plan->gradients[i].move));
    }
    return TSR_OK;
}

static void measure_moves(tsr_linear_backward_plan *plan)
{
    if (plan->align) {
        plan->dy_bytes = tsr_local_form_bytes(&plan->aligned);
        plan->moving_bytes = tsr_plan_workspace_bytes(plan->align);
    }
    for (int i = 0; i < TSR_GRADIENTS; i++) {
        const gradient *g = &plan->gradients[i];
        if (!g->move)
            continue;
        plan->own_bytes = tsr_larger_bytes(plan->own_bytes, tsr_local_form_bytes(&g->own));
        plan->moved_bytes = tsr_larger_bytes(plan->moved_bytes, tsr_local_form_bytes(&g->wanted));
        plan->moving_bytes = tsr_larger_bytes(plan->moving_bytes, tsr_plan_workspace_bytes(g->move));
    }
}

static tsr_status check_products(const tsr_linear_backward_plan *plan)
{
    const tsr_dtype dy = tsr_layout_dtype(plan->dy.layout), x = tsr_layout_dtype(plan->x.layout),
                    w = tsr_layout_dtype(plan->w.layout);
    for (int i = 0; i < TSR_GRADIENTS; i++) {
        const gradient *g = &plan->gradients[i];
        if (g->present)
            TSR_TRY(tsr_gradient_check_device(CALLER "_create", i, plan->device, dy, x, w,
                                              tsr_layout_dtype(g->own.layout)));
    }
    return TSR_OK;
}

static tsr_status measure_backward_plan(tsr_linear_backward_plan *plan)
{
    int64_t coordinate[TSR_MAX_DIMS];
    int inside;
    TSR_TRY(check_products(plan));
    TSR_TRY(tsr_mesh_coordinate(tsr_layout_mesh(plan->dy.layout), coordinate, &inside));
    plan->inside = inside;
    measure_moves(plan);
    if (!inside)
        return TSR_OK;
    TSR_TRY(measure_products(plan, false));
    return measure_products(plan, true);
}

static tsr_status prepare_moves(const tsr_linear_backward_plan *plan)
{
    if (plan->align)
        TSR_TRY(tsr_plan_prepare(plan->align, plan->comm));
    for (int i = 0; i < TSR_GRADIENTS; i++) {
        if (plan->gradients[i].move)
            TSR_TRY(tsr_plan_prepare(plan->gradients[i].move, plan->comm));
    }
    return TSR_OK;
}

static tsr_status check_request(const request *r, const void *out)
{
    if (!r->x || !r->w || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALLER "_create: %s is NULL", !r->x ? "x" : !r->w ? "w" : "out");
    if (!r->gradients[TSR_DX] && !r->gradients[TSR_DW] && !r->gradients[TSR_DB])
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              CALLER "_create: dx, dw and db are all NULL; a backward has one of them at least");
    if (r->gradients[TSR_DB] && !r->b)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALLER "_create: db is asked for, but b is NULL");
    return tsr_layer_check_runs(CALLER "_create", r->x);
}

/* This rank's own part of the creation. If `*out` is set, also after an error, the caller destroys
 * the plan. */
static tsr_status make_backward_plan(tsr_comm *comm, const request *r, tsr_device device,
                                     tsr_linear_backward_plan **out)
{
    tsr_context *context = tsr_mesh_context(tsr_layout_mesh(r->x));
    void *memory;
    TSR_TRY(tsr_allocate(context, sizeof(tsr_linear_backward_plan), &memory));
    tsr_linear_backward_plan *plan = memory;
    *plan = (tsr_linear_backward_plan){.context = tsr_context_retain(context), .comm = comm, .device = device};
    *out = plan;
    TSR_TRY(tsr_layer_choose(context, device, &plan->choice));
    TSR_TRY(fill_plan(plan, r));
    return measure_backward_plan(plan);
}

static tsr_status create_backward_plan(tsr_comm *comm, const request *r, tsr_device device,
                                       tsr_linear_backward_plan **out)
{
    tsr_linear_backward_plan *plan = NULL;
    tsr_choice none = {.count = 0};
    tsr_status status = check_request(r, out);
    if (status == TSR_OK)
        status = make_backward_plan(comm, r, device, &plan);
    status = tsr_agree_on_provider(comm, status, plan ? &plan->choice : &none);
    if (status == TSR_OK)
        tsr_choice_hold(&plan->choice);
    if (status == TSR_OK)
        status = prepare_moves(plan);
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
    const request r = {x, w, b, dy, {dx, dw, db}};
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
    tsr_choice_release(&plan->choice);
    for (int i = 0; i < TSR_GRADIENTS; i++) {
        tsr_plan_destroy(plan->gradients[i].move);
        tsr_local_form_release(&plan->gradients[i].wanted);
        tsr_local_form_release(&plan->gradients[i].own);
    }
    tsr_plan_destroy(plan->align);
    tsr_local_form *const forms[] = {&plan->w, &plan->x, &plan->dy, &plan->aligned};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        tsr_local_form_release(forms[i]);
    tsr_context *context = plan->context;
    tsr_release(context, plan);
    tsr_context_destroy(context);
}

const tsr_layout *tsr_linear_backward_plan_source(const tsr_linear_backward_plan *plan)
{
    return plan->dy.layout;
}

/* Where the last part of the workspace begins, behind dy, one gradient and, if the execution adds
 * to some gradient, one that has moved. */
static size_t rest_offset(const tsr_linear_backward_plan *plan, unsigned adds)
{
    return plan->dy_bytes + plan->own_bytes + (adds ? plan->moved_bytes : 0);
}

size_t tsr_linear_backward_plan_workspace_bytes(const tsr_linear_backward_plan *plan)
{
    return rest_offset(plan, 0) + tsr_larger_bytes(plan->moving_bytes, tsr_layer_needs_bytes(&plan->needs[false]));
}

size_t tsr_linear_backward_plan_accumulate_bytes(const tsr_linear_backward_plan *plan)
{
    const size_t products =
        tsr_larger_bytes(tsr_layer_needs_bytes(&plan->needs[false]), tsr_layer_needs_bytes(&plan->needs[true]));
    return rest_offset(plan, ~0U) + tsr_larger_bytes(plan->moving_bytes, products);
}

/* One execution; `status` is this rank's first failure. */
typedef struct execution {
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

static tsr_status check_execution(const execution *e, const tsr_tensor *x, const tsr_tensor *w, const tsr_tensor *dy,
                                  const tsr_tensor *const *results)
{
    const tsr_linear_backward_plan *plan = e->plan;
    TSR_TRY(tsr_local_form_check(&plan->dy, CALLER "_execute", "dy", dy, plan->device));
    if (plan->gradients[TSR_DW].present)
        TSR_TRY(tsr_local_form_check(&plan->x, CALLER "_execute", "x", x, plan->device));
    if (plan->gradients[TSR_DX].present)
        TSR_TRY(tsr_local_form_check(&plan->w, CALLER "_execute", "w", w, plan->device));
    for (int i = 0; i < TSR_GRADIENTS; i++)
        TSR_TRY(tsr_local_form_check_result(&plan->gradients[i].wanted, CALLER "_execute", names[i], results[i],
                                            plan->device));
    TSR_TRY(tsr_layer_check_stream(CALLER "_execute", plan->device, e->stream));
    return tsr_layer_check_workspace(CALLER "_execute", e->workspace, e->bytes,
                                     e->adds ? tsr_linear_backward_plan_accumulate_bytes(plan)
                                             : tsr_linear_backward_plan_workspace_bytes(plan));
}

static void *part_at(const execution *e, size_t offset)
{
    return e->workspace ? e->workspace + offset : NULL;
}

/* All ranks go through the same moves: after a failure this rank takes part in a move as failed. */
static void move_tensor(execution *e, const tsr_plan *move, const tsr_tensor *from, const tsr_tensor *to)
{
    const size_t rest = rest_offset(e->plan, e->adds);
    if (e->status != TSR_OK)
        e->status = tsr_layer_take_part(move, e->plan->comm, e->plan->device, e->status, e->stream);
    else
        e->status = tsr_plan_execute(move, e->plan->comm, from, to, part_at(e, rest), e->bytes - rest, e->stream);
}

static void align_dy(execution *e, const tsr_tensor *dy)
{
    const tsr_linear_backward_plan *plan = e->plan;
    if (!plan->align) {
        e->from.dy = e->status == TSR_OK ? *dy : e->from.dy;
        return;
    }
    e->from.dy = tsr_local_form_tensor(&plan->aligned, e->workspace, plan->device);
    move_tensor(e, plan->align, dy, &e->from.dy);
}

/* Moves a gradient into `result`, or to the workspace, from where it is added to `result`. */
static void finish_gradient(execution *e, int which, const tsr_tensor *own, const tsr_tensor *result)
{
    const tsr_linear_backward_plan *plan = e->plan;
    const gradient *g = &plan->gradients[which];
    if (!adds_to(e, which)) {
        move_tensor(e, g->move, own, result);
        return;
    }
    const tsr_tensor moved =
        tsr_local_form_tensor(&g->wanted, part_at(e, plan->dy_bytes + plan->own_bytes), plan->device);
    move_tensor(e, g->move, own, &moved);
    if (e->status == TSR_OK)
        e->status = tsr_gradient_add(&moved, result, e->stream);
}

static void make_gradient(execution *e, int which, const tsr_tensor *result)
{
    const tsr_linear_backward_plan *plan = e->plan;
    const gradient *g = &plan->gradients[which];
    tsr_tensor own = tsr_local_form_tensor(&g->own, part_at(e, plan->dy_bytes), plan->device);
    if (e->status == TSR_OK) {
        const bool adds = adds_to(e, which) && !g->move;
        tsr_matmul_site site = tsr_layer_site(plan->device, &plan->choice, e->stream);
        tsr_layer_place(&site, &plan->needs[adds], part_at(e, rest_offset(plan, e->adds)));
        own = g->move ? own : *result;
        e->status = tsr_gradient_compute(which, &site, &e->from, &own, adds);
    }
    if (g->move)
        finish_gradient(e, which, &own, result);
}

static tsr_status execute_backward_plan(execution *e, const tsr_tensor *x, const tsr_tensor *w, const tsr_tensor *dy,
                                        const tsr_tensor *const *results)
{
    const tsr_linear_backward_plan *plan = e->plan;
    e->status = check_execution(e, x, w, dy, results);
    if (e->status == TSR_OK && plan->gradients[TSR_DW].present)
        e->from.x = *x;
    if (e->status == TSR_OK && plan->gradients[TSR_DX].present)
        e->from.w = *w;
    align_dy(e, dy);
    for (int i = 0; i < TSR_GRADIENTS; i++) {
        if (plan->gradients[i].present)
            make_gradient(e, i, results[i]);
    }
    return e->status;
}

/* True if the plan moves anything; else executions do not communicate, and do not use the
 * communicator's handle. */
static bool moves(const tsr_linear_backward_plan *plan)
{
    bool some = plan->align;
    for (int i = 0; i < TSR_GRADIENTS; i++)
        some = some || plan->gradients[i].move;
    return some;
}

static tsr_status run_backward_plan(execution *e, const tsr_tensor *x, const tsr_tensor *w, const tsr_tensor *dy,
                                    const tsr_tensor *const *results)
{
    if (!e->plan)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALLER "_execute: plan is NULL");
    if (!e->plan->inside)
        return TSR_OK;
    if (!moves(e->plan))
        return execute_backward_plan(e, x, w, dy, results);
    TSR_TRY(tsr_comm_hold(e->plan->comm, CALLER "_execute"));
    return tsr_comm_let_go(e->plan->comm, execute_backward_plan(e, x, w, dy, results));
}

tsr_status tsr_linear_backward_plan_execute(const tsr_linear_backward_plan *plan, const tsr_tensor *x,
                                            const tsr_tensor *w, const tsr_tensor *dy, const tsr_tensor *dx,
                                            const tsr_tensor *dw, const tsr_tensor *db, void *workspace, size_t bytes,
                                            tsr_stream stream)
{
    const tsr_tensor *const results[TSR_GRADIENTS] = {dx, dw, db};
    execution e = {.plan = plan, .workspace = workspace, .bytes = bytes, .stream = stream};
    return run_backward_plan(&e, x, w, dy, results);
}

tsr_status tsr_linear_backward_plan_accumulate(const tsr_linear_backward_plan *plan, unsigned adds, const tsr_tensor *x,
                                               const tsr_tensor *w, const tsr_tensor *dy, const tsr_tensor *dx,
                                               const tsr_tensor *dw, const tsr_tensor *db, void *workspace,
                                               size_t bytes, tsr_stream stream)
{
    const tsr_tensor *const results[TSR_GRADIENTS] = {dx, dw, db};
    execution e = {.plan = plan, .adds = adds, .workspace = workspace, .bytes = bytes, .stream = stream};
    return run_backward_plan(&e, x, w, dy, results);
}
