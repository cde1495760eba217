#include "ops/agreement.h"
#include "ops/forward.h"
#include "ops/layer.h"
#include "ops/layer_rule.h"
#include "ops/numbers.h"
#include "ops/plan_frame.h"

#include <tessera/sys/comm.h>

#define CALLER "tsr_linear_plan"

struct tsr_linear_plan {
    tsr_plan_frame frame; /* move 0: y from the rule's layout to the plan's */
    tsr_forward pass;
    tsr_local_form x, w, b, y;
    size_t own_bytes; /* bytes of y in the rule's layout at the front of the workspace; 0 if y does not move */
};

static tsr_status fill_plan(const char *caller, tsr_linear_plan *plan, const tsr_layout *x, const tsr_layout *w,
                            const tsr_layout *b, const tsr_layout *y)
{
    const tsr_local_form *const own = &plan->pass.own;
    if (y)
        TSR_TRY(tsr_layer_check_mesh(caller, "x", x, "y", y));
    TSR_TRY(tsr_forward_begin(caller, x, w, b, &plan->pass));
    TSR_TRY(tsr_local_form_retain(x, &plan->x));
    TSR_TRY(tsr_local_form_retain(w, &plan->w));
    TSR_TRY(tsr_local_form_retain(b, &plan->b));
    TSR_TRY(tsr_local_form_retain(y ? y : own->layout, &plan->y));
    TSR_TRY(tsr_plan_frame_add_move(&plan->frame, caller, 0, own->layout, plan->y.layout));
    plan->own_bytes = plan->frame.moves[0] ? tsr_local_form_bytes(own) : 0;
    return tsr_forward_place(caller, x, w, b, plan->frame.device, &plan->pass);
}

/* Measures what this rank's products need for any strides of the operands. */
static tsr_status measure_linear_plan(tsr_linear_plan *plan)
{
    const tsr_device device = plan->frame.device;
    const tsr_tensor x = tsr_local_form_tensor(&plan->x, NULL, device),
                     w = tsr_local_form_tensor(&plan->w, NULL, device),
                     b = tsr_local_form_tensor(plan->b.layout ? &plan->b : &plan->x, NULL, device);
    return tsr_forward_measure(&plan->pass, &x, &w, &b, true);
}

static tsr_status check_request(const char *caller, const tsr_layout *x, const tsr_layout *w, const void *out)
{
    if (!x || !w || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL; only b and y may be", caller,
                              !x   ? "x"
                              : !w ? "w"
                                   : "out");
    return tsr_plan_frame_check_mesh(caller, x);
}

/* This rank's own part of the creation. If `*out` is set, also after an error, the caller destroys
 * the plan. */
static tsr_status make_linear_plan(const char *caller, tsr_comm *comm, const tsr_layout *x, const tsr_layout *w,
                                   const tsr_layout *b, const tsr_layout *y, tsr_device device, tsr_linear_plan **out)
{
    tsr_plan_frame *frame;
    TSR_TRY(tsr_plan_frame_create(x, comm, device, sizeof **out, &frame));
    *out = (tsr_linear_plan *)frame;
    TSR_TRY(fill_plan(caller, *out, x, w, b, y));
    return measure_linear_plan(*out);
}

static tsr_status create_linear_plan(const char *caller, tsr_comm *comm, const tsr_layout *x, const tsr_layout *w,
                                     const tsr_layout *b, const tsr_layout *y, tsr_device device, tsr_linear_plan **out)
{
    tsr_linear_plan *plan = NULL;
    tsr_status status = check_request(caller, x, w, out);
    if (status == TSR_OK)
        status = make_linear_plan(caller, comm, x, w, b, y, device, &plan);
    status = tsr_plan_frame_agree(plan ? &plan->frame : NULL, plan ? &plan->pass.choice : NULL, comm, status);
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
    tsr_local_form *const forms[] = {&plan->y, &plan->b, &plan->w, &plan->x};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        tsr_local_form_release(forms[i]);
    tsr_forward_release(&plan->pass);
    tsr_plan_frame_destroy(&plan->frame, &plan->pass.choice);
}

const tsr_layout *tsr_linear_plan_result(const tsr_linear_plan *plan)
{
    return plan->y.layout;
}

size_t tsr_linear_plan_workspace_bytes(const tsr_linear_plan *plan)
{
    /* Products are done before y moves, so they share the memory behind y in the rule's layout. */
    return plan->own_bytes +
           tsr_larger_bytes(tsr_plan_frame_moving_bytes(&plan->frame), tsr_layer_needs_bytes(&plan->pass.needs));
}

static tsr_status check_execution(const tsr_linear_plan *plan, const tsr_tensor *const *operands, const tsr_tensor *y,
                                  const void *workspace, size_t bytes, tsr_stream stream)
{
    static const char *const names[] = {"x", "w", "b"};
    const tsr_local_form *const forms[] = {&plan->x, &plan->w, &plan->b};
    for (int i = 0; i < 3; i++)
        TSR_TRY(tsr_local_form_check(forms[i], CALLER "_execute", names[i], operands[i], plan->frame.device));
    TSR_TRY(tsr_local_form_check_result(&plan->y, CALLER "_execute", "y", y, plan->frame.device));
    return tsr_plan_frame_check(&plan->frame, CALLER "_execute", workspace, bytes,
                                tsr_linear_plan_workspace_bytes(plan), stream);
}

static tsr_status execute_linear_plan(const tsr_linear_plan *plan, const tsr_tensor *x, const tsr_tensor *w,
                                      const tsr_tensor *b, const tsr_tensor *y, void *workspace, size_t bytes,
                                      tsr_stream stream)
{
    const bool moves = plan->frame.moves[0];
    void *rest = NULL;
    tsr_tensor own;
    tsr_status status = check_execution(plan, (const tsr_tensor *[]){x, w, b}, y, workspace, bytes, stream);
    if (status == TSR_OK) {
        rest = workspace ? (char *)workspace + plan->own_bytes : NULL;
        own = moves ? tsr_local_form_tensor(&plan->pass.own, workspace, plan->frame.device) : *y;
        status = tsr_forward_compute(&plan->pass, x, w, b, &own, rest, stream);
    }
    return moves ? tsr_plan_frame_move(&plan->frame, 0, status, &own, y, rest, bytes - plan->own_bytes, stream)
                 : status;
}

tsr_status tsr_linear_plan_execute(const tsr_linear_plan *plan, const tsr_tensor *x, const tsr_tensor *w,
                                   const tsr_tensor *b, const tsr_tensor *y, void *workspace, size_t bytes,
                                   tsr_stream stream)
{
    if (!plan)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALLER "_execute: plan is NULL");
    if (!plan->pass.inside)
        return TSR_OK;
    TSR_TRY(tsr_plan_frame_hold(&plan->frame, CALLER "_execute"));
    return tsr_plan_frame_let_go(&plan->frame, execute_linear_plan(plan, x, w, b, y, workspace, bytes, stream));
}
