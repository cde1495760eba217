#include "ops/agreement.h"
#include "ops/layer.h"
#include "ops/local_form.h"
#include "ops/numbers.h"
#include "ops/rule.h"

#include <tessera/sys/comm.h>
#include <tessera/sys/memory.h>

#define CALLER "tsr_linear_plan"

struct tsr_linear_plan {
    tsr_context *context;
    tsr_comm *comm;
    tsr_device device;
    tsr_choice choice;
    tsr_local_form x, w, b, own, y; /* own: y in the rule's layout */
    tsr_plan *move;                 /* own to y; NULL if they are equal */
    bool inside, adds_bias;
    size_t own_bytes; /* bytes of `own` at the front of the workspace; 0 if y does not move */
    tsr_matmul_needs needs;
};

static tsr_tensor tensor_of(const tsr_linear_plan *plan, const tsr_local_form *form)
{
    return tsr_local_form_tensor(form, NULL, plan->device);
}

/* Measures the packing and workspace that this rank's products need for any strides of the
 * operands. */
static tsr_status measure_linear_plan(const char *caller, tsr_linear_plan *plan)
{
    int64_t coordinate[TSR_MAX_DIMS];
    int inside;
    TSR_TRY(tsr_layer_check_products(caller, plan->device, plan->x.layout, plan->w.layout, plan->b.layout,
                                     plan->own.layout));
    TSR_TRY(tsr_mesh_coordinate(tsr_layout_mesh(plan->own.layout), coordinate, &inside));
    TSR_TRY(tsr_layer_adds_bias(plan->own.layout, &plan->adds_bias));
    plan->inside = inside;
    plan->own_bytes = plan->move ? tsr_local_form_bytes(&plan->own) : 0;
    if (!inside)
        return TSR_OK;
    const tsr_matmul_site site = {.device = plan->device, .needs = &plan->needs, .any_strides = true};
    const tsr_tensor x = tensor_of(plan, &plan->x), w = tensor_of(plan, &plan->w), y = tensor_of(plan, &plan->own);
    const tsr_tensor b = plan->b.layout ? tensor_of(plan, &plan->b) : y;
    return tsr_layer_forward(&site, &x, &w, plan->b.layout && plan->adds_bias ? &b : NULL, &y);
}

static tsr_status fill_plan(const char *caller, tsr_linear_plan *plan, const tsr_layout *x, const tsr_layout *w,
                            const tsr_layout *b, const tsr_layout *y)
{
    tsr_layout *own;
    if (y)
        TSR_TRY(tsr_rule_check_mesh(caller, "x", x, "y", y));
    TSR_TRY(tsr_layer_propagate(caller, x, w, b, &own));
    TSR_TRY(tsr_local_form_take(own, &plan->own));
    TSR_TRY(tsr_local_form_retain(x, &plan->x));
    TSR_TRY(tsr_local_form_retain(w, &plan->w));
    TSR_TRY(tsr_local_form_retain(b, &plan->b));
    TSR_TRY(tsr_local_form_retain(y ? y : own, &plan->y));
    return tsr_layer_plan_move(caller, own, plan->y.layout, &plan->move);
}

static tsr_status check_request(const char *caller, const tsr_layout *x, const tsr_layout *w, const void *out)
{
    if (!x || !w || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL; only b and y may be", caller,
                              !x   ? "x"
                              : !w ? "w"
                                   : "out");
    return tsr_layer_check_runs(caller, x);
}

/* This rank's own part of the creation. If `*out` is set, also after an error, the caller destroys
 * the plan. */
static tsr_status make_linear_plan(const char *caller, tsr_comm *comm, const tsr_layout *x, const tsr_layout *w,
                                   const tsr_layout *b, const tsr_layout *y, tsr_device device, tsr_linear_plan **out)
{
    tsr_context *context = tsr_mesh_context(tsr_layout_mesh(x));
    void *memory;
    TSR_TRY(tsr_allocate(context, sizeof(tsr_linear_plan), &memory));
    tsr_linear_plan *plan = memory;
    *plan = (tsr_linear_plan){.context = tsr_context_retain(context), .comm = comm, .device = device};
    *out = plan;
    TSR_TRY(tsr_layer_choose(context, device, &plan->choice));
    TSR_TRY(fill_plan(caller, plan, x, w, b, y));
    return measure_linear_plan(caller, plan);
}

static tsr_status create_linear_plan(const char *caller, tsr_comm *comm, const tsr_layout *x, const tsr_layout *w,
                                     const tsr_layout *b, const tsr_layout *y, tsr_device device, tsr_linear_plan **out)
{
    tsr_linear_plan *plan = NULL;
    tsr_choice none = {.count = 0};
    tsr_status status = check_request(caller, x, w, out);
    if (status == TSR_OK)
        status = make_linear_plan(caller, comm, x, w, b, y, device, &plan);
    status = tsr_agree_on_provider(comm, status, plan ? &plan->choice : &none);
    if (status == TSR_OK)
        tsr_choice_hold(&plan->choice);
    if (status == TSR_OK && plan->move)
        status = tsr_plan_prepare(plan->move, comm);
    if (status == TSR_OK)
        *out = plan;
    else
        tsr_linear_plan_destroy(plan);
    return status;
}

/* The call `caller` of a user. */
static tsr_status run_creation(const char *caller, const tsr_layout *x, const tsr_layout *w, const tsr_layout *b,
                               const tsr_layout *y, tsr_device device, tsr_linear_plan **out)
{
    const tsr_layout *const layouts[] = {x, w, b, y};
    tsr_comm *const comm = tsr_agreement_comm(layouts, 4);
    if (!comm)
        return check_request(caller, x, w, out);
    TSR_TRY(tsr_comm_hold(comm, caller));
    return tsr_comm_let_go(comm, create_linear_plan(caller, comm, x, w, b, y, device, out));
}

tsr_status tsr_linear_plan_create_on(const tsr_layout *x, const tsr_layout *w, const tsr_layout *b, const tsr_layout *y,
                                     tsr_device device, tsr_linear_plan **out)
{
    return run_creation(CALLER "_create_on", x, w, b, y, device, out);
}

tsr_status tsr_linear_plan_create(const tsr_layout *x, const tsr_layout *w, const tsr_layout *b, const tsr_layout *y,
                                  tsr_linear_plan **out)
{
    return run_creation(CALLER "_create", x, w, b, y, tsr_device_host(), out);
}

void tsr_linear_plan_destroy(tsr_linear_plan *plan)
{
    if (!plan)
        return;
    tsr_choice_release(&plan->choice);
    tsr_plan_destroy(plan->move);
    tsr_local_form *const forms[] = {&plan->y, &plan->own, &plan->b, &plan->w, &plan->x};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        tsr_local_form_release(forms[i]);
    tsr_context *context = plan->context;
    tsr_release(context, plan);
    tsr_context_destroy(context);
}

const tsr_layout *tsr_linear_plan_result(const tsr_linear_plan *plan)
{
    return plan->y.layout;
}

size_t tsr_linear_plan_workspace_bytes(const tsr_linear_plan *plan)
{
    const size_t moving = plan->move ? tsr_plan_workspace_bytes(plan->move) : 0;
    /* Products are done before y moves, so products and move share the memory behind `own`. */
    return plan->own_bytes + tsr_larger_bytes(moving, tsr_layer_needs_bytes(&plan->needs));
}

static tsr_status check_execution(const tsr_linear_plan *plan, const tsr_tensor *const *operands, const tsr_tensor *y,
                                  const void *workspace, size_t bytes, tsr_stream stream)
{
    static const char *const names[] = {"x", "w", "b"};
    const tsr_local_form *const forms[] = {&plan->x, &plan->w, &plan->b};
    for (int i = 0; i < 3; i++)
        TSR_TRY(tsr_local_form_check(forms[i], CALLER "_execute", names[i], operands[i], plan->device));
    TSR_TRY(tsr_local_form_check_result(&plan->y, CALLER "_execute", "y", y, plan->device));
    TSR_TRY(tsr_layer_check_stream(CALLER "_execute", plan->device, stream));
    return tsr_layer_check_workspace(CALLER "_execute", workspace, bytes, tsr_linear_plan_workspace_bytes(plan));
}

/* The workspace behind `own`. */
static void *rest_of(const tsr_linear_plan *plan, void *workspace)
{
    return workspace ? (char *)workspace + plan->own_bytes : NULL;
}

/* The tensor that the products write: y itself, or the front of the workspace if y moves. */
static tsr_tensor own_tensor(const tsr_linear_plan *plan, const tsr_tensor *y, void *workspace)
{
    return plan->move ? tsr_local_form_tensor(&plan->own, workspace, plan->device) : *y;
}

static tsr_status multiply_into_own(const tsr_linear_plan *plan, const tsr_tensor *x, const tsr_tensor *w,
                                    const tsr_tensor *b, const tsr_tensor *own, void *workspace, tsr_stream stream)
{
    tsr_matmul_site site = tsr_layer_site(plan->device, &plan->choice, stream);
    tsr_layer_place(&site, &plan->needs, rest_of(plan, workspace));
    return tsr_layer_forward(&site, x, w, plan->adds_bias ? b : NULL, own);
}

static tsr_status execute_linear_plan(const tsr_linear_plan *plan, const tsr_tensor *x, const tsr_tensor *w,
                                      const tsr_tensor *b, const tsr_tensor *y, void *workspace, size_t bytes,
                                      tsr_stream stream)
{
    tsr_status status = check_execution(plan, (const tsr_tensor *[]){x, w, b}, y, workspace, bytes, stream);
    tsr_tensor own;
    if (status == TSR_OK) {
        own = own_tensor(plan, y, workspace);
        status = multiply_into_own(plan, x, w, b, &own, workspace, stream);
    }
    if (!plan->move)
        return status;
    if (status == TSR_OK)
        return tsr_plan_execute(plan->move, plan->comm, &own, y, rest_of(plan, workspace), bytes - plan->own_bytes,
                                stream);
    return tsr_layer_take_part(plan->move, plan->comm, plan->device, status, stream);
}

/* Without a move the call does not communicate, and does not use the communicator's handle. */
tsr_status tsr_linear_plan_execute(const tsr_linear_plan *plan, const tsr_tensor *x, const tsr_tensor *w,
                                   const tsr_tensor *b, const tsr_tensor *y, void *workspace, size_t bytes,
                                   tsr_stream stream)
{
    if (!plan)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALLER "_execute: plan is NULL");
    if (!plan->inside)
        return TSR_OK;
    if (!plan->move)
        return execute_linear_plan(plan, x, w, b, y, workspace, bytes, stream);
    TSR_TRY(tsr_comm_hold(plan->comm, CALLER "_execute"));
    return tsr_comm_let_go(plan->comm, execute_linear_plan(plan, x, w, b, y, workspace, bytes, stream));
}
